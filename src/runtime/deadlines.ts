/**
 * Many deadlines, one timer. A timer and an abort signal for each run would cost more than a short handler does.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { eitherOf } from "../core/either.ts";
import { Signal } from "./signal.ts";

/** A deadline that can be taken back. */
export interface Deadline {
  readonly atMs: number;
  readonly fire: () => void;
}

/** Fires callbacks at their time. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #pending = new Set<Deadline>();
  readonly #earlier = new Signal();
  #nextMs = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `fire` in `ms` milliseconds unless it is taken back before. */
  add(ms: number, fire: () => void): Deadline {
    const deadline = { atMs: this.#clock.monotonic() + ms, fire };
    this.#pending.add(deadline);
    if (deadline.atMs < this.#nextMs) {
      this.#nextMs = deadline.atMs;
      this.#earlier.fire();
    }
    return deadline;
  }

  /** Takes a deadline back; one that has fired or was taken back before is fine. */
  remove(deadline: Deadline): void {
    this.#pending.delete(deadline);
  }

  /** Fires deadlines until `stop`. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const nowMs = this.#clock.monotonic();
      this.#nextMs = Infinity;
      for (const deadline of this.#pending) {
        if (deadline.atMs > nowMs) {
          this.#nextMs = Math.min(this.#nextMs, deadline.atMs);
          continue;
        }
        this.#pending.delete(deadline);
        deadline.fire();
      }
      await this.#sleepUntil(this.#nextMs, stop);
    }
  }

  async #sleepUntil(atMs: number, stop: AbortSignal): Promise<void> {
    if (atMs === Infinity) return await this.#earlier.wait(stop);
    const woken = new AbortController();
    using either = eitherOf(woken.signal, stop);
    const sleep = this.#clock.sleep(atMs - this.#clock.monotonic(), either.signal);
    await Promise.race([sleep, this.#earlier.wait(either.signal)]);
    woken.abort();
  }
}
