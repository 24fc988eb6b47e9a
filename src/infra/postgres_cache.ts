/**
 * The cache on a table, `core.cache_entries`: shared by every process, times by the database's clock.
 *
 * @module
 */
import { invariant } from "../core/errors.ts";
import type { Cache, CacheScope } from "./cache.ts";

/** The part of a database the cache needs: one auto-committed statement on the system login (keys have no tenant). */
export interface CacheDatabase {
  system(sql: string, params: readonly (string | number)[]): Promise<Record<string, unknown>[]>;
}

// Each write also drops a few expired rows, so the table stays as small as what is alive, without a sweep of its own.
// SKIP LOCKED: two writers never wait for one another's leavings.
function setSql(now: string): string {
  return `with expired as (
    delete from core.cache_entries where (scope, key) in (
      select scope, key from core.cache_entries
      where expires_at <= ${now} and (scope, key) <> ($1, $2)
      limit 20 for update skip locked
    )
  )
  insert into core.cache_entries (scope, key, value, expires_at)
  values ($1, $2, $3, ${now} + $4::float8 * interval '1 millisecond')
  on conflict (scope, key) do update set value = excluded.value, expires_at = excluded.expires_at`;
}

/** A cache in the core area's database. */
export class PostgresCache implements Cache {
  readonly #db: CacheDatabase;
  readonly #set: string;
  readonly #get: string;
  readonly #list: string;

  /** @param options `nowSql` is the SQL of database time, default `now()`. */
  constructor(db: CacheDatabase, options: { nowSql?: string } = {}) {
    const now = options.nowSql ?? "now()";
    this.#db = db;
    this.#set = setSql(now);
    this.#get = `select value from core.cache_entries where scope = $1 and key = $2 and expires_at > ${now}`;
    this.#list = `select key, value from core.cache_entries where scope = $1 and expires_at > ${now}
      order by key limit $2::int`;
  }

  async set(scope: CacheScope, key: string, value: string, ttlMs: number): Promise<void> {
    await this.#db.system(this.#set, [scope, key, value, ttlMs]);
  }

  async get(scope: CacheScope, key: string): Promise<string | null> {
    const [row] = await this.#db.system(this.#get, [scope, key]);
    if (row === undefined) return null;
    invariant(typeof row.value === "string", "A cache entry's value must be text");
    return row.value;
  }

  async list(scope: CacheScope, limit: number): Promise<{ readonly key: string; readonly value: string }[]> {
    const rows = await this.#db.system(this.#list, [scope, limit]);
    return rows.map((row) => ({ key: String(row.key), value: String(row.value) }));
  }

  async delete(scope: CacheScope, key: string): Promise<void> {
    await this.#db.system("delete from core.cache_entries where scope = $1 and key = $2", [scope, key]);
  }
}
