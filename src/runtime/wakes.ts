/**
 * When an idle worker looks for work: at a hint, by itself while work keeps coming, and else at its poll. Pure: told what
 * happened and when (monotonic milliseconds), it answers when to look next.
 *
 * - A hint reaches every worker of the lane and mostly one of them finds the item. Whoever looked in vain twice in a row
 *   leaves further hints for a growing, jittered moment, and then looks once for all of them: no hint is lost, the others
 *   of a fleet soon ask a few times a second at most, and the one that finds work goes on looking at once.
 * - Whoever finds work again and again looks a few times more without being told, as hints are held back for up to
 *   `LONGEST_HINT_GAP_MS` in a burst: a steady stream is not made to wait for them.
 * - While hints are known to arrive, a poll that finds nothing doubles the wait for the next one, up to `idlePollMs`; any
 *   hint ends that. What becomes claimable is told by a hint or known by its due time; the slow poll is for what is not
 *   (rows written without NOTIFY, a hint that was lost).
 *
 * @module
 */

/** How `Wakes` is made. */
export interface WakesOptions {
  /** The wait between looks when nothing is told, milliseconds. */
  readonly pollMs: number;
  /** The longest such wait while hints arrive, milliseconds; not below `pollMs`. */
  readonly idlePollMs: number;
  /** Randomness in [0, 1). Default `Math.random`. */
  readonly random?: () => number;
}

// The first look in vain costs nothing: the hint that a burst's last items left behind finds them taken already.
const FREE_MISSES = 1;
const FIRST_QUIET_MS = 10;
const LONGEST_QUIET_MS = 250;
// Two finds this close together are a stream, and so are two items at once; it goes on with finds somewhat further apart.
const STREAM_MS = 8;
const STREAM_ON_MS = 20;
// As long as a hint may be held back, 10 ms in all.
const FOLLOWS_MS = [1, 2, 3, 4];

/** What a worker goes by between its claims. */
export class Wakes {
  readonly #pollMs: number;
  readonly #idlePollMs: number;
  readonly #random: () => number;
  #answeredMs = 0;
  #jitter = 0;
  #foundMs = -Infinity;
  /** Hinted looks in vain since the last find. */
  #misses = 0;
  #quietUntilMs = -Infinity;
  /** Polls in vain since the last find or hint. */
  #idlePolls = 0;
  /** Looks in vain of a stream that may be over; null without one. */
  #follows: number | null = null;

  constructor(options: WakesOptions) {
    this.#pollMs = options.pollMs;
    this.#idlePollMs = Math.max(options.idlePollMs, options.pollMs);
    this.#random = options.random ?? Math.random;
  }

  /** A claim was answered with `found` items; `hinted` when a hint had led to it. */
  answered(nowMs: number, { found, hinted }: { readonly found: number; readonly hinted: boolean }): void {
    this.#answeredMs = nowMs;
    this.#jitter = this.#random();
    if (found > 0) {
      const apartMs = this.#follows === null ? STREAM_MS : STREAM_ON_MS;
      this.#follows = found > 1 || nowMs - this.#foundMs <= apartMs ? 0 : null;
      this.#foundMs = nowMs;
      this.#idlePolls = 0;
      this.forgetMisses();
      return;
    }
    // In a stream a hint often tells of what was just found: nobody else was faster.
    if (hinted && this.#follows === null) this.#missed(nowMs);
    if (this.#follows === null) this.#idlePolls += hinted ? 0 : 1;
    else if (++this.#follows >= FOLLOWS_MS.length) this.#follows = null;
  }

  /** A hint arrived: the queue is not idle. */
  hinted(): void {
    this.#idlePolls = 0;
  }

  /** Something is known to be claimable: the next hint is followed at once. */
  forgetMisses(): void {
    this.#misses = 0;
    this.#quietUntilMs = -Infinity;
  }

  /** The wait between looks that nothing led to, milliseconds. */
  pollMs(listening: boolean): number {
    if (!listening) return this.#pollMs;
    return Math.min(this.#pollMs * 2 ** Math.min(this.#idlePolls, 30), this.#idlePollMs);
  }

  /** When to look next: `hinted` after a hint has arrived since the last answer, `listening` while hints are known to arrive. */
  lookAtMs({ hinted, listening }: { readonly hinted: boolean; readonly listening: boolean }): number {
    const pollMs = this.pollMs(listening);
    // A long wait is jittered downwards alone: it is a bound that is told.
    const spread = pollMs > this.#pollMs ? 0.75 + this.#jitter / 4 : 0.75 + this.#jitter / 2;
    const pollAtMs = this.#answeredMs + pollMs * spread;
    const followMs = this.#follows === null ? Infinity : FOLLOWS_MS[this.#follows] ?? Infinity;
    const unaskedMs = Math.min(this.#answeredMs + followMs, pollAtMs);
    return hinted ? Math.min(this.#quietUntilMs, unaskedMs) : unaskedMs;
  }

  #missed(nowMs: number): void {
    const growth = ++this.#misses - FREE_MISSES;
    if (growth <= 0) return;
    const quietMs = Math.min(FIRST_QUIET_MS * 2 ** Math.min(growth - 1, 30), LONGEST_QUIET_MS, this.#pollMs);
    this.#quietUntilMs = nowMs + quietMs * (0.5 + this.#random());
  }
}
