/**
 * How often an equal hint leaves: at once when it is alone, and at gaps while many are asked for, the last of
 * which tells of all that was held back. A hint says only that there is something to look for, so one a gap is enough:
 * sent with each of 1,000 enqueues, it made twenty idle workers ask 19,000 times and the enqueues four times as slow.
 *
 * @module
 */

// Two in quick succession may be one thing: a row and its neighbour.
const SHORTEST_GAP_MS = 1.5;
/** The longest a hint is held back, milliseconds. A worker that finds work looks again by itself for about as long. */
export const LONGEST_HINT_GAP_MS = 10;
// Asked for up to 450 times a second a hint leaves each time, from 770 on at the longest gap, a hundred times a second. A
// longest gap of 50 ms spared a burst four fifths of those, and cost each item of a steady 400 a second two milliseconds.
const CALM_EVERY_MS = 2.2;
const BUSY_EVERY_MS = 1.3;
// How much the latest interval weighs in the mean: a dozen show a burst, three its end.
const WEIGHT = 0.2;
const LONGEST_EVERY_MS = 100;
// What is asked for in one moment is one: the rows of a batch are no burst.
const MOMENT_MS = 1;

/** The pace of one hint. Pure: told what happened and when, monotonic milliseconds. */
export class HintPace {
  #everyMs = LONGEST_EVERY_MS;
  #askedMs = -Infinity;
  #leftMs = -Infinity;

  /** Asks for the hint: how long it waits before it leaves, 0 for at once. */
  ask(nowMs: number): number {
    this.#note(nowMs);
    return Math.max(this.#leftMs + gapMs(this.#everyMs) - nowMs, 0);
  }

  /** Takes the place of one that leaves now; false, and nothing was asked for, when it would have to wait. */
  take(nowMs: number): boolean {
    if (this.#leftMs + gapMs(this.#everyMs) > nowMs) return false;
    this.#note(nowMs);
    this.#leftMs = nowMs;
    return true;
  }

  /** The hint left. */
  left(nowMs: number): void {
    this.#leftMs = nowMs;
  }

  /** Whether it may be forgotten: nothing is held back, and a burst is over. */
  isOver(nowMs: number): boolean {
    return nowMs - Math.max(this.#leftMs, this.#askedMs) > LONGEST_EVERY_MS;
  }

  #note(nowMs: number): void {
    const sinceMs = nowMs - this.#askedMs;
    if (sinceMs < MOMENT_MS) return;
    this.#everyMs += (Math.min(sinceMs, LONGEST_EVERY_MS) - this.#everyMs) * WEIGHT;
    this.#askedMs = nowMs;
  }
}

function gapMs(everyMs: number): number {
  const busy = Math.min(Math.max((CALM_EVERY_MS - everyMs) / (CALM_EVERY_MS - BUSY_EVERY_MS), 0), 1);
  return SHORTEST_GAP_MS + (LONGEST_HINT_GAP_MS - SHORTEST_GAP_MS) * busy;
}
