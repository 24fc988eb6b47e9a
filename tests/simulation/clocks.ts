/**
 * The clocks of a world: the database's, and one of each process that is off, drifts, jumps, and may stand still.
 *
 * @module
 */
import type { Clock } from "../../src/core/clock.ts";
import type { Random } from "./random.ts";
import type { Owner, Scheduler } from "./scheduler.ts";

/** Where every world begins. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

/** The database's clock: world time. Nothing waits on it. */
export class DatabaseClock implements Clock {
  readonly #scheduler: Scheduler;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  now(): number {
    return EPOCH_MS + this.#scheduler.nowMs;
  }

  monotonic(): number {
    return this.#scheduler.nowMs;
  }

  sleep(): Promise<void> {
    throw new Error("nothing waits on database time");
  }
}

/** A process's own clock. */
export class ProcessClock implements Clock {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #owner: Owner;
  readonly #rate: number;
  #aheadMs: number;
  #monotonicMs: number;
  #sinceMs: number;
  #standing = false;

  /**
   * @param options.skewMs How far wall time is ahead of the database's.
   * @param options.rate How fast it goes: 1.001 gains a second in a thousand.
   */
  constructor(
    { scheduler, random, owner }: { scheduler: Scheduler; random: Random; owner: Owner },
    options: { readonly skewMs: number; readonly rate: number },
  ) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#owner = owner;
    this.#rate = options.rate;
    this.#aheadMs = options.skewMs;
    this.#sinceMs = scheduler.nowMs;
    this.#monotonicMs = random.between(0, 100_000);
  }

  now(): number {
    return EPOCH_MS + this.#scheduler.nowMs * this.#rate + this.#aheadMs;
  }

  monotonic(): number {
    return this.#monotonicMs + (this.#standing ? 0 : (this.#scheduler.nowMs - this.#sinceMs) * this.#rate);
  }

  /** Moves wall time alone. */
  jump(ms: number): void {
    this.#aheadMs += ms;
  }

  /** Monotonic time stands still, or goes on; wall time always does. */
  stand(still: boolean): void {
    this.#monotonicMs = this.monotonic();
    this.#sinceMs = this.#scheduler.nowMs;
    this.#standing = still;
  }

  /** Timers are late by a little, as timers are. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const atMs = this.monotonic() + Math.max(ms, 0);
      const end = () => {
        event.cancelled = true;
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const look = () => {
        const leftMs = atMs - this.monotonic();
        // Monotonic time stood still meanwhile.
        if (leftMs > 0.01) event = this.#scheduler.after(leftMs / this.#rate, this.#owner, look);
        else end();
      };
      const lateMs = ms <= 0 ? 0 : this.#random.between(0, 0.5);
      let event = this.#scheduler.after(Math.max(ms, 0) / this.#rate + lateMs, this.#owner, look);
      signal?.addEventListener("abort", end, { once: true });
    });
  }
}
