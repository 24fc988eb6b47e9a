/**
 * A best-effort key-value cache with a time to live. Nothing may depend on a key being there.
 *
 * @module
 */

/** The scopes keys live under. */
export type CacheScope = "WORKER_LIVENESS";

/** Reads and writes cache keys. Values are small JSON texts. */
export interface Cache {
  /** Stores `value` for `ttlMs`. Rejects when the cache is out of reach; callers log and go on. */
  set(scope: CacheScope, key: string, value: string, ttlMs: number): Promise<void>;
  /** The value, or null when absent or expired. */
  get(scope: CacheScope, key: string): Promise<string | null>;
  /** Keys of a scope that have not expired, in key order, at most `limit`. */
  list(scope: CacheScope, limit: number): Promise<{ readonly key: string; readonly value: string }[]>;
  /** Forgets a key; absent is fine. */
  delete(scope: CacheScope, key: string): Promise<void>;
}
