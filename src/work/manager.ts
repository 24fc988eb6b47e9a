/**
 * Operations on work items: the one way in for producers, workers and the sweep.
 *
 * @module
 */
import type { OpContext, RequestContext } from "../core/context.ts";
import type { RelaySink } from "../outbox/types.ts";
import type { CallerTransaction, ClaimState, HostGauge, Promotion, QueueGauges, RequeueCounts } from "./storage.ts";
import type {
  ClaimedItem,
  ClaimOrder,
  EnqueueOptions,
  EnqueueResult,
  NewWorkItem,
  Payload,
  WorkItem,
} from "./types.ts";

/** What `claim` takes. */
export interface ClaimOptions {
  /** The lane to take from. */
  readonly lane: string;
  /** The kinds to take; at least one. */
  readonly kinds: readonly string[];
  /** Names the worker in `claimed_by`, 1–200 characters. */
  readonly worker: string;
  /** 1 000–3 600 000. */
  readonly leaseMs: number;
  /** 1–1 000. */
  readonly limit: number;
  /** Default `due`; `fair` needs the optional chain `fair`. */
  readonly order?: ClaimOrder;
}

/** What `fail` decided. `FINISHED`: the item was finished under this very claim before, and stays as it is. */
export type FailOutcome = "RETRIED" | "DEAD_LETTERED" | "FINISHED";

/** Operations on work items. */
export interface WorkManager extends RelaySink {
  /**
   * Creates an item. An existing id or key changes nothing and is reported; the row that holds it is returned, whatever
   * its status.
   *
   * @throws {ValidationError} Naming the field that was refused, before anything is written.
   */
  enqueue<P extends Payload>(ctx: OpContext, item: NewWorkItem<P>, options?: EnqueueOptions): Promise<EnqueueResult>;
  /** `enqueue` for many items of one org, in chunks of one statement; one result an item, in order. */
  enqueueMany(
    ctx: OpContext,
    items: readonly NewWorkItem[],
    options?: EnqueueOptions,
  ): Promise<(EnqueueResult | Error)[]>;
  /** `enqueue` inside the caller's own Postgres transaction; the hint is sent by the transaction's commit. */
  enqueueIn<P extends Payload>(
    tx: CallerTransaction,
    ctx: OpContext,
    item: NewWorkItem<P>,
    options?: EnqueueOptions,
  ): Promise<EnqueueResult>;
  /**
   * Claims up to `limit` items, each with the context it runs under. Items whose org is gone are failed and left out;
   * if the contexts cannot be read the whole batch is released and the error thrown.
   */
  claim(rctx: RequestContext, options: ClaimOptions): Promise<ClaimedItem[]>;
  /** Marks a claimed item done. Repeating it is success. @throws {ConflictError} The claim is no longer held. */
  complete(ctx: OpContext, item: WorkItem): Promise<void>;
  /** Retries later, or dead-letters when attempts are exhausted or `error` is a `FinalError`. @throws {ConflictError} */
  fail(ctx: OpContext, item: WorkItem, error: unknown): Promise<FailOutcome>;
  /** Hands back to run after `delayMs`, uncharged. @throws {ConflictError} */
  defer(ctx: OpContext, item: WorkItem, delayMs: number, note?: string | null): Promise<void>;
  /** Hands back uncharged, claimable after `delayMs` (default 0). @throws {ConflictError} */
  release(ctx: OpContext, item: WorkItem, note?: string | null, delayMs?: number): Promise<void>;
  /** Extends the lease to database now + `leaseMs`. @throws {ConflictError} The claim is no longer held. */
  extendLease(ctx: OpContext, item: WorkItem, leaseMs: number): Promise<void>;
  /** `extendLease` for many items in one statement: true where renewed, false where refused. */
  extendLeases(claimed: readonly ClaimedItem[], leaseMs: number): Promise<boolean[]>;
  /** Where an item's claim stands, for a holder whose renewal was refused. Null when the row is gone. */
  readClaim(ctx: OpContext, item: WorkItem): Promise<ClaimState | null>;
  /** An item of the context's org. @throws {ValidationError} `id` is no uuid. @throws {NotFoundError} */
  read(ctx: OpContext, id: string): Promise<WorkItem>;
  /** Moves items that became due into the claim's reach, at most `limit`. */
  promote(rctx: RequestContext, limit: number): Promise<Promotion>;
  /** The sweep: takes back expired claims of the context's org. */
  requeueStale(ctx: OpContext, limit?: number): Promise<RequeueCounts>;
  /** The sweep: orgs with expired claims, live ones as service contexts, ended ones as ids. */
  staleOrgs(rctx: RequestContext, limit: number): Promise<{ live: OpContext[]; ended: string[] }>;
  /** The sweep: fails expired claims of ended orgs. */
  failStaleOfEnded(rctx: RequestContext, orgIds: readonly string[]): Promise<number>;
  /** The sweep: writes audit entries a crash left unwritten. Returns how many. */
  auditDeadLetters(rctx: RequestContext, limit?: number): Promise<number>;
  /** The sweep: deletes finished items past the item retention, one batch. */
  purgeItems(rctx: RequestContext): Promise<number>;
  /** The sweep: frees keys past the key retention whose item is gone, one batch. */
  purgeKeys(rctx: RequestContext): Promise<number>;
  /** The sweep: moves what hosts completed to where completions go, one batch. Returns how many. */
  archiveDone(rctx: RequestContext): Promise<number>;
  /** The sweep: deletes hosts' attempts past the item retention, one batch. */
  purgeAttempts(rctx: RequestContext): Promise<number>;
  /** The sweep: takes orgs that have ended off hosts' lists. Returns how many hosts that changed. */
  pruneHostOrgs(rctx: RequestContext): Promise<number>;
  /** The sweep's gauges of hosts, at most `limit` of them, by name. */
  readHosts(rctx: RequestContext, limit: number): Promise<HostGauge[]>;
  /** The sweep's gauges. */
  readGauges(rctx: RequestContext): Promise<QueueGauges>;
  /** Service contexts of live orgs, a page at a time. */
  maintenanceContexts(rctx: RequestContext, options: { afterOrgId?: string; limit: number }): Promise<OpContext[]>;
  /** Of the given sweep steps, those this worker may run now: each goes to one worker an interval. */
  takeSweepSteps(rctx: RequestContext, steps: readonly string[], intervalMs: number): Promise<string[]>;
}
