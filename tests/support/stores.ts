/**
 * Open, migrated stores for tests: every engine the contract suites run on.
 *
 * @module
 */
import { FakeClock } from "../../src/core/fake_clock.ts";
import type { MigrationChain } from "../../src/db/chain.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { CHAINS } from "../../src/migrations.ts";
import type { Store } from "../../src/storages.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";

/** The engines, as test names show them. */
export const ENGINES = ["sqlite :memory:", "sqlite file", "postgres"] as const;

/** One of `ENGINES`. */
export type Engine = typeof ENGINES[number];

/** An open store with its database time in the test's hands. */
export interface TestStore {
  readonly store: Store;
  /** Moves database time forward. */
  advance(ms: number): Promise<void>;
  /** On Postgres, the database itself. */
  readonly database?: TestDatabase;
  /** Runs SQL past every rule. Name tables by `table("queue.work_items")`. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** A table's name in this engine. */
  table(name: string): string;
  close(): Promise<void>;
}

/** Opens a fresh, migrated store. A worker gives its own chains behind the house's. */
export async function openTestStore(
  engine: Engine,
  chains: readonly MigrationChain[] = CHAINS,
): Promise<TestStore> {
  if (engine === "postgres") return await openPostgres(chains);
  const clock = new FakeClock();
  const folder = engine === "sqlite file" ? await Deno.makeTempDir({ prefix: "laneway-" }) : null;
  const db = new SqliteDatabase(folder === null ? ":memory:" : `${folder}/store.db`, { clock, synchronous: "NORMAL" });
  for (const chain of chains) {
    for (const migration of chain.sqlite) await db.write((session) => session.script(migration.up));
  }
  return {
    store: { engine: "sqlite", db },
    advance: (ms) => clock.tick(ms),
    sql: (text) => db.write((session) => session.all(text)),
    table: (name) => name.replace(".", "_"),
    close: async () => {
      db.close();
      if (folder !== null) await Deno.remove(folder, { recursive: true });
    },
  };
}

async function openPostgres(chains: readonly MigrationChain[]): Promise<TestStore> {
  const database = await createTestDatabase(chains);
  return {
    database,
    store: { engine: "postgres", databases: database.databases, nowSql: database.clock.nowSql },
    advance: (ms) => database.clock.advance(ms),
    sql: (text) => database.adminSql(text),
    table: (name) => name,
    close: () => database.drop(),
  };
}
