/**
 * Where a claim begins to look.
 *
 * Behind an old snapshot (a report, a forgotten transaction, a dump) nothing that was claimed since can be removed from
 * the claim's index: each claim steps over all of it, 0.22 ms for every 1,000 items finished since, and after ten minutes
 * at 1,000 items a second a worker does little else. So, as long as looking from the beginning is slow, most claims begin
 * at the floor of each priority: the place of the last item claimed there. What arrives behind a floor (a commit that came
 * late) waits for the next look from the beginning, which is taken as soon as it costs a tenth of the time, at the latest
 * after 5 s. As long as looking is quick, as nearly always, every claim looks from the beginning.
 *
 * ```
 *             a look from the beginning was slow
 *   beginning ─────────────────────────────────▶ floors, for ten times as long as that look took
 *       ▲                                           │
 *       └───────────────────────────────────────────┘
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

/** A look is slow when it takes longer than this, and this for each row it brings. */
const SLOW_MS = 10;
const SLOW_MS_PER_ROW = 0.2;
/** Looks from the beginning take at most a tenth of the time, but one is taken at least every five seconds. */
const PAUSE_PER_LOOK = 10;
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

  /** The ranges to look at now. `nowMs`: a monotonic time. */
  ranges(kinds: readonly string[], nowMs: number): { readonly all: boolean; readonly ranges: ClaimRange[] } {
    const all = nowMs >= this.#lookAtMs;
    return { all, ranges: kinds.flatMap((kind) => all ? [from(kind, LOWEST)] : this.#rangesOf(kind)) };
  }

  /** What a claim over `ranges` brought, in claim order, and how long it took. */
  claimed(look: { readonly all: boolean }, places: readonly Place[], times: { startMs: number; endMs: number }): void {
    places.forEach(({ kind, priority, availableAt }, n) => {
      const next = places[n + 1];
      // Of neighbours that share a floor the last one is it.
      if (next?.kind !== kind || next.priority !== priority) this.#remember(kind, priority, availableAt.getTime());
    });
    if (!look.all) return;
    const tookMs = times.endMs - times.startMs;
    const slow = tookMs > SLOW_MS + SLOW_MS_PER_ROW * places.length;
    this.#lookAtMs = slow ? times.endMs + Math.min(tookMs * PAUSE_PER_LOOK, LONGEST_PAUSE_MS) : -Infinity;
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
