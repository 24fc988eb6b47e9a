/**
 * Wiring point: builds every manager over the storages.
 *
 * @module
 */
import { createAuditManager } from "./audit/manager.ts";
import type { AuditManager } from "./audit/types.ts";
import type { Clock } from "./core/clock.ts";
import { describeError } from "./core/describe_error.ts";
import type { Logger } from "./core/log.ts";
import type { Metrics } from "./core/metrics.ts";
import type { Topics } from "./infra/topics.ts";
import { createIdempotencyManager } from "./idempotency/manager.ts";
import type { IdempotencyManager } from "./idempotency/types.ts";
import { createOutboxRelay } from "./outbox/relay.ts";
import type { OutboxRelay } from "./outbox/types.ts";
import type { Storages } from "./storages.ts";
import { createTenancyManager } from "./tenancy/manager.ts";
import type { TenancyManager } from "./tenancy/types.ts";
import type { WorkManager } from "./work/manager.ts";
import type { WorkKind } from "./work/types.ts";
import { createWorkManager } from "./work/work_manager.ts";

/** One manager a room. */
export interface Managers {
  /** Orgs, users, memberships, and every context. */
  readonly tenancy: TenancyManager;
  /** Hands outbox rows on. */
  readonly outbox: OutboxRelay;
  /** Audit entries and events. */
  readonly audit: AuditManager;
  /** Requests that take effect once. */
  readonly idempotency: IdempotencyManager;
  /** Work items. */
  readonly work: WorkManager;
}

/** What the managers are built over. Retentions reach them in every process that builds one. */
export interface ManagerOptions {
  /** One storage a room. */
  readonly storages: Storages;
  /** Where hints are published. */
  readonly topics: Topics;
  /** Stamps what managers make. */
  readonly clock: Clock;
  /** Is told of what went wrong and was mended. */
  readonly logger: Logger;
  /** Counts. */
  readonly metrics: Metrics;
  /** The kinds this build knows. */
  readonly kinds: readonly WorkKind[];
  /** How long finished items are kept, milliseconds. */
  readonly itemRetentionMs: number;
  /** How long idempotency keys stay taken, milliseconds; no shorter than `outboxRetentionMs`. */
  readonly keyRetentionMs: number;
  /** How long outbox rows that were handed on are kept, milliseconds. */
  readonly outboxRetentionMs: number;
  /** How long idempotency markers are kept after their last move, milliseconds. */
  readonly markerRetentionMs: number;
  /** A session not used for this long is over, milliseconds. Default 7 days. */
  readonly sessionIdleMs?: number;
  /** A session is over this long after it began, milliseconds. Default 30 days. */
  readonly sessionLifetimeMs?: number;
  /** Default 256 KiB. */
  readonly payloadLimitBytes?: number;
}

/** Builds the managers. The relay is given work late, because work needs tenancy, and producers need the relay. */
export function createManagers(options: ManagerOptions): Managers {
  const { storages, topics, clock, logger, metrics } = options;
  const tenancy = createTenancyManager(storages.tenancy, {
    clock,
    async onOrgEnded(orgId) {
      // Hosts go by their lists alone; the sweep looks too, for what a crash between the two leaves.
      await storages.work.dropHostOrgs([orgId]).catch((error) => {
        logger.warn("work.host_orgs_left_to_sweep", { error: describeError(error) });
      });
    },
    ...(options.sessionIdleMs === undefined ? {} : { sessionIdleMs: options.sessionIdleMs }),
    ...(options.sessionLifetimeMs === undefined ? {} : { sessionLifetimeMs: options.sessionLifetimeMs }),
  });
  const audit = createAuditManager(storages.audit);
  const idempotency = createIdempotencyManager(storages.idempotency, { markerRetentionMs: options.markerRetentionMs });
  const outbox = createOutboxRelay({
    storage: storages.outbox,
    audit,
    sink: () => work,
    topics,
    keyRetentionMs: options.keyRetentionMs,
    retentionMs: options.outboxRetentionMs,
    logger,
    metrics,
  });
  const work = createWorkManager({
    storage: storages.work,
    tenancy,
    audit,
    topics,
    clock,
    logger,
    metrics,
    kinds: options.kinds,
    itemRetentionMs: options.itemRetentionMs,
    keyRetentionMs: options.keyRetentionMs,
    ...(options.payloadLimitBytes === undefined ? {} : { payloadLimitBytes: options.payloadLimitBytes }),
  });
  return { tenancy, idempotency, outbox, audit, work };
}
