/**
 * A server with full durability for the benches that look at one database for long, and databases on it.
 *
 * @module
 */
import type { MigrationChain } from "../../src/db/chain.ts";
import { listenOn } from "../../src/db/listener.ts";
import type { Database, Databases, Param, Row, StatementOptions } from "../../src/db/database.ts";
import { PostgresTopics } from "../../src/infra/postgres_topics.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createTestDatabase, startPrivateServer, type TestDatabase } from "../support/postgres.ts";
import type { PostgresServer } from "../support/postgres_server.ts";
import { makeRig, type Rig } from "./rig.ts";

// Durability is never traded for a figure. Autovacuum stands at its defaults.
const SETTINGS = {
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  shared_buffers: "512MB",
  max_wal_size: "4GB",
  wal_buffers: "16MB",
  random_page_cost: "1.1",
};

/** A migrated database, as the superuser and as our logins see it. */
export interface FlatDatabase {
  /** The system login's URL. */
  readonly systemUrl: string;
  /** The superuser's URL. */
  readonly adminUrl: string;
  /** Our logins' pools. */
  readonly databases: Databases;
  /** Managers and workers over it, with the bench's orgs made. Its statements are counted in `statements`. */
  rig(): Promise<Rig>;
  /** Statements of the system login on the queue area since the last `reset`, by their name. */
  readonly statements: StatementCounts;
  /** Runs SQL past every rule. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** How often a statement ran and how long it took. */
export class StatementCounts {
  readonly #counts = new Map<string, { calls: number; ms: number; slowestMs: number }>();

  add(name: string, ms: number): void {
    const known = this.#counts.get(name) ?? { calls: 0, ms: 0, slowestMs: 0 };
    known.calls++;
    known.ms += ms;
    known.slowestMs = Math.max(known.slowestMs, ms);
    this.#counts.set(name, known);
  }

  of(name: string): { readonly calls: number; readonly ms: number; readonly slowestMs: number } {
    return this.#counts.get(name) ?? { calls: 0, ms: 0, slowestMs: 0 };
  }

  reset(): void {
    this.#counts.clear();
  }
}

/** Starts the server, hands it to `work`, and removes it. */
export async function withFlatServer<T>(
  work: (open: (chains?: readonly MigrationChain[]) => Promise<FlatDatabase>) => Promise<T>,
  settings: Readonly<Record<string, string>> = {},
): Promise<T> {
  const server = await startPrivateServer({ fsync: true, settings: { ...SETTINGS, ...settings } });
  try {
    return await work((chains) => open(server, chains));
  } finally {
    await server.remove();
  }
}

async function open(server: PostgresServer, chains = CHAINS): Promise<FlatDatabase> {
  const database = await createTestDatabase(chains, { adminUrl: server.url(), pool: { max: 20, deadlineMs: 60_000 } });
  const statements = new StatementCounts();
  const { queue } = database.databases;
  const counted: Database = {
    async system<R extends Row>(sql: string, params: readonly Param[], options?: StatementOptions) {
      const startMs = performance.now();
      try {
        return await queue.system<R>(sql, params, options);
      } finally {
        statements.add(nameOf(sql), performance.now() - startMs);
      }
    },
    tenant: (orgId, sql, params, options) => queue.tenant(orgId, sql, params, options),
  };
  const databases = { ...database.databases, queue: counted };
  const topics = new PostgresTopics({
    run: (text, params) => queue.system(text, params),
    listen: listenOn(database.url("system")),
  });
  return {
    systemUrl: database.url("system"),
    adminUrl: database.url("admin"),
    databases,
    statements,
    rig: () => makeRig({ engine: "postgres", databases }, topics),
    sql: (text) => admin(database, text),
    async close() {
      await topics.close();
      await database.drop();
    },
  };
}

function admin(database: TestDatabase, text: string): Promise<Record<string, unknown>[]> {
  return database.adminSql(text);
}

// By what only that statement says.
function nameOf(sql: string): string {
  if (sql.includes("skip locked") && sql.includes("claimed_by = $")) return "claim";
  if (sql.includes("insert into queue.work_history") || sql.includes("to_status")) return "settle";
  if (sql.includes("extract(epoch") && sql.includes("heads")) return "gauges";
  return "other";
}
