/**
 * Claiming ahead: with handlers that take a millisecond, a worker that claims only for its free slots spends its time on
 * round trips (6,000 items a second at a capacity of 10, against 20,000). So it claims a few more than it has slots for:
 * as many as its handlers end within `aheadMs`, by how many ended lately. An item claimed ahead waits about that long;
 * long handlers make it none. Grows by doubling, so that a few quick items in front of long ones hoard little, and what
 * has waited `LONGEST_WAIT_MS` all the same is handed back for others. The idea is graphile-worker's local queue, whose
 * size is fixed.
 *
 * @module
 */
import type { Run } from "./run.ts";

/** How long an item may wait for its slot before it is handed back, milliseconds. */
export const LONGEST_WAIT_MS = 1_000;

/** Rates are taken over at least this long, milliseconds. */
const WINDOW_MS = 10;
const FIRST = 10;
const MOST = 1_000;

/** Items that are claimed and wait for a slot, and how many may. */
export class ClaimAhead {
  readonly #aheadMs: number;
  readonly #waiting: { readonly run: Run; readonly sinceMs: number }[] = [];
  #ended = 0;
  #windowFromMs = 0;
  #allowed = 0;

  /** @param aheadMs How long an item claimed ahead may be expected to wait, milliseconds; 0 claims none ahead. */
  constructor(aheadMs: number) {
    this.#aheadMs = aheadMs;
  }

  /** How many items wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Notes that a handler ended. */
  ended(): void {
    this.#ended++;
  }

  /** How many items may be claimed ahead now; monotonic milliseconds. */
  allowed(nowMs: number): number {
    const tookMs = nowMs - this.#windowFromMs;
    if (tookMs >= WINDOW_MS) {
      const wanted = Math.min(Math.floor(this.#ended * this.#aheadMs / tookMs), MOST);
      this.#allowed = Math.min(wanted, Math.max(this.#allowed * 2, FIRST));
      this.#ended = 0;
      this.#windowFromMs = nowMs;
    }
    return this.#allowed;
  }

  /** Adds an item behind the others. */
  push(run: Run, nowMs: number): void {
    this.#waiting.push({ run, sinceMs: nowMs });
  }

  /** The item whose turn it is. */
  shift(): Run | undefined {
    return this.#waiting.shift()?.run;
  }

  /** Takes out all that wait, if the first of them has done so for too long: the handlers are not as quick as they were. */
  takeOverdue(nowMs: number): Run[] {
    const [first] = this.#waiting;
    return first !== undefined && nowMs - first.sinceMs >= LONGEST_WAIT_MS ? this.takeAll() : [];
  }

  /** Takes out all that wait, and claims no more ahead until handlers are seen to be quick again. */
  takeAll(): Run[] {
    this.#allowed = 0;
    this.#ended = 0;
    return this.#waiting.splice(0).map(({ run }) => run);
  }
}
