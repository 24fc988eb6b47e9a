/**
 * The work manager over a `WorkStorage`.
 *
 * @module
 */
import type { AuditEntry, AuditManager } from "../audit/types.ts";
import type { Clock } from "../core/clock.ts";
import type { OpContext, RequestContext } from "../core/context.ts";
import { describeError } from "../core/describe_error.ts";
import {
  ConflictError,
  FinalError,
  invariant,
  isInstance,
  NotFoundError,
  UnavailableError,
  ValidationError,
} from "../core/errors.ts";
import { EMPTY_UUID, newId } from "../core/ids.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Topics } from "../infra/topics.ts";
import type { OutboxRow } from "../outbox/types.ts";
import type { TenancyManager } from "../tenancy/types.ts";
import { Enqueuer } from "./enqueuer.ts";
import type { ClaimOptions, FailOutcome, WorkManager } from "./manager.ts";
import { pruneHostOrgs } from "./host_orgs.ts";
import { LostClaims, releaseAll } from "./lost_claims.ts";
import { label, text, uuid } from "./new_item.ts";
import { checkRange, DEFAULT_RETRY, isExhausted, retryDelay } from "./rules.ts";
import { claimRef, Settler } from "./settler.ts";
import type {
  CallerTransaction,
  ClaimState,
  HostGauge,
  OwnedItem,
  Promotion,
  QueueGauges,
  RequeueCounts,
  Unaudited,
  WorkStorage,
} from "./storage.ts";
import type { ClaimedItem, EnqueueOptions, EnqueueResult, NewWorkItem, Payload, WorkItem, WorkKind } from "./types.ts";

/** What a work manager is made of. */
export interface WorkManagerOptions {
  readonly storage: WorkStorage;
  readonly tenancy: TenancyManager;
  /** Null where the core area is out of reach, on a host: entries are left to the sweep of workers with a database. */
  readonly audit: AuditManager | null;
  readonly topics: Topics;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The kinds this build knows: what may be enqueued, and how each retries. */
  readonly kinds: readonly WorkKind[];
  /** How long finished items are kept, milliseconds. At 0 a completed item leaves with its completion. */
  readonly itemRetentionMs: number;
  /** How long keys stay taken, milliseconds; longer than any outbox row may wait. */
  readonly keyRetentionMs: number;
  /** The largest payload, encoded. Default 256 KiB. */
  readonly payloadLimitBytes?: number;
  /** Randomness for retry delays, in [0, 1). Default `Math.random`. */
  readonly random?: () => number;
}

/** The default cap of a payload, 256 KiB. */
export const DEFAULT_PAYLOAD_LIMIT_BYTES = 262_144;

const SWEEP_BATCH = 1_000;
// A host reads back within its call's time what became of a completion whose answer was lost.
const ARCHIVE_AFTER_MS = 60_000;
const ORPHANED = "the item's org is gone";
// How often one claim goes on past orphans; what is left of them waits for the next one.
const MAX_ORPHAN_ROUNDS = 20;

/** What one statement brought: what may be handed out, and how many rows were orphans. */
interface ClaimBatch {
  readonly claimed: ClaimedItem[];
  readonly orphans: number;
}

/** Builds the work manager. */
export function createWorkManager(options: WorkManagerOptions): WorkManager {
  return new WorkManagerImpl(options);
}

class WorkManagerImpl implements WorkManager {
  readonly #o: WorkManagerOptions;
  readonly #storage: WorkStorage;
  readonly #kinds: ReadonlyMap<string, WorkKind>;
  readonly #enqueuer: Enqueuer;
  readonly #settler: Settler;
  readonly #random: () => number;
  readonly #lost: LostClaims;

  constructor(options: WorkManagerOptions) {
    this.#o = options;
    this.#storage = options.storage;
    this.#kinds = new Map(options.kinds.map((kind) => [kind.name, kind]));
    this.#random = options.random ?? Math.random;
    this.#settler = new Settler(options.storage);
    this.#lost = new LostClaims(options.storage, options.logger);
    this.#enqueuer = new Enqueuer({
      storage: options.storage,
      kinds: this.#kinds,
      topics: options.topics,
      clock: options.clock,
      metrics: options.metrics,
      payloadLimitBytes: options.payloadLimitBytes ?? DEFAULT_PAYLOAD_LIMIT_BYTES,
    });
  }

  enqueue<P extends Payload>(ctx: OpContext, item: NewWorkItem<P>, options?: EnqueueOptions): Promise<EnqueueResult> {
    return this.#enqueuer.enqueue(ctx, item, options);
  }

  enqueueMany(
    ctx: OpContext,
    items: readonly NewWorkItem[],
    options?: EnqueueOptions,
  ): Promise<(EnqueueResult | Error)[]> {
    return this.#enqueuer.enqueueMany(ctx, items, options);
  }

  enqueueIn<P extends Payload>(
    tx: CallerTransaction,
    ctx: OpContext,
    item: NewWorkItem<P>,
    options?: EnqueueOptions,
  ): Promise<EnqueueResult> {
    return this.#enqueuer.enqueueIn(tx, ctx, item, options);
  }

  enqueueRelayed(orgId: string, row: OutboxRow): Promise<"ENQUEUED" | "EXISTS" | "UNKNOWN_KIND"> {
    return this.#enqueuer.enqueueRelayed(orgId, row);
  }

  async claim(rctx: RequestContext, options: ClaimOptions): Promise<ClaimedItem[]> {
    label("lane", options.lane);
    text("worker", options.worker, 200);
    checkRange("leaseMs", options.leaseMs);
    checkRange("limit", options.limit);
    if (options.kinds.length === 0) {
      throw new ValidationError("kinds", "Cannot claim without a kind: name at least one");
    }
    for (const kind of options.kinds) {
      if (!this.#kinds.has(kind)) {
        throw new ValidationError("kinds", `Cannot claim kind "${kind}": it is not known here`);
      }
    }
    // A kind named twice is asked for once.
    const wanted = { ...options, kinds: [...new Set(options.kinds)] };
    const recovered = await this.#lost.recover(wanted);
    if (recovered.length > 0) return (await this.#withContexts(rctx, recovered)).claimed;
    const claimed: ClaimedItem[] = [];
    // Orphans are failed and left out, and the claim moves on: an ended org's backlog must not hide the others'.
    for (let round = 0; round < MAX_ORPHAN_ROUNDS; round++) {
      const limit = options.limit - claimed.length;
      const batch = await this.#claimBatch(rctx, { ...wanted, limit }).catch((error) => {
        // What is held already is handed out: nobody else knows its tokens.
        if (claimed.length === 0) throw error;
        this.#o.logger.warn("work.claim_cut_short", { error: describeError(error) });
        return { claimed: [], orphans: 0 };
      });
      claimed.push(...batch.claimed);
      if (batch.orphans === 0 || claimed.length === options.limit) break;
    }
    return claimed;
  }

  complete(ctx: OpContext, item: WorkItem): Promise<void> {
    return this.#settler.complete(ctx.orgId, item, this.#o.itemRetentionMs > 0);
  }

  async fail(ctx: OpContext, item: WorkItem, error: unknown): Promise<FailOutcome> {
    const ref = claimRef(ctx.orgId, item);
    const described = describeError(error);
    if (isInstance(error, FinalError) || isExhausted(item.attempts, item.maxAttempts)) {
      const auditId = newId();
      const outcome = await this.#settler.settle({ ...ref, to: "failed", error: described, auditId });
      // The row holds the audit id of the first write; under this one the entry would stand twice.
      if (outcome === "ALREADY") return "DEAD_LETTERED";
      const { kind, attempts, requestId } = item;
      const row = { orgId: ref.orgId, id: ref.id, auditId, kind, attempts, requestId, lastError: described };
      await this.#auditQuietly(row, ctx.app.version);
      return "DEAD_LETTERED";
    }
    const policy = this.#kinds.get(item.kind)?.retry ?? DEFAULT_RETRY;
    const delayMs = retryDelay(item.attempts, policy, this.#random());
    const outcome = await this.#settler.settle({ ...ref, to: "retry", delayMs, error: described });
    return outcome === "ALREADY" ? "FINISHED" : "RETRIED";
  }

  async defer(ctx: OpContext, item: WorkItem, delayMs: number, note: string | null = null): Promise<void> {
    checkRange("delayMs", delayMs);
    await this.#settler.settle({
      ...claimRef(ctx.orgId, item),
      to: "back",
      delayMs,
      note: note === null ? null : describeError(note),
      ran: true,
    });
  }

  async release(ctx: OpContext, item: WorkItem, note: string | null = null, delayMs = 0): Promise<void> {
    checkRange("delayMs", delayMs);
    await this.#settler.settle({
      ...claimRef(ctx.orgId, item),
      to: "back",
      delayMs,
      note: note === null ? null : describeError(note),
      ran: false,
    });
    if (delayMs === 0) void this.#o.topics.publish("WORK_AVAILABLE", { lane: item.lane });
  }

  async extendLease(ctx: OpContext, item: WorkItem, leaseMs: number): Promise<void> {
    const [renewed] = await this.extendLeases([{ ctx, item }], leaseMs);
    if (renewed !== true) {
      throw new ConflictError(
        `Cannot extend the lease of item ${item.id}: it has passed or another claim holds the item; stop the run now`,
      );
    }
  }

  async extendLeases(claimed: readonly ClaimedItem[], leaseMs: number): Promise<boolean[]> {
    checkRange("leaseMs", leaseMs);
    const refs = claimed.map(({ ctx, item }) => claimRef(ctx.orgId, item));
    const outcomes = await this.#storage.extendLeases(refs, leaseMs);
    return outcomes.map((outcome) => outcome === "WRITTEN");
  }

  async readClaim(ctx: OpContext, item: WorkItem): Promise<ClaimState | null> {
    const [state] = await this.#storage.readClaims([{ orgId: ctx.orgId, id: item.id }]);
    return state ?? null;
  }

  async read(ctx: OpContext, id: string): Promise<WorkItem> {
    const item = await this.#storage.readItem(ctx.orgId, uuid("id", id));
    if (item === null) throw new NotFoundError(`There is no item ${id} in org ${ctx.orgId}`);
    return item;
  }

  promote(_rctx: RequestContext, limit: number): Promise<Promotion> {
    return this.#storage.promote(checkRange("limit", limit));
  }

  async requeueStale(ctx: OpContext, limit = SWEEP_BATCH): Promise<RequeueCounts> {
    const counts = await this.#storage.requeueStale(ctx.orgId, checkRange("limit", limit), DEFAULT_RETRY);
    if (counts.requeued > 0) {
      // Claimable at once or later, by whoever is free: they must learn of it, or of its due time. Lanes are not told.
      void this.#o.topics.publish("WORK_AVAILABLE", { lane: null });
      this.#o.metrics.count("laneway_items_requeued_total", { outcome: "requeued" }, counts.requeued);
    }
    if (counts.deadLettered > 0) {
      this.#o.metrics.count("laneway_items_requeued_total", { outcome: "dead_lettered" }, counts.deadLettered);
    }
    return counts;
  }

  async staleOrgs(rctx: RequestContext, limit: number): Promise<{ live: OpContext[]; ended: string[] }> {
    const orgIds = await this.#storage.orgsWithStale(checkRange("limit", limit));
    if (orgIds.length === 0) return { live: [], ended: [] };
    const live = await this.#o.tenancy.serviceContextsOf(rctx, orgIds);
    const alive = new Set(live.map((ctx) => ctx.orgId));
    return { live, ended: orgIds.filter((id) => !alive.has(id)) };
  }

  failStaleOfEnded(_rctx: RequestContext, orgIds: readonly string[]): Promise<number> {
    if (orgIds.length === 0) return Promise.resolve(0);
    return this.#storage.failStaleOf(orgIds, ORPHANED, SWEEP_BATCH);
  }

  async auditDeadLetters(rctx: RequestContext, limit = SWEEP_BATCH): Promise<number> {
    const rows = await this.#storage.readUnaudited(checkRange("limit", limit));
    if (rows.length === 0) return 0;
    await this.#appendAudit(rctx, rows);
    return rows.length;
  }

  purgeItems(_rctx: RequestContext): Promise<number> {
    return this.#storage.purgeItems(this.#o.itemRetentionMs, SWEEP_BATCH);
  }

  purgeKeys(_rctx: RequestContext): Promise<number> {
    return this.#storage.purgeKeys(this.#o.keyRetentionMs, SWEEP_BATCH);
  }

  archiveDone(_rctx: RequestContext): Promise<number> {
    return this.#storage.archiveDone(ARCHIVE_AFTER_MS, { limit: SWEEP_BATCH, keep: this.#o.itemRetentionMs > 0 });
  }

  purgeAttempts(_rctx: RequestContext): Promise<number> {
    return this.#storage.purgeAttempts(this.#o.itemRetentionMs, SWEEP_BATCH);
  }

  pruneHostOrgs(rctx: RequestContext): Promise<number> {
    return pruneHostOrgs(rctx, this.#o);
  }

  readHosts(_rctx: RequestContext, limit: number): Promise<HostGauge[]> {
    return this.#storage.readHosts(checkRange("limit", limit));
  }

  readGauges(_rctx: RequestContext): Promise<QueueGauges> {
    return this.#storage.readGauges();
  }

  maintenanceContexts(rctx: RequestContext, options: { afterOrgId?: string; limit: number }): Promise<OpContext[]> {
    return this.#o.tenancy.serviceContexts(rctx, options);
  }

  takeSweepSteps(_rctx: RequestContext, steps: readonly string[], intervalMs: number): Promise<string[]> {
    return this.#storage.takeSweepSteps(steps, intervalMs);
  }

  async #claimBatch(rctx: RequestContext, options: ClaimOptions): Promise<ClaimBatch> {
    const request = { ...options, token: newId() };
    let rows: OwnedItem[];
    try {
      rows = await this.#storage.claim(request);
    } catch (error) {
      if (error instanceof UnavailableError && error.outcome === "unknown") this.#lost.remember(request);
      throw error;
    }
    return await this.#withContexts(rctx, rows);
  }

  async #withContexts(
    rctx: RequestContext,
    rows: readonly OwnedItem[],
  ): Promise<ClaimBatch> {
    if (rows.length === 0) return { claimed: [], orphans: 0 };
    const subjects = rows.map(({ orgId, item }) => ({
      orgId,
      userId: item.createdBy,
      causedByRequestId: item.requestId,
      traceparent: item.traceparent,
    }));
    let contexts: (OpContext | NotFoundError)[];
    try {
      contexts = await this.#o.tenancy.claimContexts(rctx, subjects);
    } catch (error) {
      await releaseAll(rows, "released: the contexts of its batch could not be read", this.#o);
      throw error;
    }
    invariant(contexts.length === rows.length, "every claimed row has a context or a refusal");
    const claimed: ClaimedItem[] = [];
    const orphaned: OwnedItem[] = [];
    rows.forEach((row, i) => {
      const ctx = contexts[i];
      if (ctx === undefined || ctx instanceof NotFoundError) orphaned.push(row);
      else claimed.push({ ctx, item: row.item });
    });
    await this.#failOrphaned(orphaned);
    return { claimed, orphans: orphaned.length };
  }

  async #failOrphaned(rows: readonly OwnedItem[]): Promise<void> {
    if (rows.length === 0) return;
    try {
      await this.#storage.failOrphaned(rows.map(({ orgId, item }) => claimRef(orgId, item)), ORPHANED);
      for (const { item } of rows) this.#o.metrics.count("laneway_items_orphaned_total", { kind: item.kind });
    } catch (error) {
      // Never handed out; the sweep fails them once their leases expire.
      this.#o.logger.warn("work.orphans_not_failed", { items: rows.length, error: describeError(error) });
    }
  }

  async #auditQuietly(row: Unaudited, app: string): Promise<void> {
    if (this.#o.audit === null) return;
    try {
      await this.#appendAudit(this.#o.tenancy.requestContext({ type: "WORKER", version: app }), [row]);
    } catch (error) {
      // The row keeps its audit id, so the sweep writes the entry.
      this.#o.logger.warn("work.audit_left_to_sweep", { item: row.id, error: describeError(error) });
    }
  }

  async #appendAudit(rctx: RequestContext, rows: readonly Unaudited[]): Promise<void> {
    const { audit, clock } = this.#o;
    invariant(audit !== null, "a host's storage told of no dead letters to audit");
    const createdAt = new Date(clock.now());
    const entries = rows.map((row): AuditEntry => ({
      id: row.auditId,
      orgId: row.orgId,
      actorId: EMPTY_UUID,
      action: "WORK_DEAD_LETTERED",
      subjectType: "work_item",
      subjectId: row.id,
      requestId: row.requestId,
      app: rctx.app.version,
      detail: { kind: row.kind, attempts: row.attempts, error: row.lastError },
      createdAt,
    }));
    await audit.appendEntries(rctx, entries);
    await this.#storage.clearAudit(rows);
  }
}
