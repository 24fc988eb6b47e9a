/**
 * A migrator as a process of its own, for tests that race or kill it.
 *
 * Usage: `deno run -A migrate_once.ts TARGET CHAINS` with TARGET a Postgres URL or `sqlite:PATH`, CHAINS as JSON. Prints
 * `ready` when it starts, then how many steps it took.
 *
 * @module
 */
import type { MigrationChain } from "../../src/db/chain.ts";
import { migrateUp, openMigrationConnection } from "../../src/db/migrator.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";

const [target, json] = Deno.args;
if (target === undefined || json === undefined) throw new Error("usage: migrate_once.ts TARGET CHAINS");
const chains = JSON.parse(json) as MigrationChain[];
if (target.startsWith("sqlite:")) {
  const db = new SqliteDatabase(target.slice("sqlite:".length));
  console.log(`steps ${(await migrateSqliteUp(db, chains)).length}`);
  db.close();
} else {
  const client = await openMigrationConnection(target);
  console.log(`steps ${(await migrateUp(client, chains)).length}`);
  await client.close();
}
