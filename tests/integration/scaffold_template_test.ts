/**
 * The template worker's storages on Postgres, which the worker's own tests do without: a project may have no server.
 */
import { CHAINS } from "../../src/migrations.ts";
import { forTests } from "../../tools/scaffold/template/worker/container.ts";
import { SAMPLE_RECORDS_CHAIN } from "../../tools/scaffold/template/worker/sample_records/chain.ts";
import { testSampleRecordStorage } from "../../tools/scaffold/template/worker/tests/contract.ts";
import { createTestDatabase, TEST_NOW_SQL } from "../support/postgres.ts";

testSampleRecordStorage("Postgres", async () => {
  const db = await createTestDatabase([...CHAINS, SAMPLE_RECORDS_CHAIN]);
  const container = await forTests({ store: { engine: "postgres", databases: db.databases, nowSql: TEST_NOW_SQL } });
  return {
    ...container,
    async close() {
      await container.close();
      await db.drop();
    },
  };
});
