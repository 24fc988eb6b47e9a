/**
 * The contract of `ShipmentStorage`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../../mod.ts";
import { type Cases, contractSuite } from "../../../testing.ts";
import type { ShipmentInsert } from "../shipments/types.ts";
import { ENDPOINT_CASES } from "./contract_endpoints.ts";
import { PARKING_CASES } from "./contract_parking.ts";
import { HOST, insertOf, pending, rowOf, type ShipmentHarness } from "./contract_world.ts";

/** Runs the contract over the storage that `make` provides. */
export function testShipmentStorage(name: string, make: () => Promise<ShipmentHarness>): void {
  contractSuite(`ShipmentStorage on ${name}`, make, { ...CASES, ...PARKING_CASES, ...ENDPOINT_CASES });
}

async function created(harness: ShipmentHarness, orgId: string, insert = insertOf()): Promise<ShipmentInsert> {
  assert.ok(await harness.storage.createShipment(orgId, insert, []));
  return insert;
}

const CASES: Cases<ShipmentHarness> = {
  "createShipment() gives the row as it reads back, with its outbox rows": async ({ storage, outbox }) => {
    const [orgId, insert] = [newId(), insertOf()];
    const rows = [
      rowOf(orgId, "shipments.shipment.created", insert.id),
      rowOf(orgId, "work.notify_shipment", insert.id),
    ];
    const written = await storage.createShipment(orgId, insert, rows) ?? assert.fail("it was not written");
    const { createdAt } = written;
    assert.deepEqual(written, {
      ...insert,
      version: 1,
      status: "created",
      notifiedAt: null,
      itemId: insert.notificationId,
      parking: null,
      createdAt,
      updatedAt: createdAt,
      updatedBy: insert.createdBy,
    });
    assert.deepEqual(await storage.readShipment(orgId, insert.id), written);
    assert.deepEqual(await pending(outbox, orgId), ["shipments.shipment.created", "work.notify_shipment"]);
  },

  "createShipment() of an id that exists changes nothing and writes no rows": async ({ storage, outbox }) => {
    const [orgId, first] = [newId(), insertOf()];
    const written = await storage.createShipment(orgId, first, [rowOf(orgId, "shipments.shipment.created", first.id)]);
    const second = insertOf({ id: first.id, carrier: "UPS" });
    const rows = [rowOf(orgId, "shipments.shipment.created", first.id)];
    assert.equal(await storage.createShipment(orgId, second, rows), null);
    assert.deepEqual(await storage.readShipment(orgId, first.id), written);
    assert.equal((await pending(outbox, orgId)).length, 1);
  },

  "createShipment() of one id many times at once leaves one, with the rows of that one": async (
    { storage, outbox },
  ) => {
    const [orgId, id] = [newId(), newId()];
    const results = await Promise.all(
      Array.from(
        { length: 20 },
        () => storage.createShipment(orgId, insertOf({ id }), [rowOf(orgId, "shipments.shipment.created", id)]),
      ),
    );
    assert.equal(results.filter((result) => result !== null).length, 1);
    assert.equal((await pending(outbox, orgId)).length, 1);
  },

  "an id is an org's own: the same one in another org is another shipment": async ({ storage }) => {
    const [mine, other, id] = [newId(), newId(), newId()];
    assert.ok(await storage.createShipment(mine, insertOf({ id, carrier: "UPS" }), []));
    assert.equal(await storage.readShipment(other, id), null);
    assert.ok(await storage.createShipment(other, insertOf({ id, carrier: "DPD" }), []));
    assert.equal((await storage.readShipment(mine, id))?.carrier, "UPS");
    assert.equal((await storage.readShipment(other, id))?.carrier, "DPD");
  },

  "readShipment() of an id nobody has is null": async ({ storage }) => {
    assert.equal(await storage.readShipment(newId(), newId()), null);
  },

  "markNotified() marks on database time, one version on, signed, with its outbox rows": async (harness) => {
    const { storage, outbox } = harness;
    const [orgId, updatedBy] = [newId(), newId()];
    const { id } = await created(harness, orgId);
    const before = await storage.readShipment(orgId, id) ?? assert.fail("it is not there");
    await harness.advance(60_000);
    const rows = [rowOf(orgId, "shipments.shipment.notified", id)];
    const marked = await storage.markNotified(orgId, { id, expectedVersion: 1, updatedBy, host: HOST }, rows);
    assert.ok(marked?.notifiedAt);
    assert.ok(marked.notifiedAt.getTime() - before.createdAt.getTime() >= 60_000);
    assert.deepEqual(marked, {
      ...before,
      version: 2,
      status: "notified",
      notifiedAt: marked.notifiedAt,
      updatedAt: marked.notifiedAt,
      updatedBy,
    });
    assert.deepEqual(await storage.readShipment(orgId, id), marked);
    assert.deepEqual(await pending(outbox, orgId), ["shipments.shipment.notified"]);
  },

  "markNotified() under another version, or of one marked already, changes nothing and writes no rows": async (
    harness,
  ) => {
    const { storage, outbox } = harness;
    const [orgId, updatedBy] = [newId(), newId()];
    const { id } = await created(harness, orgId);
    const rows = () => [rowOf(orgId, "shipments.shipment.notified", id)];
    for (const expectedVersion of [0, 2]) {
      assert.equal(await storage.markNotified(orgId, { id, expectedVersion, updatedBy, host: HOST }, rows()), null);
    }
    assert.equal((await storage.readShipment(orgId, id))?.version, 1);
    const marked = await storage.markNotified(orgId, { id, expectedVersion: 1, updatedBy, host: HOST }, []);
    for (const expectedVersion of [1, 2]) {
      assert.equal(
        await storage.markNotified(orgId, { id, expectedVersion, updatedBy: newId(), host: HOST }, rows()),
        null,
      );
    }
    assert.deepEqual(await storage.readShipment(orgId, id), marked);
    assert.deepEqual(await pending(outbox, orgId), []);
  },

  "markNotified() under another org finds nothing, and leaves the row as it stood": async (harness) => {
    const { storage, outbox } = harness;
    const [mine, other] = [newId(), newId()];
    const { id } = await created(harness, mine);
    const before = await storage.readShipment(mine, id);
    const rows = [rowOf(other, "shipments.shipment.notified", id)];
    assert.equal(
      await storage.markNotified(other, { id, expectedVersion: 1, updatedBy: newId(), host: HOST }, rows),
      null,
    );
    assert.deepEqual(await storage.readShipment(mine, id), before);
    assert.deepEqual(await pending(outbox, other), []);
  },

  "markNotified() many times at once from one version lets one win, and writes its rows alone": async (harness) => {
    const { storage, outbox } = harness;
    const orgId = newId();
    const { id } = await created(harness, orgId);
    const results = await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          storage.markNotified(orgId, { id, expectedVersion: 1, updatedBy: newId(), host: HOST }, [
            rowOf(orgId, "shipments.shipment.notified", id),
          ]),
      ),
    );
    const won = results.filter((result) => result !== null);
    assert.equal(won.length, 1);
    assert.deepEqual(await storage.readShipment(orgId, id), won[0]);
    assert.deepEqual(await pending(outbox, orgId), ["shipments.shipment.notified"]);
  },
};
