/**
 * A latch that wakes whoever waits: fired while nobody waits, it wakes the next one at once.
 *
 * @module
 */

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
