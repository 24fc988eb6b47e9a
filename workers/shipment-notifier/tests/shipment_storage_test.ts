import { CHAINS, createStorages } from "../../../mod.ts";
import { ENGINES, openTestStore } from "../../../tests/support/stores.ts";
import { endpointStorage, shipmentStorage } from "../container.ts";
import { SHIPMENTS_CHAIN } from "../shipments/chain.ts";
import { testShipmentStorage } from "./contract.ts";

for (const engine of ENGINES) {
  testShipmentStorage(engine, async () => {
    const open = await openTestStore(engine, [...CHAINS, SHIPMENTS_CHAIN]);
    return {
      storage: shipmentStorage(open.store),
      endpoints: endpointStorage(open.store),
      outbox: createStorages(open.store).outbox,
      advance: (ms) => open.advance(ms),
      close: () => open.close(),
    };
  });
}
