/**
 * When a run must end: its time limit, its lease, or the runner that stops.
 *
 * @module
 */
import type { Clock } from "../../core/clock.ts";
import { RunAborted } from "../../runtime/run.ts";
import type { StopReason } from "./classify.ts";

/**
 * How long a command may take to end when its lease is lost or the runner stops. Shorter than the 2 s after which the
 * runtime hands the item back without it: nobody must begin it elsewhere while it still runs here.
 */
export const ABORT_KILL_MS = 1_500;

/** What `RunStop` counts by. */
export interface StopOptions {
  /** Aborts when the lease is lost or the runner stops. */
  readonly signal: AbortSignal;
  /** From now, milliseconds; 0 never. */
  readonly timeLimitMs: number;
  /** From TERM to KILL when the time limit passes, milliseconds. */
  readonly killGraceMs: number;
  readonly clock: Clock;
}

/** The end of a run, in two steps: `soft` asks it to end (TERM), `hard` ends it (KILL). */
export class RunStop {
  readonly #soft = new AbortController();
  readonly #hard = new AbortController();
  readonly #over = new AbortController();
  readonly #o: StopOptions;
  #reason: StopReason | null = null;

  constructor(options: StopOptions) {
    this.#o = options;
    if (options.signal.aborted) this.#aborted();
    else options.signal.addEventListener("abort", this.#aborted, { once: true });
    if (options.timeLimitMs > 0) this.#after(options.timeLimitMs, () => this.#begin("timed_out", options.killGraceMs));
  }

  /** Aborts when the run is to end. */
  get soft(): AbortSignal {
    return this.#soft.signal;
  }

  /** Aborts when it has had its time. */
  get hard(): AbortSignal {
    return this.#hard.signal;
  }

  /** Why; null while it may run. The first reason stands, but for a lost lease or a stop during the grace of another. */
  get reason(): StopReason | null {
    return this.#reason;
  }

  /** Ends its timers. */
  dispose(): void {
    this.#o.signal.removeEventListener("abort", this.#aborted);
    this.#over.abort();
  }

  readonly #aborted = (): void => {
    const { reason } = this.#o.signal;
    const cause = reason instanceof RunAborted ? reason.abortCause : "DRAINED";
    const why = cause === "LEASE_LOST" ? "lease_lost" : cause === "TIMED_OUT" ? "timed_out" : "drained";
    this.#begin(why, Math.min(this.#o.killGraceMs, ABORT_KILL_MS));
  };

  #begin(reason: StopReason, graceMs: number): void {
    if (this.#reason === null || reason !== "timed_out") this.#reason = reason;
    this.#soft.abort();
    this.#after(graceMs, () => this.#hard.abort());
  }

  #after(ms: number, act: () => void): void {
    void this.#o.clock.sleep(ms, this.#over.signal).then(() => {
      if (!this.#over.signal.aborted) act();
    });
  }
}
