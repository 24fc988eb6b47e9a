/**
 * Where claimed rows lie (`ctid`), so that their completion need not look for them: a descent of the primary key and a
 * second join less, 2 of 11 us an item. Only a hint: the completing statement checks the whole fence on the row it finds
 * there, and what is not there any more (renewed since, or moved by whatever rewrites tables) is looked for by its key.
 *
 * @module
 */
import type { ClaimRef } from "../storage.ts";

/** The most claims whose places are kept; of those not completed here (retried, expired) the oldest are forgotten. */
const MAX_CLAIMS = 64;

/** The places of the rows of the latest claims, in a process. */
export class ClaimPlaces {
  /** By token, then by id. */
  readonly #places = new Map<string, Map<string, string>>();

  /** A claim brought these. */
  remember(token: string, places: Iterable<readonly [id: string, place: string]>): void {
    const known = this.#places.get(token) ?? new Map<string, string>();
    for (const [id, place] of places) known.set(id, place);
    if (known.size === 0) return;
    this.#places.set(token, known);
    const [oldest] = this.#places.keys();
    if (this.#places.size > MAX_CLAIMS && oldest !== undefined) this.#places.delete(oldest);
  }

  /** Where the row was when it was claimed, told once: whoever asks is about to move it. */
  take({ token, id }: Pick<ClaimRef, "token" | "id">): string | undefined {
    const known = this.#places.get(token);
    const place = known?.get(id);
    if (known === undefined || place === undefined) return undefined;
    known.delete(id);
    if (known.size === 0) this.#places.delete(token);
    return place;
  }
}
