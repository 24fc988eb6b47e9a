import { createStorages } from "../../src/storages.ts";
import { ENGINES, openTestStore } from "../support/stores.ts";
import { testWorkStorage, type WorkHarness } from "./work_storage.ts";
import { testWorkStorageValues } from "./work_storage_values.ts";

for (const engine of ENGINES) {
  const make = async (): Promise<WorkHarness> => {
    const test = await openTestStore(engine);
    return {
      storage: createStorages(test.store).work,
      advance: (ms) => test.advance(ms),
      close: () => test.close(),
      tamper: async (orgId, id, assignments) => {
        const set = Object.entries(assignments).map(([column, value]) => `${column} = ${value}`).join(", ");
        await test.sql(
          `update ${test.table("queue.work_items")} set ${set} where org_id = '${orgId}' and id = '${id}' returning id`,
        );
      },
    };
  };
  testWorkStorage(engine, make);
  testWorkStorageValues(engine, make);
}
