/**
 * The queue's second migration, down again with what hosts left behind.
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { migrateDown, openMigrationConnection } from "../../src/db/migrator.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createTestDatabase } from "../support/postgres.ts";

Deno.test("going down before hosts moves what they completed into the history, whatever the row policies", async () => {
  const db = await createTestDatabase(CHAINS);
  try {
    const [orgId, id, token] = [newId(), newId(), newId()];
    const put = (one: string, status: string, claim: string | null) =>
      db.adminSql(
        `insert into queue.work_items (org_id, id, created_at, created_by, available_at, kind, idempotency_key, payload,
          updated_at, updated_by, status, claim_token, host)
        values ($1::uuid, $2::uuid, now(), $1::uuid, now(), 'A', $2, '{}', now(), $1::uuid, $3, $4::uuid, 'h')`,
        [orgId, one, status, claim],
      );
    await put(id, "done", token);
    const waiting = newId();
    await put(waiting, "queued", null);
    const client = await openMigrationConnection(db.url("owner"));
    try {
      await migrateDown(client, CHAINS.filter(({ name }) => name === "queue"), { steps: 1 });
    } finally {
      await client.close();
    }
    const left = await db.adminSql("select id, status from queue.work_items");
    assert.deepEqual(left, [{ id: waiting, status: "queued" }]);
    const kept = await db.adminSql("select id, claim_token, kind from queue.work_history");
    assert.deepEqual(kept, [{ id, claim_token: token, kind: "A" }]);
    const forced = await db.adminSql(
      `select count(*)::int as n from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where nspname = 'queue' and relforcerowsecurity`,
    );
    assert.deepEqual(forced, [{ n: 3 }], "they are forced as before");
  } finally {
    await db.drop();
  }
});
