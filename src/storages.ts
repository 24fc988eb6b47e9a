/**
 * Wiring point: builds every storage over an open store. A container adds its own storages over the same handle.
 *
 * @module
 */
import { PostgresAuditStorage } from "./audit/storage/postgres.ts";
import { SqliteAuditStorage } from "./audit/storage/sqlite.ts";
import type { AuditStorage } from "./audit/types.ts";
import type { Databases } from "./db/database.ts";
import type { SqliteDatabase } from "./db/sqlite.ts";
import { PostgresIdempotencyStorage } from "./idempotency/storage/postgres.ts";
import { SqliteIdempotencyStorage } from "./idempotency/storage/sqlite.ts";
import type { IdempotencyStorage } from "./idempotency/types.ts";
import { PostgresOutboxStorage } from "./outbox/storage/postgres.ts";
import { SqliteOutboxStorage } from "./outbox/storage/sqlite.ts";
import type { OutboxStorage } from "./outbox/types.ts";
import { PostgresTenancyStorage } from "./tenancy/storage/postgres.ts";
import { SqliteTenancyStorage } from "./tenancy/storage/sqlite.ts";
import type { TenancyStorage } from "./tenancy/types.ts";
import type { WorkStorage } from "./work/storage.ts";
import { PostgresWorkStorage } from "./work/storage/postgres.ts";
import { SqliteWorkStorage } from "./work/storage/sqlite.ts";

/** An open store: what storages are built over. */
export type Store =
  | { readonly engine: "sqlite"; readonly db: SqliteDatabase }
  | {
    readonly engine: "postgres";
    readonly databases: Databases;
    /** The SQL expression of database time. Default `now()`; tests give one that can be shifted. */
    readonly nowSql?: string;
  };

/** One storage a room. */
export interface Storages {
  /** Orgs, users and memberships. */
  readonly tenancy: TenancyStorage;
  /** Outbox rows. */
  readonly outbox: OutboxStorage;
  /** Audit entries and events. */
  readonly audit: AuditStorage;
  /** Markers of requests that take effect once. */
  readonly idempotency: IdempotencyStorage;
  /** Work items. */
  readonly work: WorkStorage;
}

/** Builds the storages; each touches only its own area's database. */
export function createStorages(store: Store): Storages {
  if (store.engine === "sqlite") {
    return {
      tenancy: new SqliteTenancyStorage(store.db),
      outbox: new SqliteOutboxStorage(store.db),
      audit: new SqliteAuditStorage(store.db),
      idempotency: new SqliteIdempotencyStorage(store.db),
      work: new SqliteWorkStorage(store.db),
    };
  }
  const { core, queue, activity } = store.databases;
  const time = store.nowSql === undefined ? {} : { nowSql: store.nowSql };
  return {
    tenancy: new PostgresTenancyStorage(core, time),
    outbox: new PostgresOutboxStorage(core, time),
    audit: new PostgresAuditStorage(activity, time),
    idempotency: new PostgresIdempotencyStorage(core, time),
    work: new PostgresWorkStorage(queue, time),
  };
}
