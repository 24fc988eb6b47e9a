/**
 * The database's time, as a host knows it.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";

const LATEST_MS = Date.UTC(9999, 11, 31);

/**
 * The database's time now: what the last answer told, and the monotonic time since it was read. A lower bound, as the
 * answer took its way, so that leases come out shorter and never longer. The machine's wall clock has no part in it.
 */
export class DatabaseTime {
  readonly #clock: Clock;
  #offsetMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes what an answer told that was read just now. The latest counts: a database's clock may be set back. One that no
   * database has, from which a delay would lead beyond the calendar, does not.
   */
  note(databaseMs: number): void {
    if (databaseMs >= 0 && databaseMs <= LATEST_MS) this.#offsetMs = databaseMs - this.#clock.monotonic();
  }

  /** Epoch milliseconds, whole; null before the first answer. */
  now(): number | null {
    return this.#offsetMs === null ? null : Math.floor(this.#offsetMs + this.#clock.monotonic());
  }
}
