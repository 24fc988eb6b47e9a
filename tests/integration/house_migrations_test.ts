import assert from "node:assert/strict";
import { migrateDown, migrateUp, migrationStatus, openMigrationConnection } from "../../src/db/migrator.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteDown, migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import { CHAINS as HOUSE_CHAINS, OPTIONAL_CHAINS } from "../../src/migrations.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { createEmptyDatabase } from "../support/postgres.ts";

// The house's, the optional ones too, and those of the workers that keep records of their own.
const CHAINS = [...HOUSE_CHAINS, ...OPTIONAL_CHAINS, SHIPMENTS_CHAIN];

const OBJECTS = `
  select n.nspname || '.' || c.relname || ' ' || c.relkind::text as object
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = any($1::text[]) and c.relname not like 'schema_migrations%' order by 1`;

Deno.test("the migrations of house and workers go up, all the way down and up again on Postgres", async () => {
  const database = await createEmptyDatabase();
  try {
    const client = await openMigrationConnection(database.url("owner"));
    try {
      const schemas = `{${CHAINS.map((chain) => chain.name).join(",")}}`;
      const objects = async () => (await client.query<{ object: string }>(OBJECTS, [schemas])).map((row) => row.object);
      await migrateUp(client, CHAINS);
      const first = await objects();
      assert.ok(first.length > 0);
      await migrateDown(client, CHAINS, { steps: Infinity });
      assert.deepEqual(await objects(), []);
      await migrateUp(client, CHAINS);
      assert.deepEqual(await objects(), first);
      assert.ok((await migrationStatus(client, CHAINS)).every((status) => status.state === "current"));
    } finally {
      await client.close();
    }
  } finally {
    await database.drop();
  }
});

Deno.test("the migrations of house and workers go up, all the way down and up again on the embedded store", async () => {
  const db = new SqliteDatabase(":memory:");
  try {
    const objects = () =>
      db.read((session) =>
        session.all("select type, name from sqlite_master where name not like '%schema_migrations%' order by name")
          .map((row) => `${row.type} ${row.name}`)
      );
    await migrateSqliteUp(db, CHAINS);
    const first = await objects();
    assert.ok(first.length > 0);
    await migrateSqliteDown(db, CHAINS, { steps: Infinity });
    assert.deepEqual(await objects(), []);
    await migrateSqliteUp(db, CHAINS);
    assert.deepEqual(await objects(), first);
  } finally {
    db.close();
  }
});
