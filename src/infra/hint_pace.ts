/**
 * How often an equal hint leaves: at once when it is alone, and at growing gaps while many are asked for, the last of
 * which tells of all that was held back. A hint says only that there is something to look for, so one a gap is enough:
 * sent with each of 1,000 enqueues, it made twenty idle workers ask 19,000 times and the enqueues four times as slow.
 *
 * @module
 */

const FIRST_GAP_MS = 5;
/** The longest a hint is held back, milliseconds. A worker that finds work looks again by itself for about as long. */
export const LONGEST_HINT_GAP_MS = 50;
// Asked for oftener than every 4 ms the gap grows, seldomer than every 8 ms it shrinks.
const BUSY_MS = 4;
const CALM_MS = 8;

/** The pace of one hint. Pure: told what happened and when, monotonic milliseconds. */
export class HintPace {
  #gapMs = FIRST_GAP_MS;
  #leftMs = -Infinity;
  #held = 0;

  /** Asks for the hint: how long it waits before it leaves, 0 for at once. */
  ask(nowMs: number): number {
    const waitMs = Math.max(this.#leftMs + this.#gapMs - nowMs, 0);
    if (waitMs > 0) this.#held++;
    return waitMs;
  }

  /** The hint left. */
  left(nowMs: number): void {
    this.#gapMs = this.#held === 0 ? FIRST_GAP_MS : nextGapMs(this.#gapMs, this.#held);
    this.#leftMs = nowMs;
    this.#held = 0;
  }

  /** Whether it is over: the next one would leave at once. */
  isOver(nowMs: number): boolean {
    return nowMs >= this.#leftMs + this.#gapMs;
  }
}

function nextGapMs(gapMs: number, held: number): number {
  const everyMs = gapMs / held;
  if (everyMs <= BUSY_MS) return Math.min(gapMs * 2, LONGEST_HINT_GAP_MS);
  return everyMs > CALM_MS ? Math.max(gapMs / 2, FIRST_GAP_MS) : gapMs;
}
