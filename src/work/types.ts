/**
 * The work item, its kinds, and what a handler sees.
 *
 * @module
 */
import type { OpContext } from "../core/context.ts";
import type { RetryPolicy } from "./rules.ts";

/** A work item's state: waiting, held by a claim, finished, dead-lettered. */
export type WorkStatus = "queued" | "claimed" | "done" | "failed";

/**
 * A payload: a JSON object. Typed loosely, so that schemas with optional fields fit; that it survives JSON exactly is
 * checked when it is enqueued.
 */
export type Payload = { readonly [key: string]: unknown };

/** One row of `queue.work_items`. Carries no org: storage returns it beside the item. */
export interface WorkItem<P = Payload> {
  /** A uuid v7, minted above storage. */
  readonly id: string;
  /** When it was made, as constructed. */
  readonly createdAt: Date;
  /** Database time of the last write. */
  readonly updatedAt: Date;
  /** Who enqueued it: whom its runs are done for. */
  readonly createdBy: string;
  /** Who wrote it last; `EMPTY_UUID` once it was enqueued. */
  readonly updatedBy: string;
  /** The name of its kind. */
  readonly kind: string;
  /** The record the item advances, when there is one. */
  readonly targetId: string | null;
  /** Unique within the org; stays taken for the key retention, beyond the item itself. 1–200 characters. */
  readonly idempotencyKey: string;
  /** What its handler is told. */
  readonly payload: P;
  /** The pool of workers that may take it. Default `default`. */
  readonly lane: string;
  /** Where it stands. */
  readonly status: WorkStatus;
  /** Lower first, 0–32767. Bands: 1–4 emergency, 5–9 high, 10 normal, 50 low. */
  readonly priority: number;
  /** For hosts that sort work by weight. Default `light`. */
  readonly weight: string;
  /** The host it would rather run on, when there is one. */
  readonly hostPreference: string | null;
  /** Not claimable before this, on database time. */
  readonly availableAt: Date;
  /** Names the worker that holds or held it, for people. Never a fence. */
  readonly claimedBy: string | null;
  /** The fence of the claim at hand, or of the last; null when the sweep took it back. */
  readonly claimToken: string | null;
  /** When the claim passes unless it is renewed; null when nobody holds it. */
  readonly leaseExpiresAt: Date | null;
  /** Runs charged; a claim charges one, release and defer give it back. */
  readonly attempts: number;
  /** Attempts after which a failure is final. */
  readonly maxAttempts: number;
  /** Claims ever made, never given back: the handler's fence. */
  readonly claims: number;
  /** Claims in a row that ended by expiry; above 0 the item begins with nothing beginning beside it. */
  readonly expiries: number;
  /** What its last run failed of, bounded; null when none did. */
  readonly lastError: string | null;
  /** Why it was handed back. */
  readonly note: string | null;
  /** Set between a dead-lettering and its audit entry. */
  readonly auditId: string | null;
  /** The request that enqueued it, when there was one. */
  readonly requestId: string | null;
  /** W3C trace context of that request, when it had one. */
  readonly traceparent: string | null;
}

/** Fields that only the manager's transitions write; whatever a caller sent there is overwritten. */
export const MANAGER_OWNED_FIELDS = [
  "status",
  "availableAt",
  "claimedBy",
  "claimToken",
  "leaseExpiresAt",
  "attempts",
  "lastError",
] as const;

/** What a caller gives to enqueue; the rest has defaults or belongs to the manager. */
export interface NewWorkItem<P = Payload> {
  /** Minted when absent. */
  readonly id?: string;
  /** The name of its kind. */
  readonly kind: string;
  /** What makes two enqueues the same one: 1–200 characters, unique within the org. */
  readonly idempotencyKey: string;
  /** Checked by the kind's schema; must survive JSON exactly. */
  readonly payload: P;
  /** The record it advances, when there is one. */
  readonly targetId?: string | null;
  /** The pool of workers that may take it. Default `default`. */
  readonly lane?: string;
  /** Lower first, 0–32767. Default 10. */
  readonly priority?: number;
  /** For hosts that sort work by weight. Default `light`. */
  readonly weight?: string;
  /** The host it would rather run on. Default none. */
  readonly hostPreference?: string | null;
  /** Default 3, 1–1000. */
  readonly maxAttempts?: number;
  /** Kept as given. Default now. */
  readonly createdAt?: Date;
  /** Kept as given. Default `createdAt`. */
  readonly updatedAt?: Date;
}

/** When an item may first be claimed: at most one of the two. */
export interface EnqueueOptions {
  /** Milliseconds from the database's now, 0 up to `MAX_DELAY_MS`. */
  readonly delayMs?: number;
  /** A point in time; in the past means now. */
  readonly notBefore?: Date;
}

/** What a kind needs of a schema. Every zod schema of an object is one. */
export interface PayloadSchema<P> {
  /** Checks a payload without throwing, and fills in defaults. */
  safeParse(payload: unknown): PayloadCheck<P>;
}

/** What a schema says of a payload: what it made of it, or what does not fit, each with its path. */
export type PayloadCheck<P> =
  | { readonly success: true; readonly data: P }
  | {
    readonly success: false;
    readonly error: { readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[] };
  };

/** A kind of work: its name, its payload's schema, and how it retries. Made by `defineKind`. */
export interface WorkKind<P extends Payload = Payload> {
  /** Upper snake case, for example `NOTIFY_SHIPMENT`. */
  readonly name: string;
  /** What a payload must look like, at enqueue and again at handle. */
  readonly schema: PayloadSchema<P>;
  /** How its retries are spaced. */
  readonly retry: RetryPolicy;
  /** Aborts, then fails, a run that takes longer. 0 means never. Default 15 min. */
  readonly timeoutMs: number;
}

/**
 * In which order items are claimed at equal priority. `due`: what is due first. `fair`: each org its turn, so that none
 * waits for another's backlog; of one org what is due first. The better priority always goes first.
 */
export type ClaimOrder = "due" | "fair";

/** What an insert met. Nothing changes on a collision. */
export type InsertOutcome = "INSERTED" | "ID_EXISTS" | "KEY_EXISTS";

/** What `enqueue` returns: the outcome, and the row that holds the id or the key. */
export interface EnqueueResult {
  /** Whether this call inserted it, or which of its keys was taken. */
  readonly outcome: InsertOutcome;
  /** The id of the item that holds the key. */
  readonly id: string;
  /** The row that holds it; null where only the key is left of it. */
  readonly item: WorkItem | null;
}

/** One claimed item with the context it runs under. */
export interface ClaimedItem {
  /** The context to run it under. */
  readonly ctx: OpContext;
  /** The item, stamped by the claim. */
  readonly item: WorkItem;
}

/** What a handler may know and obey of its run. */
export interface WorkRun {
  /** Aborts when the lease is lost, the run times out or the worker stops. A handler that ignores it cannot complete. */
  readonly signal: AbortSignal;
  /** 1 for the first run. */
  readonly attempt: number;
  /** Grows with every claim of the item: hand it to outside systems that can refuse a smaller one. */
  readonly fence: number;
  /** When the run times out, or null when its kind never does. */
  readonly deadline: Date | null;
}

/** Returned by a handler to have its item run again later, uncharged. Made by `defer`. */
export class Deferral {
  /** How long to wait, milliseconds. */
  readonly delayMs: number;
  /** Why, for people. */
  readonly note: string | null;

  /** Made by `defer`. */
  constructor(delayMs: number, note: string | null) {
    this.delayMs = delayMs;
    this.note = note;
  }
}

/** Asks, as a handler's return value, to run the item again after `delayMs`, without spending an attempt. */
export function defer(delayMs: number, note?: string): Deferral {
  return new Deferral(delayMs, note ?? null);
}

/** Runs items of one kind. */
export interface WorkHandler<P extends Payload = Payload> {
  /** The kind it runs. */
  readonly kind: WorkKind<P>;
  /**
   * Runs one item. Returning nothing completes it; returning `defer(...)` runs it later, uncharged; throwing fails it
   * (retried while attempts are left); throwing `FinalError` dead-letters it at once. The same item may run more than
   * once: key outside effects by `item.idempotencyKey`, and write records by compare-and-set.
   */
  handle(ctx: OpContext, item: WorkItem<P>, run: WorkRun): Promise<void | Deferral> | void | Deferral;
}
