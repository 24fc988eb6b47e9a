/**
 * A latch that wakes whoever waits: fired while nobody waits, it wakes the next one at once.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";

// Without a reason each abort makes an error with its stack.
const OVER = "the wait is over";

/** Wakes its waiters. */
export class Signal {
  #fired = false;
  #waiters = new Set<() => void>();

  /** Wakes every waiter; with none, the next `wait` returns at once. */
  fire(): void {
    if (this.#waiters.size === 0) {
      this.#fired = true;
      return;
    }
    for (const wake of [...this.#waiters]) wake();
  }

  /** Forgets that it was fired while nobody waited; says whether it was. */
  take(): boolean {
    const fired = this.#fired;
    this.#fired = false;
    return fired;
  }

  /** True when it fired before `ms` had passed; false then, or when `stop` aborts. */
  within(ms: number, { clock, stop }: { readonly clock: Clock; readonly stop: AbortSignal }): Promise<boolean> {
    if (this.take()) return Promise.resolve(true);
    if (stop.aborted) return Promise.resolve(false);
    // By hand: a race over a combined abort signal costs a busy loop more than a statement does.
    return new Promise((resolve) => {
      const timer = new AbortController();
      const end = (woken: boolean) => {
        this.#waiters.delete(wake);
        stop.removeEventListener("abort", halt);
        if (!timer.signal.aborted) timer.abort(OVER);
        resolve(woken);
      };
      const wake = () => end(true);
      const halt = () => end(false);
      this.#waiters.add(wake);
      stop.addEventListener("abort", halt, { once: true });
      void clock.sleep(ms, timer.signal).then(halt);
    });
  }

  /** Resolves when fired, or when `stop` aborts. */
  wait(stop: AbortSignal): Promise<void> {
    if (this.#fired) {
      this.#fired = false;
      return Promise.resolve();
    }
    if (stop.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiters.delete(wake);
        stop.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiters.add(wake);
      stop.addEventListener("abort", wake, { once: true });
    });
  }
}
