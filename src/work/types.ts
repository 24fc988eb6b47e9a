/**
 * The work item, its kinds, and what a handler sees.
 *
 * @module
 */
import type { z } from "zod";
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
  readonly id: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly createdBy: string;
  readonly updatedBy: string;
  readonly kind: string;
  /** The record the item advances, when there is one. */
  readonly targetId: string | null;
  /** Unique within the org; stays taken for the key retention, beyond the item itself. 1–200 characters. */
  readonly idempotencyKey: string;
  readonly payload: P;
  /** The pool of workers that may take it. Default `default`. */
  readonly lane: string;
  readonly status: WorkStatus;
  /** Lower first, 0–32767. Bands: 1–4 emergency, 5–9 high, 10 normal, 50 low. */
  readonly priority: number;
  /** For hosts that sort work by weight. Default `light`. */
  readonly weight: string;
  readonly hostPreference: string | null;
  readonly availableAt: Date;
  readonly claimedBy: string | null;
  readonly claimToken: string | null;
  readonly leaseExpiresAt: Date | null;
  /** Runs charged; a claim charges one, release and defer give it back. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** Claims ever made, never given back: the handler's fence. */
  readonly claims: number;
  /** Claims in a row that ended by expiry; above 0 the item runs with nothing beginning beside it. */
  readonly expiries: number;
  readonly lastError: string | null;
  /** Why it was handed back. */
  readonly note: string | null;
  /** Set between a dead-lettering and its audit entry. */
  readonly auditId: string | null;
  readonly requestId: string | null;
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
  readonly kind: string;
  readonly idempotencyKey: string;
  readonly payload: P;
  readonly targetId?: string | null;
  readonly lane?: string;
  readonly priority?: number;
  readonly weight?: string;
  readonly hostPreference?: string | null;
  /** Default 3, 1–1000. */
  readonly maxAttempts?: number;
  readonly createdAt?: Date;
  readonly updatedAt?: Date;
}

/** When an item may first be claimed: at most one of the two. */
export interface EnqueueOptions {
  /** Milliseconds from the database's now, 0 up to `MAX_DELAY_MS`. */
  readonly delayMs?: number;
  /** A point in time; in the past means now. */
  readonly notBefore?: Date;
}

/** A kind of work: its name, its payload's schema, and how it retries. Made by `defineKind`. */
export interface WorkKind<P extends Payload = Payload> {
  readonly name: string;
  readonly schema: z.ZodType<P>;
  readonly retry: RetryPolicy;
  /** Aborts, then fails, a run that takes longer. 0 means never. Default 15 min. */
  readonly timeoutMs: number;
}

/** What an insert met. Nothing changes on a collision. */
export type InsertOutcome = "INSERTED" | "ID_EXISTS" | "KEY_EXISTS";

/** What `enqueue` returns: the outcome, and the row that holds the id or the key. */
export interface EnqueueResult {
  readonly outcome: InsertOutcome;
  /** The id of the item that holds the key. */
  readonly id: string;
  /** The row that holds it; null where only the key is left of it. */
  readonly item: WorkItem | null;
}

/** One claimed item with the context it runs under. */
export interface ClaimedItem {
  readonly ctx: OpContext;
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
  readonly delayMs: number;
  readonly note: string | null;

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
  readonly kind: WorkKind<P>;
  /**
   * Runs one item. Returning nothing completes it; returning `defer(...)` runs it later, uncharged; throwing fails it
   * (retried while attempts are left); throwing `FinalError` dead-letters it at once. The same item may run more than
   * once: key outside effects by `item.idempotencyKey`, and write records by compare-and-set.
   */
  handle(ctx: OpContext, item: WorkItem<P>, run: WorkRun): Promise<void | Deferral> | void | Deferral;
}
