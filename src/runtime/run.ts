/**
 * One run of one item: its state, its abort signal, and its handler's verdict.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { FinalError, ValidationError } from "../core/errors.ts";
import { parsePayload } from "../work/kinds.ts";
import { checkRange } from "../work/rules.ts";
import {
  type ClaimedItem,
  Deferral,
  type Payload,
  type WorkHandler,
  type WorkItem,
  type WorkRun,
} from "../work/types.ts";

/** Why a run was told to stop. */
export type AbortCause = "LEASE_LOST" | "TIMED_OUT" | "DRAINED";

/** What becomes of an item when its handler has settled. */
export type Verdict =
  | { readonly type: "complete" }
  | { readonly type: "defer"; readonly delayMs: number; readonly note: string | null }
  | { readonly type: "fail"; readonly error: unknown }
  | { readonly type: "release"; readonly note: string }
  /** Another claim holds the item: nothing is written. */
  | { readonly type: "drop" };

/** The reason of a run's abort signal. */
export class RunAborted extends Error {
  override readonly name = "RunAborted";
  readonly abortCause: AbortCause;

  constructor(cause: AbortCause, message: string) {
    super(message);
    this.abortCause = cause;
  }
}

function nothing(): void {}

/** One run, from claim to acknowledged settlement. Its lease is kept all that time. */
export class Run {
  readonly claimed: ClaimedItem;
  readonly #clock: Clock;
  /** Made when somebody asks for the signal: a short handler that never looks pays nothing. */
  #controller: AbortController | null = null;
  #reason: RunAborted | null = null;
  #cause: AbortCause | null = null;
  #abortedAtMs: number | null = null;
  #sentMonotonicMs: number;
  #sentWallMs: number;
  /** When the handler was called, monotonic milliseconds; null before. */
  startedMs: number | null = null;
  /** Whether the handler has returned or thrown. */
  handlerSettled = false;
  /** Whether the run counts against the capacity: from its begin until its handler has settled. */
  holdsSlot = false;
  /** Whether the outcome is written, refused or given up: the lease is no longer kept. */
  released = false;
  /** Whether the item needs no lease any more: it is finished under this very claim, or gone. */
  finishedElsewhere = false;
  /** Whether it was seen to be finished under this very claim. */
  finishedUnderClaim = false;
  /** Called once, when the run is told to stop. */
  onAbort: (run: Run) => void = nothing;
  /** Settles when the item was handed back while its handler, told to stop, went on; null while it was not. */
  abandoned: Promise<void> | null = null;
  /** Called at each successful renewal with when it was sent, monotonic milliseconds. */
  onRenewed: (sentMs: number) => void = nothing;

  /** @param sentAt When the claim that made this run was sent. */
  constructor(claimed: ClaimedItem, clock: Clock, sentAt: { monotonicMs: number; wallMs: number }) {
    this.claimed = claimed;
    this.#clock = clock;
    this.#sentMonotonicMs = sentAt.monotonicMs;
    this.#sentWallMs = sentAt.wallMs;
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#reason !== null) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Why the run was told to stop; null while it was not. */
  get cause(): AbortCause | null {
    return this.#cause;
  }

  /** How long ago the run was told to stop, milliseconds; 0 while it was not. */
  get abortedForMs(): number {
    return this.#abortedAtMs === null ? 0 : this.#clock.monotonic() - this.#abortedAtMs;
  }

  /**
   * Milliseconds since the last successful renewal was sent: the larger of monotonic and wall time, so that a host that
   * slept (monotonic time stands still) and a wall clock set back are both seen.
   */
  get unrenewedMs(): number {
    return Math.max(this.#clock.monotonic() - this.#sentMonotonicMs, this.#clock.now() - this.#sentWallMs);
  }

  /** Notes a successful renewal by when it was sent; an answer that arrives late never counts backwards. */
  renewed(sentAt: { monotonicMs: number; wallMs: number }): void {
    if (sentAt.monotonicMs <= this.#sentMonotonicMs) return;
    this.#sentMonotonicMs = sentAt.monotonicMs;
    this.#sentWallMs = sentAt.wallMs;
    this.onRenewed(sentAt.monotonicMs);
  }

  /** Tells the handler to stop. The first cause stands. */
  abort(cause: AbortCause, message: string): void {
    if (this.#cause !== null) return;
    this.#cause = cause;
    this.#abortedAtMs = this.#clock.monotonic();
    this.#reason = new RunAborted(cause, message);
    this.#controller?.abort(this.#reason);
    this.onAbort(this);
  }
}

/**
 * Runs the handler to its end and says what becomes of the item. Never throws. A handler that returns after its signal
 * fired cannot complete: the cause of the abort decides.
 */
export async function runHandler(run: Run, handler: WorkHandler, clock: Clock): Promise<Verdict> {
  const { ctx, item } = run.claimed;
  const { timeoutMs } = handler.kind;
  try {
    const payload = fittingPayload(handler, item);
    const result = await handler.handle(ctx, { ...item, payload }, new RunView(run, timeoutMs, clock));
    if (run.cause !== null) return abortedVerdict(run.cause, timeoutMs);
    return verdictOf(result);
  } catch (error) {
    if (run.cause !== null) return abortedVerdict(run.cause, timeoutMs);
    return { type: "fail", error };
  } finally {
    run.handlerSettled = true;
  }
}

/**
 * A payload that does not fit its kind's schema will not fit it at the next attempt either. Told apart here and not by
 * the error: a handler may throw the like of it about an item that it enqueues.
 */
function fittingPayload(handler: WorkHandler, item: WorkItem): Payload {
  try {
    return parsePayload(handler.kind, item.payload);
  } catch (error) {
    throw error instanceof ValidationError ? new FinalError(error.message, { cause: error }) : error;
  }
}

/** What a handler sees of its run. */
class RunView implements WorkRun {
  readonly #run: Run;
  readonly attempt: number;
  readonly fence: number;
  readonly #deadlineMs: number | null;

  constructor(run: Run, timeoutMs: number, clock: Clock) {
    this.#run = run;
    this.attempt = run.claimed.item.attempts;
    this.fence = run.claimed.item.claims;
    this.#deadlineMs = timeoutMs > 0 ? clock.now() + timeoutMs : null;
  }

  get deadline(): Date | null {
    return this.#deadlineMs === null ? null : new Date(this.#deadlineMs);
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }
}

/** What an abort makes of its item once the handler has settled, or has been given up on. */
export function abortedVerdict(cause: AbortCause, timeoutMs: number): Verdict {
  switch (cause) {
    case "LEASE_LOST":
      return { type: "drop" };
    case "TIMED_OUT":
      return { type: "fail", error: new Error(`the run timed out after ${timeoutMs} ms`) };
    case "DRAINED":
      return { type: "release", note: "handed back: its worker was stopped" };
  }
}

function verdictOf(result: unknown): Verdict {
  if (result === undefined) return { type: "complete" };
  // Out of range is thrown, and so fails the run: refused later, by the write, it would cost the item its lease.
  if (result instanceof Deferral) {
    return { type: "defer", delayMs: checkRange("delayMs", result.delayMs), note: result.note };
  }
  const error = new FinalError(
    `Cannot use the handler's return value: return nothing to complete, or defer(delayMs, note?); got a ${typeof result}`,
  );
  return { type: "fail", error };
}
