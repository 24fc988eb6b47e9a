/**
 * Stores to measure: the embedded one, and a Postgres server of the bench's own with full durability.
 *
 * @module
 */
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import { listenOn } from "../../src/db/listener.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { PostgresTopics } from "../../src/infra/postgres_topics.ts";
import type { Topics } from "../../src/infra/topics.ts";
import { CHAINS } from "../../src/migrations.ts";
import type { Store } from "../../src/storages.ts";
import { createTestDatabase, startPrivateServer } from "../support/postgres.ts";
import type { PostgresServer } from "../support/postgres_server.ts";

/** What is measured on. */
export type BenchEngine = "memory" | "sqlite" | "postgres";

/** An open store of one round. */
export interface BenchStore {
  readonly store: Store;
  readonly topics: Topics;
  /** Items in a status, counted in the database. */
  count(status: string): Promise<number>;
  /** Runs SQL past every rule. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** Statistics as a store that has run for a while has them. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

// Durability is never traded for a figure; the sizes are those of a small server.
const SETTINGS = {
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  shared_buffers: "512MB",
  max_wal_size: "4GB",
  wal_buffers: "16MB",
  random_page_cost: "1.1",
};

/** Opens fresh stores; starts the server with the first Postgres one. */
export class BenchStores {
  #server: PostgresServer | undefined;

  async open(engine: BenchEngine): Promise<BenchStore> {
    return engine === "postgres" ? await this.#openPostgres() : await openSqlite(engine);
  }

  /** The server's version and durability, read from it; refuses to measure without full durability. */
  async describeServer(): Promise<string> {
    const database = await createTestDatabase(CHAINS, { adminUrl: (await this.#start()).url() });
    try {
      const names = ["server_version", ...Object.keys(SETTINGS)];
      const rows = await database.adminSql(
        `select name, current_setting(name) as value from unnest(string_to_array('${names.join(",")}', ',')) as name`,
      );
      const values = new Map(rows.map((row) => [String(row.name), String(row.value)]));
      for (const name of ["fsync", "full_page_writes", "synchronous_commit"]) {
        if (values.get(name) !== "on") {
          throw new Error(`Cannot measure with ${name} ${values.get(name)}: it must be on`);
        }
      }
      return names.map((name) => `${name} ${values.get(name)}`).join(", ");
    } finally {
      await database.drop();
    }
  }

  async close(): Promise<void> {
    await this.#server?.remove();
  }

  async #start(): Promise<PostgresServer> {
    this.#server ??= await startPrivateServer({ fsync: true, settings: SETTINGS });
    return this.#server;
  }

  async #openPostgres(): Promise<BenchStore> {
    const server = await this.#start();
    const database = await createTestDatabase(CHAINS, { adminUrl: server.url(), pool: { max: 10 } });
    const topics = new PostgresTopics({
      run: (text, params) => database.databases.queue.system(text, params),
      listen: listenOn(database.url("system")),
    });
    return {
      store: { engine: "postgres", databases: database.databases },
      topics,
      async count(status) {
        const [row] = await database.adminSql(
          "select (select count(*) from queue.work_items where status = $1)::int + case $1 when 'done' then (select count(*) from queue.work_history) else 0 end::int as n",
          [
            status,
          ],
        );
        return Number(row?.n);
      },
      sql: (text) => database.adminSql(text),
      async settle() {
        await database.adminSql("vacuum analyze queue.work_items");
        await database.adminSql("vacuum analyze queue.work_keys");
      },
      async close() {
        await topics.close();
        await database.drop();
      },
    };
  }
}

async function openSqlite(engine: "memory" | "sqlite"): Promise<BenchStore> {
  const folder = engine === "sqlite" ? await Deno.makeTempDir({ prefix: "laneway-bench-" }) : null;
  const db = new SqliteDatabase(folder === null ? ":memory:" : `${folder}/bench.db`);
  await migrateSqliteUp(db, CHAINS);
  const topics = new MemoryTopics();
  return {
    store: { engine: "sqlite", db },
    topics,
    count: (status) =>
      db.read((s) => Number(s.get("select count(*) as n from queue_work_items where status = ?", status)?.n)),
    sql: (text) => db.write((s) => s.all(text)),
    settle: () => Promise.resolve(),
    async close() {
      await topics.close();
      db.close();
      if (folder !== null) await Deno.remove(folder, { recursive: true });
    },
  };
}
