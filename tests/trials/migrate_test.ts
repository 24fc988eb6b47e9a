/**
 * B27: ten `migrate up` commands at once on an empty database. The twenty rounds are two here; the driver's own races,
 * kills and locks are in tests/integration/migrator_test.ts.
 */
import assert from "node:assert/strict";
import { CHAINS } from "../../src/migrations.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { dumpSchemas } from "../support/schema_dump.ts";
import { WorkerProcess } from "./worker_process.ts";

const ROUNDS = 2;
const AT_ONCE = 10;

/** Runs `count` migrations at once and returns the schema they left. */
async function migrated(count: number): Promise<string[]> {
  const db = await createEmptyDatabase();
  const env = { LANEWAY_MIGRATE_DATABASE_URL: db.url("owner") };
  const runs = await Promise.all(Array.from({ length: count }, () => WorkerProcess.command(["migrate", "up"], env)));
  const admin = await PostgresClient.open(db.url("admin"));
  try {
    for (const run of runs) {
      assert.equal((await run.end(60_000)).code, 0, run.text());
      run.assertNoStray();
    }
    for (const chain of CHAINS) {
      const rows = await admin.query(`select version from ${chain.name}.schema_migrations order by version`);
      assert.deepEqual(rows.map((row) => row.version), chain.postgres.map((step) => step.version));
    }
    const locks = await admin.query(
      `select 1 from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and l.pid <> pg_backend_pid()`,
    );
    assert.deepEqual(locks, [], "no lock is left behind");
    return await dumpSchemas(admin, CHAINS.map((chain) => chain.name));
  } finally {
    await admin.close();
    await Promise.all(runs.map((run) => run.kill()));
    await db.drop();
  }
}

Deno.test("B27: ten migrations at once on an empty database all end with 0 and leave what a single one leaves", async () => {
  const single = await migrated(1);
  assert.ok(single.length > 50);
  for (let round = 0; round < ROUNDS; round++) assert.deepEqual(await migrated(AT_ONCE), single);
});
