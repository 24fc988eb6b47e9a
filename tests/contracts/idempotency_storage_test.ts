import { createStorages } from "../../src/storages.ts";
import { ENGINES, openTestStore } from "../support/stores.ts";
import { testIdempotencyStorage } from "./idempotency_storage.ts";

for (const engine of ENGINES) {
  testIdempotencyStorage(engine, async () => {
    const test = await openTestStore(engine);
    return {
      storage: createStorages(test.store).idempotency,
      advance: (ms) => test.advance(ms),
      close: () => test.close(),
    };
  });
}
