/**
 * Opens the store a process was told to use.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { SettingsError, UnavailableError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { MigrationChain } from "../db/chain.ts";
import { inspectDatabase, loginFault, loginWarnings } from "../db/inspect.ts";
import { listenOn } from "../db/listener.ts";
import { describeStatus, schemaStatus } from "../db/migrator.ts";
import { type OpenDatabases, openDatabases } from "../db/postgres_database.ts";
import { SqliteDatabase } from "../db/sqlite.ts";
import { migrateSqliteUp } from "../db/sqlite_migrator.ts";
import { sqlState } from "../db/sqlstate.ts";
import type { Cache } from "../infra/cache.ts";
import { MemoryCache } from "../infra/memory_cache.ts";
import { MemoryTopics } from "../infra/memory_topics.ts";
import { PostgresCache } from "../infra/postgres_cache.ts";
import { PostgresTopics } from "../infra/postgres_topics.ts";
import type { Topics } from "../infra/topics.ts";
import type { Store } from "../storages.ts";
import { requireStore, type Settings } from "./settings.ts";

/** An open store and what belongs to it. */
export interface OpenStore {
  /** For people: `postgres`, `sqlite:PATH`, `memory`. Never a URL. */
  readonly name: string;
  readonly store: Store;
  readonly topics: Topics;
  readonly cache: Cache;
  /** Rejects when the storage does not answer. */
  ping(): Promise<void>;
  /** Closes topics and connections. Bounded. */
  close(): Promise<void>;
}

/** How a store is opened. */
export interface OpenStoreOptions {
  readonly settings: Settings;
  /** Every chain the store must be current with. */
  readonly chains: readonly MigrationChain[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Shown by the database beside each connection. */
  readonly applicationName: string;
  /** Ends the wait for a database that is down. */
  readonly signal?: AbortSignal;
  /**
   * Called when the wait begins, changes its reason, or ends (null). Without it nothing is waited for: a database that
   * is down is an error.
   */
  readonly onWaiting?: (reason: string | null) => void;
}

/**
 * Opens the store. A SQLite store is migrated on the way; a Postgres one must have been, by `migrate up`.
 *
 * @returns Null when `signal` ended the wait.
 * @throws {SettingsError} Unmigrated, a newer schema, a login without its role, a wrong password, no such database, a file that cannot be opened.
 * @throws {UnavailableError} The database is down and nobody waits.
 */
export async function openStore(options: OpenStoreOptions): Promise<OpenStore | null> {
  const choice = requireStore(options.settings, "work");
  return choice.engine === "sqlite" ? await openSqlite(choice.path, options) : await openPostgres(options);
}

async function openSqlite(path: string, options: OpenStoreOptions): Promise<OpenStore> {
  const synchronous = options.settings.sqliteSynchronous === "normal" ? "NORMAL" : "FULL";
  const db = new SqliteDatabase(path, { clock: options.clock, synchronous });
  try {
    const steps = await migrateSqliteUp(db, options.chains);
    if (steps.length > 0 && path !== ":memory:") options.logger.info("store.migrated", { path, steps: steps.length });
  } catch (error) {
    db.close();
    throw error;
  }
  const topics = new MemoryTopics();
  return {
    name: path === ":memory:" ? "memory" : `sqlite:${path}`,
    store: { engine: "sqlite", db },
    topics,
    cache: new MemoryCache(options.clock),
    ping: () => db.read((session) => void session.get("select 1")),
    async close() {
      await topics.close();
      db.close();
    },
  };
}

async function openPostgres(options: OpenStoreOptions): Promise<OpenStore | null> {
  const { settings } = options;
  const open = openDatabases(databaseSettings(settings, options.applicationName));
  try {
    if (!await waitForSchema(open, options)) {
      await open.close(500);
      return null;
    }
    if (options.onWaiting !== undefined) await checkLogins(options);
  } catch (error) {
    await open.close(500);
    throw error;
  }
  const listenUrl = settings.urls.listen ?? settings.urls.areas.queue?.system ?? settings.urls.system;
  const topics = new PostgresTopics({
    run: (sql, params) => open.databases.queue.system(sql, params),
    ...(settings.listen === "on" && listenUrl !== null ? { listen: listenOn(listenUrl) } : {}),
    clock: options.clock,
    logger: options.logger,
    metrics: options.metrics,
  });
  return {
    name: "postgres",
    store: { engine: "postgres", databases: open.databases },
    topics,
    cache: new PostgresCache(open.databases.core),
    ping: () => open.ping(),
    async close() {
      await topics.close();
      await open.close(2_000);
    },
  };
}

/**
 * What the pools are made of.
 *
 * @throws {UsageError} An area has a URL for one of its logins only, or none is set at all.
 */
export function databaseSettings(settings: Settings, applicationName: string): Parameters<typeof openDatabases>[0] {
  requireStore(settings, "work");
  const { urls } = settings;
  const areas = Object.fromEntries(
    Object.entries(urls.areas).map((
      [area, own],
    ) => [area, { runtime: own.runtime ?? urls.runtime ?? "", system: own.system ?? urls.system ?? "" }]),
  );
  return {
    runtime: urls.runtime ?? "",
    system: urls.system ?? "",
    areas,
    pool: {
      max: settings.poolSize,
      deadlineMs: settings.statementTimeoutMs,
      pooler: settings.pooler,
      applicationName,
    },
    systemMax: settings.systemPoolSize,
  };
}

// Tenants are only as apart as the logins are plain: a worker with too much power says so at every start. One that lacks
// its role must not start: each item's statements would be refused, and its attempts be spent on that.
async function checkLogins({ settings, chains, logger }: OpenStoreOptions): Promise<void> {
  const uses = ["runtime", "system"] as const;
  const found = await Promise.all(uses.map((use) => {
    const url = settings.urls[use];
    return url === null ? null : inspectDatabase(url, { chains });
  }));
  for (const [i, use] of uses.entries()) {
    const facts = found[i];
    if (!facts?.ok) continue;
    for (const warning of loginWarnings(facts.login, use)) logger.warn("login.warning", { warning });
    const fault = loginFault(facts.login, use);
    if (fault !== null) throw new SettingsError(fault);
  }
}

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5_000;

// True once the schema is this build's; false when told to stop.
async function waitForSchema(open: OpenDatabases, options: OpenStoreOptions): Promise<boolean> {
  let said: string | null = null;
  for (let waitMs = FIRST_WAIT_MS;; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    if (options.signal?.aborted) return false;
    const reason = await schemaTrouble(open, options);
    if (reason === null) {
      if (said !== null) options.logger.info("database.reached");
      options.onWaiting?.(null);
      return true;
    }
    // Once per change: a night without a database is one line, not ten thousand.
    if (reason !== said) options.logger.warn("database.waiting", { reason });
    said = reason;
    options.onWaiting?.(reason);
    await options.clock.sleep(waitMs * (0.75 + Math.random() / 2), options.signal);
  }
}

async function schemaTrouble(open: OpenDatabases, options: OpenStoreOptions): Promise<string | null> {
  try {
    await open.ping();
    const wrong = (await schemaStatus(open.databases, options.chains)).find((status) => status.state !== "current");
    if (wrong === undefined) return null;
    throw new SettingsError(describeStatus(wrong));
  } catch (error) {
    if (!(error instanceof UnavailableError) || options.onWaiting === undefined) throw error;
    if (isLasting(error)) throw new SettingsError(error.message, { cause: error });
    return error.message;
  }
}

// A wrong password, a missing database or a missing right does not mend itself: say so and end.
function isLasting(error: UnavailableError): boolean {
  const state = sqlState(error.cause) ?? "";
  return state.startsWith("28") || state === "3D000" || state === "42501" || state === "42P01" || state === "3F000";
}
