import { PostgresAuditStorage } from "../../src/audit/storage/postgres.ts";
import { CHAINS } from "../../src/migrations.ts";
import { encodeOutboxRows, outboxInsertCte } from "../../src/outbox/rows.ts";
import { PostgresOutboxStorage } from "../../src/outbox/storage/postgres.ts";
import { PostgresTenancyStorage } from "../../src/tenancy/storage/postgres.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { testAuditStorage } from "./audit_storage.ts";
import type { Harness } from "./contract.ts";
import { testOutboxStorage } from "./outbox_storage.ts";
import { testTenancyStorage } from "./tenancy_storage.ts";

interface OpenDatabase extends Harness {
  readonly db: TestDatabase;
  readonly options: { readonly nowSql: string };
}

async function open(): Promise<OpenDatabase> {
  const db = await createTestDatabase(CHAINS);
  return {
    db,
    options: { nowSql: db.clock.nowSql },
    advance: (ms) => db.clock.advance(ms),
    close: () => db.drop(),
  };
}

testTenancyStorage("postgres", async () => {
  const database = await open();
  return { ...database, storage: new PostgresTenancyStorage(database.db.databases.core, database.options) };
});

testAuditStorage("postgres", async () => {
  const database = await open();
  return { ...database, storage: new PostgresAuditStorage(database.db.databases.activity, database.options) };
});

testOutboxStorage("postgres", async () => {
  const database = await open();
  const { core } = database.db.databases;
  const insert = `with ${outboxInsertCte(1, database.options)} select 1`;
  return {
    ...database,
    storage: new PostgresOutboxStorage(core, database.options),
    seed: async (rows) => {
      const [first] = rows;
      if (first !== undefined) await core.tenant(first.orgId, insert, [encodeOutboxRows(rows)]);
    },
  };
});
