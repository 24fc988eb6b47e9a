import assert from "node:assert/strict";
import { ValidationError } from "../../src/core/errors.ts";
import { verifySchema } from "../../src/db/migrator.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { EXAMPLE_CHAIN } from "../support/example_chain.ts";

const ORG = "0195d3a0-0000-7000-8000-000000000001";
const OTHER = "0195d3a0-0000-7000-8000-000000000002";

Deno.test("a test database is migrated, holds tenants apart, and its clock can be moved", async () => {
  const db = await createTestDatabase([EXAMPLE_CHAIN]);
  try {
    await verifySchema(db.databases, [EXAMPLE_CHAIN]);
    const insert = "insert into example.notes (org_id, id, text) values ($1, $2, $3) returning id";
    const rows = await db.databases.core.tenant(ORG, insert, [ORG, crypto.randomUUID(), "a"]);
    assert.equal(rows.length, 1);
    await assert.rejects(
      db.databases.core.tenant(ORG, insert, [OTHER, crypto.randomUUID(), "b"]),
      /row-level security/,
    );
    assert.equal((await db.databases.core.tenant(OTHER, "select * from example.notes", [])).length, 0);
    assert.equal((await db.databases.core.system("select * from example.notes", [])).length, 1);
    await assert.rejects(
      db.databases.core.tenant(ORG, insert, [ORG, "no uuid", "c"]),
      (error) => error instanceof ValidationError,
    );
    const before = await db.clock.now();
    await db.clock.advance(3_600_000);
    const after = await db.clock.now();
    assert.ok(after - before >= 3_600_000, `${after - before}`);
    const [row] = await db.databases.core.system(`select ${db.clock.nowSql} > now() as ahead`, []);
    assert.equal(row?.ahead, true);
  } finally {
    await db.drop();
  }
});
