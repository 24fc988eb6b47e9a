/**
 * A latch that wakes whoever waits: fired while nobody waits, it wakes the next one at once.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";

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
  async within(ms: number, { clock, stop }: { readonly clock: Clock; readonly stop: AbortSignal }): Promise<boolean> {
    const timer = new AbortController();
    let woken = false;
    const wake = this.wait(timer.signal).then(() => woken = !timer.signal.aborted);
    await Promise.race([clock.sleep(ms, AbortSignal.any([timer.signal, stop])), wake]);
    timer.abort();
    return woken;
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
