/**
 * `Database` over pools, and the opening of all areas from their URLs.
 *
 * @module
 */
import { SettingsError } from "../core/errors.ts";
import type { Area, Database, Databases, Param, Row, StatementOptions } from "./database.ts";
import { Pool, type PoolOptions } from "./pool.ts";

/** The areas in the order their schemas are listed everywhere. */
export const AREAS: readonly Area[] = ["core", "queue", "activity"];

/** Makes a `Database` of the two logins' pools. */
export function createDatabase(pools: { readonly runtime: Pool; readonly system: Pool }): Database {
  return {
    system<R extends Row = Row>(sql: string, params: readonly Param[], options?: StatementOptions): Promise<R[]> {
      return pools.system.run<R>(sql, params, options);
    },
    tenant<R extends Row = Row>(
      orgId: string,
      sql: string,
      params: readonly Param[],
      options?: StatementOptions,
    ): Promise<R[]> {
      return pools.runtime.unit<R>(orgId, { sql, params }, options);
    },
  };
}

/** The URLs of one area's two logins. */
export interface AreaUrls {
  readonly runtime: string;
  readonly system: string;
}

/** Where the databases are. */
export interface DatabaseSettings extends AreaUrls {
  /** Areas that live elsewhere. */
  readonly areas?: Partial<Readonly<Record<Area, AreaUrls>>>;
  /** Of every pool. Pools of equal URLs are one pool, of the size first asked for. */
  readonly pool?: PoolOptions;
  /** The size of the system login's pools, where it differs from `pool.max`. */
  readonly systemMax?: number;
}

/** Open databases. */
export interface OpenDatabases {
  readonly databases: Databases;
  /** Every pool once, with what it serves, for gauges and the doctor; never with its URL. */
  readonly pools: readonly { readonly name: string; readonly pool: Pool }[];
  /**
   * Asks every pool for one round trip, within `deadlineMs` (default 2 000).
   *
   * @throws {UnavailableError} The first that does not answer.
   */
  ping(deadlineMs?: number): Promise<void>;
  /** Closes every pool; bounded by `timeoutMs` (default 5 000). */
  close(timeoutMs?: number): Promise<void>;
}

/**
 * Makes the pools. Nothing is connected yet: a worker starts before its database.
 *
 * @throws {SettingsError} A URL cannot be read. The URL itself is not shown, as it holds a password.
 */
export function openDatabases(settings: DatabaseSettings): OpenDatabases {
  const byUrl = new Map<string, { name: string; pool: Pool }>();
  const systemPool = { ...settings.pool, max: settings.systemMax ?? settings.pool?.max };
  const poolFor = (url: string, name: string, options?: PoolOptions) => {
    checkUrl(url, name);
    const known = byUrl.get(url);
    if (known !== undefined) return known.pool;
    const pool = new Pool(url, options);
    byUrl.set(url, { name, pool });
    return pool;
  };
  const open = (area: Area) => {
    const urls = settings.areas?.[area];
    const prefix = urls === undefined ? "" : `${area} `;
    return createDatabase({
      runtime: poolFor((urls ?? settings).runtime, `${prefix}runtime`, settings.pool),
      system: poolFor((urls ?? settings).system, `${prefix}system`, systemPool),
    });
  };
  const databases: Databases = { core: open("core"), queue: open("queue"), activity: open("activity") };
  const pools = [...byUrl.values()];
  return {
    databases,
    pools,
    async ping(deadlineMs = 2_000) {
      await Promise.all(pools.map(({ pool }) => pool.run("select 1", [], { deadlineMs })));
    },
    async close(timeoutMs) {
      await Promise.all(pools.map(({ pool }) => pool.close(timeoutMs)));
    },
  };
}

function checkUrl(url: string, name: string): void {
  const parsed = URL.parse(url);
  if (parsed === null || !["postgres:", "postgresql:"].includes(parsed.protocol)) {
    throw new SettingsError(
      `Cannot use the ${name} database URL as it cannot be read: write postgres://LOGIN:PASSWORD@HOST:PORT/DATABASE`,
    );
  }
}
