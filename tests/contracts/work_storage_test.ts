import postgres from "postgres";
import { CHAINS, FAIR_CHAIN } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import type { CallerTransaction } from "../../src/work/storage.ts";
import { ENGINES, openTestStore } from "../support/stores.ts";
import { testWorkStorage, type WorkHarness } from "./work_storage.ts";

for (const engine of ENGINES) {
  const make = async (): Promise<WorkHarness> => {
    const test = await openTestStore(engine, [...CHAINS, FAIR_CHAIN]);
    return {
      storage: createStorages(test.store).work,
      advance: (ms) => test.advance(ms),
      close: () => test.close(),
      ...(test.database === undefined ? {} : {
        transaction: (work) => transaction(test.database?.url("runtime"), work),
        hostSql: (text) => test.sql(text),
      }),
      tamper: async (orgId, id, assignments) => {
        const set = Object.entries(assignments).map(([column, value]) => `${column} = ${value}`).join(", ");
        await test.sql(
          `update ${test.table("queue.work_items")} set ${set} where org_id = '${orgId}' and id = '${id}' returning id`,
        );
      },
    };
  };
  testWorkStorage(engine, make, { fair: true });
}

/** A producer's own connection and transaction, on the runtime login. */
async function transaction(url = "", work: (tx: CallerTransaction) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const tx: CallerTransaction = { query: (text, params) => sql.unsafe(text, params as string[], { prepare: true }) };
  try {
    await sql.unsafe("begin");
    await work(tx);
    await sql.unsafe("commit");
  } catch (error) {
    await sql.unsafe("rollback").catch(() => {});
    throw error;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
