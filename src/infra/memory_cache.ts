/**
 * A cache within one process.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import type { Cache, CacheScope } from "./cache.ts";

/** Keeps keys in a map; an expired key is dropped when it is next read or written over. */
export class MemoryCache implements Cache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { readonly value: string; readonly untilMs: number }>();

  /** Expires by this clock. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keeps a value for `ttlMs` milliseconds. */
  set(scope: CacheScope, key: string, value: string, ttlMs: number): Promise<void> {
    this.#entries.set(`${scope}/${key}`, { value, untilMs: this.#clock.monotonic() + ttlMs });
    return Promise.resolve();
  }

  /** The value, or null when there is none or it has expired. */
  get(scope: CacheScope, key: string): Promise<string | null> {
    const entry = this.#entries.get(`${scope}/${key}`);
    if (entry === undefined) return Promise.resolve(null);
    if (entry.untilMs > this.#clock.monotonic()) return Promise.resolve(entry.value);
    this.#entries.delete(`${scope}/${key}`);
    return Promise.resolve(null);
  }

  /** Lists the living keys of a scope. */
  list(scope: CacheScope, limit: number): Promise<{ readonly key: string; readonly value: string }[]> {
    const prefix = `${scope}/`;
    const living = [...this.#entries].filter(([key, { untilMs }]) =>
      key.startsWith(prefix) && untilMs > this.#clock.monotonic()
    );
    const found = living.map(([key, { value }]) => ({ key: key.slice(prefix.length), value }));
    return Promise.resolve(found.sort((a, b) => a.key < b.key ? -1 : 1).slice(0, limit));
  }

  /** Removes a value; removing none is fine. */
  delete(scope: CacheScope, key: string): Promise<void> {
    this.#entries.delete(`${scope}/${key}`);
    return Promise.resolve();
  }
}
