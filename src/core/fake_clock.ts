/**
 * A clock that tests move by hand.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Clock } from "./clock.ts";
import { isTurnAwaited } from "./turns.ts";

interface Sleeper {
  readonly atMs: number;
  readonly order: number;
  readonly wake: () => void;
}

/** A `Clock` that stands still until `tick` moves it. Wall and monotonic time move together unless `jumpWall` is used. */
export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #order = 0;
  readonly #sleepers = new Set<Sleeper>();

  /** Starts at `startMs`, epoch milliseconds. Default the first of January 2026. */
  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#wallMs = startMs;
  }

  /** Wall time, epoch milliseconds, as far as `tick` and `jumpWall` moved it. */
  now(): number {
    return this.#wallMs;
  }

  /** Milliseconds ticked so far. */
  monotonic(): number {
    return this.#monotonicMs;
  }

  /** Resolves once `tick` has moved past `ms`, or at once when `signal` aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper: Sleeper = { atMs: this.#monotonicMs + Math.max(ms, 0), order: this.#order++, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  /** How many sleeps are pending: lets a test wait until code under test has gone to sleep. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  /** Moves wall time alone, as a host that was set or suspended does. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  /** Moves both clocks without waking anybody, as an event loop that is blocked does; the next `tick` wakes the late. */
  block(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }

  /** Moves both clocks by `ms`, waking sleepers in order of their time and letting promises settle between them. */
  async tick(ms: number): Promise<void> {
    const end = this.#monotonicMs + ms;
    await settlePromises();
    for (;;) {
      const next = [...this.#sleepers].filter((s) =>
        s.atMs <= end
      ).sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (next === undefined) break;
      const step = Math.max(next.atMs - this.#monotonicMs, 0);
      this.#monotonicMs += step;
      this.#wallMs += step;
      next.wake();
      await settlePromises();
    }
    this.#wallMs += end - this.#monotonicMs;
    this.#monotonicMs = end;
    await settlePromises();
  }
}

// Far above what tests need; who sleeps for 0 ms again and again would hold a test up for ever.
const MOST_TURNS = 10_000;

/**
 * Lets every promise that can settle without time passing do so (macrotask turns, bounded). What waits for a turn of its
 * own, as a store that has held the thread for long does, is waited for.
 */
export async function settlePromises(turns = 5): Promise<void> {
  for (let left = turns, all = 0; left > 0 && all < MOST_TURNS; all++) {
    left = isTurnAwaited() ? turns : left - 1;
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}
