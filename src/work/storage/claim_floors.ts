/**
 * Where a claim begins to look.
 *
 * What was claimed leaves an entry in the claim's index until that is cleaned, and a look from the beginning steps over all
 * of them: before each vacuum those of the last minute, a tenth of what draining a backlog costs; behind an old snapshot (a
 * report, a forgotten transaction, a dump) all since then, 0.22 ms for every 1,000 items, so that after ten minutes at 1,000
 * items a second a worker does little else. So most claims of a backlog begin at the floor of each priority: the place of
 * the last item claimed there. What arrives behind a floor (a commit that came late) waits for the next look from the
 * beginning:
 *
 * - As long as claims come back full, one is taken every 100 ms. One that does not is made up from the beginning at once.
 * - After a slow one, the next is taken as soon as it costs a tenth of the time, at the latest after 5 s.
 *
 * ```
 *             came back full, or was slow
 *   beginning ───────────────────────────▶ floors, for 100 ms; ten times as long as a slow look took
 *       ▲                                     │
 *       └─────────────────────────────────────┘ also: came back short, unless looking is slow
 * ```
 *
 * @module
 */

/** One piece of the claim's index, in claim order: from a place (a time as the database reads it) to a priority. */
export interface ClaimRange {
  readonly kind: string;
  readonly low: number;
  readonly from_at: string;
  readonly high: number;
}

/** Where one claimed row stood. */
export interface Place {
  readonly kind: string;
  readonly priority: number;
  readonly availableAt: Date;
}

/** When a claim was sent and answered, and how many items it asked for. */
export interface ClaimTimes {
  readonly startMs: number;
  readonly endMs: number;
  readonly limit: number;
}

/** A look is slow when it takes longer than this, and this for each row it brings. */
const SLOW_MS = 10;
const SLOW_MS_PER_ROW = 0.2;
/** Looks from the beginning take at most a tenth of the time, but one is taken at least every five seconds. */
const PAUSE_PER_LOOK = 10;
const BACKLOG_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** The most ranges of one kind; a place of a priority beyond is forgotten, so it is looked at from its beginning. */
const MAX_FLOORS = 8;
const LOWEST = 0;
const HIGHEST = 32_767;

/** The floors of one lane, in a process. Pure but for what it is told. */
export class ClaimFloors {
  /** By kind, then by priority: epoch milliseconds of the last item claimed there. */
  readonly #floors = new Map<string, Map<number, number>>();
  #lookAtMs = -Infinity;
  #slow = false;

  /** The ranges to look at now. `nowMs`: a monotonic time. */
  ranges(kinds: readonly string[], nowMs: number): { readonly all: boolean; readonly ranges: ClaimRange[] } {
    const all = nowMs >= this.#lookAtMs;
    return { all, ranges: kinds.flatMap((kind) => all ? [from(kind, LOWEST)] : this.#rangesOf(kind)) };
  }

  /**
   * What a claim over `ranges` brought, in claim order, and how long it took.
   *
   * @returns Whether there may be more behind the floors, to be looked for at once: `ranges` now begins at the beginning.
   */
  claimed(look: { readonly all: boolean }, places: readonly Place[], claim: ClaimTimes): boolean {
    places.forEach(({ kind, priority, availableAt }, n) => {
      const next = places[n + 1];
      // Of neighbours that share a floor the last one is it.
      if (next?.kind !== kind || next.priority !== priority) this.#remember(kind, priority, availableAt.getTime());
    });
    const full = places.length === claim.limit;
    if (look.all) {
      const tookMs = claim.endMs - claim.startMs;
      this.#slow = tookMs > SLOW_MS + SLOW_MS_PER_ROW * places.length;
      const pauseMs = this.#slow
        ? Math.min(tookMs * PAUSE_PER_LOOK, LONGEST_PAUSE_MS)
        : full
        ? BACKLOG_PAUSE_MS
        : -Infinity;
      this.#lookAtMs = claim.endMs + pauseMs;
      return false;
    }
    if (full || this.#slow) return false;
    this.#lookAtMs = -Infinity;
    return true;
  }

  /** From the beginning up to the first floor, from there up to the next, and so on to the end. */
  #rangesOf(kind: string): ClaimRange[] {
    const ranges: ClaimRange[] = [];
    let low = LOWEST;
    for (const [priority, atMs] of [...this.#floors.get(kind) ?? []].sort(([a], [b]) => a - b)) {
      if (priority > low) ranges.push(from(kind, low, priority - 1));
      ranges.push({ kind, low: priority, from_at: new Date(atMs).toISOString(), high: priority });
      low = priority + 1;
    }
    if (low <= HIGHEST) ranges.push(from(kind, low));
    return ranges;
  }

  #remember(kind: string, priority: number, atMs: number): void {
    const floors = this.#floors.get(kind) ?? new Map<number, number>();
    this.#floors.set(kind, floors);
    // Deleted first: a map keeps the order of insertion, so the first one is the one used longest ago.
    floors.delete(priority);
    floors.set(priority, atMs);
    const [oldest] = floors.keys();
    if (floors.size > MAX_FLOORS && oldest !== undefined) floors.delete(oldest);
  }
}

function from(kind: string, low: number, high = HIGHEST): ClaimRange {
  return { kind, low, from_at: "-infinity", high };
}
