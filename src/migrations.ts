/**
 * Wiring point: the migration chains of the house, embedded as text so that a compiled binary carries them.
 *
 * @module
 */
import activityDown1 from "../migrations/activity/0001_activity.down.sql" with { type: "text" };
import activityUp1 from "../migrations/activity/0001_activity.up.sql" with { type: "text" };
import coreDown1 from "../migrations/core/0001_tenancy_outbox.down.sql" with { type: "text" };
import coreDown2 from "../migrations/core/0002_idempotency.down.sql" with { type: "text" };
import coreUp2 from "../migrations/core/0002_idempotency.up.sql" with { type: "text" };
import coreDown3 from "../migrations/core/0003_sessions.down.sql" with { type: "text" };
import coreUp3 from "../migrations/core/0003_sessions.up.sql" with { type: "text" };
import coreUp1 from "../migrations/core/0001_tenancy_outbox.up.sql" with { type: "text" };
import fairDown1 from "../migrations/fair/0001_claim_by_org.down.sql" with { type: "text" };
import fairUp1 from "../migrations/fair/0001_claim_by_org.up.sql" with { type: "text" };
import queueDown1 from "../migrations/queue/0001_work_items.down.sql" with { type: "text" };
import queueUp1 from "../migrations/queue/0001_work_items.up.sql" with { type: "text" };
import queueDown2 from "../migrations/queue/0002_hosts.down.sql" with { type: "text" };
import queueUp2 from "../migrations/queue/0002_hosts.up.sql" with { type: "text" };
import sqliteActivityDown1 from "../migrations/sqlite/activity/0001_activity.down.sql" with { type: "text" };
import sqliteActivityUp1 from "../migrations/sqlite/activity/0001_activity.up.sql" with { type: "text" };
import sqliteCoreDown1 from "../migrations/sqlite/core/0001_tenancy_outbox.down.sql" with { type: "text" };
import sqliteCoreDown2 from "../migrations/sqlite/core/0002_idempotency.down.sql" with { type: "text" };
import sqliteCoreUp2 from "../migrations/sqlite/core/0002_idempotency.up.sql" with { type: "text" };
import sqliteCoreDown3 from "../migrations/sqlite/core/0003_sessions.down.sql" with { type: "text" };
import sqliteCoreUp3 from "../migrations/sqlite/core/0003_sessions.up.sql" with { type: "text" };
import sqliteCoreUp1 from "../migrations/sqlite/core/0001_tenancy_outbox.up.sql" with { type: "text" };
import sqliteFairDown1 from "../migrations/sqlite/fair/0001_claim_by_org.down.sql" with { type: "text" };
import sqliteFairUp1 from "../migrations/sqlite/fair/0001_claim_by_org.up.sql" with { type: "text" };
import sqliteQueueDown1 from "../migrations/sqlite/queue/0001_work_items.down.sql" with { type: "text" };
import sqliteQueueUp1 from "../migrations/sqlite/queue/0001_work_items.up.sql" with { type: "text" };
import type { MigrationChain } from "./db/chain.ts";

const CORE: MigrationChain = {
  name: "core",
  area: "core",
  postgres: [
    { version: 1, name: "tenancy_outbox", up: coreUp1, down: coreDown1 },
    { version: 2, name: "idempotency", up: coreUp2, down: coreDown2 },
    { version: 3, name: "sessions", up: coreUp3, down: coreDown3 },
  ],
  sqlite: [
    { version: 1, name: "tenancy_outbox", up: sqliteCoreUp1, down: sqliteCoreDown1 },
    { version: 2, name: "idempotency", up: sqliteCoreUp2, down: sqliteCoreDown2 },
    { version: 3, name: "sessions", up: sqliteCoreUp3, down: sqliteCoreDown3 },
  ],
};

const QUEUE: MigrationChain = {
  name: "queue",
  area: "queue",
  // The embedded stores serve no hosts: theirs ends before.
  postgres: [
    { version: 1, name: "work_items", up: queueUp1, down: queueDown1 },
    { version: 2, name: "hosts", up: queueUp2, down: queueDown2 },
  ],
  sqlite: [{ version: 1, name: "work_items", up: sqliteQueueUp1, down: sqliteQueueDown1 }],
};

const ACTIVITY: MigrationChain = {
  name: "activity",
  area: "activity",
  postgres: [{ version: 1, name: "activity", up: activityUp1, down: activityDown1 }],
  sqlite: [{ version: 1, name: "activity", up: sqliteActivityUp1, down: sqliteActivityDown1 }],
};

/** Every chain of the house, in the order they are applied. A worker adds its own behind them. */
export const CHAINS: readonly MigrationChain[] = [CORE, QUEUE, ACTIVITY];

/** The index of fair claims. It costs every enqueue a tenth, so it is made only where it is asked for. */
export const FAIR_CHAIN: MigrationChain = {
  name: "fair",
  area: "queue",
  postgres: [{ version: 1, name: "claim_by_org", up: fairUp1, down: fairDown1 }],
  sqlite: [{ version: 1, name: "claim_by_org", up: sqliteFairUp1, down: sqliteFairDown1 }],
  optionalFor: "--claim-order fair",
};

/** Chains that are applied only when they are named. They stand on those of `CHAINS` in their area. */
export const OPTIONAL_CHAINS: readonly MigrationChain[] = [FAIR_CHAIN];
