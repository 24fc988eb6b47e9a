/**
 * Whose turn it is among the orgs of a lane: fair claims begin behind the org they ended with.
 *
 * @module
 */

/**
 * The most orgs of one claim: each costs a look (27 µs on Postgres), so a large claim takes several items of each instead of
 * one of each of hundreds.
 */
export const MAX_ORGS = 100;
/** The most priorities of one lane; one beyond begins anywhere. */
const MAX_PRIORITIES = 16;

/**
 * The turns of a process, kept in memory alone. Each process begins at a random place, so that workers do not all look for
 * the same rows. Each priority has turns of its own: a trickle of urgent items of one org must not send the others back to
 * the same place each time.
 */
export class FairTurns {
  readonly #start: string;
  /** By lane, then by priority: the org that was served last. */
  readonly #last = new Map<string, Map<number, string>>();

  /** @param start Behind which org the first turn of a priority begins. Default a random place. */
  constructor(start: string = crypto.randomUUID()) {
    this.#start = start;
  }

  /** Behind which org to begin. */
  after(lane: string, priority: number): string {
    return this.#last.get(lane)?.get(priority) ?? this.#start;
  }

  /** All of a lane, for a statement that finds the priority itself: by priority, and `start` for any other. */
  of(lane: string): Readonly<Record<string, string>> {
    return { ...Object.fromEntries(this.#last.get(lane) ?? []), start: this.#start };
  }

  /** `orgId` was served last. */
  served(lane: string, priority: number, orgId: string): void {
    const last = this.#last.get(lane) ?? new Map<number, string>();
    this.#last.set(lane, last);
    // Deleted first: a map keeps the order of insertion, so the first one is the one used longest ago.
    last.delete(priority);
    last.set(priority, orgId);
    const [oldest] = last.keys();
    if (last.size > MAX_PRIORITIES && oldest !== undefined) last.delete(oldest);
  }
}
