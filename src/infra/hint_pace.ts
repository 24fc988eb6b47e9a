/**
 * How often an equal hint leaves: at once when few are, and at gaps while many are asked for, the last of
 * which tells of all that was held back. A hint says only that there is something to look for, so one a gap is enough:
 * sent with each of 1,000 enqueues, it made twenty idle workers ask 19,000 times and the enqueues four times as slow.
 *
 * @module
 */

const SHORTEST_GAP_MS = 1.5;
// A few in quick succession leave at once, and the pace is kept over time: what is asked for 400 times a second is mostly
// not asked for every 2.5 ms. Held back for half a millisecond, a hint waits for a timer of one or two, and the next one
// for it: a third of 400 items a second began a millisecond later, the slowest tenth two.
const AHEAD_MS = 3 * SHORTEST_GAP_MS;
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
  /** When the next one would leave, did all keep to their gaps. */
  #evenMs = -Infinity;

  /** Asks for the hint: how long it waits before it leaves, 0 for at once. */
  ask(nowMs: number): number {
    this.#note(nowMs);
    return this.#waitMs(nowMs);
  }

  /** Takes the place of one that leaves now; false, and nothing was asked for, when it would have to wait. */
  take(nowMs: number): boolean {
    if (this.#waitMs(nowMs) > 0) return false;
    this.#note(nowMs);
    this.left(nowMs);
    return true;
  }

  /** The hint left. */
  left(nowMs: number): void {
    this.#leftMs = nowMs;
    const evenMs = Math.max(this.#evenMs, nowMs) + gapMs(this.#everyMs);
    this.#evenMs = Math.min(evenMs, nowMs + AHEAD_MS + LONGEST_HINT_GAP_MS);
  }

  /** Whether it may be forgotten: nothing is held back, and a burst is over. */
  isOver(nowMs: number): boolean {
    return nowMs - Math.max(this.#leftMs, this.#askedMs) > LONGEST_EVERY_MS;
  }

  #waitMs(nowMs: number): number {
    return Math.max(this.#evenMs - AHEAD_MS - nowMs, 0);
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
