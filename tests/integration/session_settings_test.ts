import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { openDatabases } from "../../src/db/postgres_database.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createTestDatabase } from "../support/postgres.ts";

Deno.test("settings a database gives its sessions change no value that is read or written", async () => {
  const database = await createTestDatabase(CHAINS);
  try {
    const settings = [
      "datestyle = 'German'",
      "datestyle = 'SQL, DMY'",
      "timezone = 'Asia/Kolkata'",
      "intervalstyle = 'sql_standard'",
      "extra_float_digits = -10",
      "standard_conforming_strings = off",
      "search_path = ''",
      "default_transaction_isolation = 'serializable'",
    ];
    for (const setting of settings) {
      await database.adminSql(`alter database "${database.name}" set ${setting}`);
      const open = openDatabases({ runtime: database.url("runtime"), system: database.url("system") });
      try {
        const at = "2026-02-03T04:05:06.789Z";
        const params = [at, JSON.stringify({ n: 0.1, s: "a\\b'" })];
        const sql = "select $1::text::timestamptz as at, $2::text::jsonb as payload";
        const { core } = open.databases;
        for (const [row] of [await core.system(sql, params), await core.tenant(newId(), sql, params)]) {
          assert.deepEqual(row?.payload, { n: 0.1, s: "a\\b'" }, setting);
          assert.equal((row?.at as Date).toISOString(), at, setting);
        }
      } finally {
        await open.close();
      }
      await database.adminSql(`alter database "${database.name}" reset all`);
    }
  } finally {
    await database.drop();
  }
});
