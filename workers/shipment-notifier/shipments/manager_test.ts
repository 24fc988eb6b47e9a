/**
 * The shipment manager over the embedded store, with answers that get lost.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  ConflictError,
  EMPTY_UUID,
  newId,
  NotFoundError,
  type OpContext,
  UnavailableError,
  ValidationError,
} from "../../../mod.ts";
import { forTests, shipmentStorage, type TestContainer } from "../container.ts";
import { claim, member, newShipment, request } from "../tests/world.ts";
import { createShipmentManager } from "./manager.ts";
import type { ShipmentManager, ShipmentStorage } from "./types.ts";

const URL = "https://hooks.example/x";

async function withContainer(test: (container: TestContainer, ctx: OpContext) => Promise<void>): Promise<void> {
  const container = await forTests();
  try {
    await test(container, await member(container));
  } finally {
    await container.close();
  }
}

async function events({ managers: { audit } }: TestContainer, ctx: OpContext): Promise<string[]> {
  return (await audit.readEvents(ctx, { afterSeq: 0, limit: 100 })).map((event) => event.kind);
}

type Write = "createShipment" | "markNotified" | "park" | "deleteShipment";

/** A manager whose storage loses the answer of one kind of write: before it was made, or after. */
function losing(container: TestContainer, write: Write, when: "before" | "after"): ShipmentManager {
  const storage = shipmentStorage(container.store);
  const lossy = new Proxy(storage, {
    get(target, name: keyof ShipmentStorage) {
      const method = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
      if (name !== write) return method;
      return async (...args: unknown[]) => {
        if (when === "after") await method(...args);
        throw new UnavailableError("the answer was lost", "unknown");
      };
    },
  });
  return createShipmentManager(lossy, container.managers.outbox);
}

Deno.test("create() writes the shipment, its event and its item, at once and once", async () => {
  await withContainer(async (container, ctx) => {
    const { shipments, storages, managers } = container;
    const wanted = newShipment(URL, { lane: "express" });
    const first = await shipments.create(ctx, wanted);
    assert.equal(first.outcome, "INSERTED");
    assert.equal(first.shipment.createdBy, ctx.userId);
    assert.equal((await storages.outbox.readLag()).pending, 0, "the rows were relayed right away");
    const again = await shipments.create(ctx, { ...wanted, recipientName: "Somebody else" });
    assert.deepEqual(again, { outcome: "EXISTS", shipment: first.shipment });
    await managers.outbox.relayPending(request(container), 100);
    assert.deepEqual(await events(container, ctx), ["shipments.shipment.created"]);
    assert.deepEqual(await claim(container), []);
    const [claimed, ...others] = await claim(container, "express");
    assert.equal(others.length, 0);
    assert.equal(claimed?.item.id, first.shipment.notificationId);
    assert.deepEqual(claimed?.item.payload, { shipmentId: wanted.id });
    assert.deepEqual([claimed?.item.createdBy, claimed?.item.requestId], [ctx.userId, ctx.requestId]);
  });
});

Deno.test("create() many times at once makes one shipment, one event and one item", async () => {
  await withContainer(async (container, ctx) => {
    const wanted = newShipment(URL);
    const all = await Promise.all(Array.from({ length: 30 }, () => container.shipments.create(ctx, wanted)));
    assert.equal(all.filter(({ outcome }) => outcome === "INSERTED").length, 1);
    assert.equal(new Set(all.map(({ shipment }) => shipment.notificationId)).size, 1);
    await container.managers.outbox.relayPending(request(container), 100);
    assert.deepEqual(await events(container, ctx), ["shipments.shipment.created"]);
    assert.equal((await claim(container)).length, 1);
  });
});

Deno.test("create() refuses before anything is written", async () => {
  await withContainer(async (container, ctx) => {
    await assert.rejects(container.shipments.create(ctx, newShipment("ftp://x")), ValidationError);
    assert.equal((await container.storages.outbox.readLag()).pending, 0);
    assert.deepEqual(await events(container, ctx), []);
  });
});

Deno.test("create() whose answer was lost is read back: made is made, not made is told", async () => {
  await withContainer(async (container, ctx) => {
    const wanted = newShipment(URL);
    await assert.rejects(losing(container, "createShipment", "before").create(ctx, wanted), UnavailableError);
    await assert.rejects(container.shipments.read(ctx, wanted.id), NotFoundError);
    const made = await losing(container, "createShipment", "after").create(ctx, wanted);
    assert.equal(made.outcome, "INSERTED");
    const again = await losing(container, "createShipment", "after").create(ctx, wanted);
    assert.deepEqual(again, { outcome: "EXISTS", shipment: made.shipment });
    assert.deepEqual((await claim(container)).map(({ item }) => item.id), [made.shipment.notificationId]);
  });
});

Deno.test("read() gives an org its own shipments alone", async () => {
  await withContainer(async (container, ctx) => {
    const { shipment } = await container.shipments.create(ctx, newShipment(URL));
    assert.deepEqual(await container.shipments.read(ctx, shipment.id.toUpperCase()), shipment);
    const stranger = await member(container);
    for (const [who, id] of [[stranger, shipment.id], [ctx, newId()], [ctx, "nope"]] as const) {
      await assert.rejects(container.shipments.read(who, id), NotFoundError);
    }
    await assert.rejects(container.shipments.markNotified(stranger, shipment, 1), NotFoundError);
  });
});

Deno.test("markNotified() announces itself once, and a loser is told what is there", async () => {
  await withContainer(async (container, ctx) => {
    const { shipment } = await container.shipments.create(ctx, newShipment(URL));
    const raced = await Promise.allSettled(
      Array.from({ length: 10 }, () => container.shipments.markNotified(ctx, shipment, 1)),
    );
    assert.equal(raced.filter((end) => end.status === "fulfilled").length, 1);
    for (const end of raced) {
      if (end.status === "fulfilled") continue;
      assert.ok(end.reason instanceof ConflictError);
      assert.match(end.reason.message, /notified at version 2/);
    }
    assert.deepEqual(await events(container, ctx), ["shipments.shipment.created", "shipments.shipment.notified"]);
  });
});

Deno.test("markNotified() whose answer was lost is read back: marked is success, not marked is told", async () => {
  await withContainer(async (container, ctx) => {
    const { shipment } = await container.shipments.create(ctx, newShipment(URL));
    const mark = (manager: ShipmentManager) => manager.markNotified(ctx, shipment, 1);
    await assert.rejects(mark(losing(container, "markNotified", "before")), UnavailableError);
    assert.equal((await container.shipments.read(ctx, shipment.id)).status, "created");
    assert.equal((await mark(losing(container, "markNotified", "after"))).version, 2);
    await assert.rejects(mark(container.shipments), ConflictError);
    await container.managers.outbox.relayPending(request(container), 100);
    assert.deepEqual(await events(container, ctx), ["shipments.shipment.created", "shipments.shipment.notified"]);
  });
});

const LATER = new Date(Date.now() + 3_600_000);

Deno.test("park() announces itself once, keeps its cursor, and a loser is told what is there", async () => {
  await withContainer(async (container, ctx) => {
    const { shipments } = container;
    const { shipment } = await shipments.create(ctx, newShipment(URL));
    const wanted = { reason: "its receiver is on holiday", resumeAt: LATER, cursor: { page: 3 } };
    await assert.rejects(shipments.park(ctx, shipment, 1, { ...wanted, reason: "" }), ValidationError);
    const parked = await shipments.park(ctx, shipment, 1, wanted);
    assert.deepEqual([parked.version, parked.status, parked.parking], [2, "created", {
      reason: wanted.reason,
      resumeAt: LATER,
      cursor: { page: 3 },
    }]);
    for (const version of [1, 2]) {
      await assert.rejects(shipments.park(ctx, shipment, version, wanted), (error: Error) => {
        assert.ok(error instanceof ConflictError);
        assert.match(error.message, /parked at version 2/);
        return true;
      });
    }
    await assert.rejects(shipments.park(await member(container), shipment, 1, wanted), NotFoundError);
    assert.deepEqual(await events(container, ctx), ["shipments.shipment.created", "shipments.shipment.parked"]);
    assert.equal(await shipments.countParked(request(container)), 1);
  });
});

Deno.test("resumeParked() gives a shipment a new item for its creator, in the lane its cursor kept, once", async () => {
  await withContainer(async (container, ctx) => {
    const { shipments, managers } = container;
    const { shipment } = await shipments.create(ctx, newShipment(URL, { lane: "express" }));
    const service = await managers.tenancy.serviceContext(request(container), ctx.orgId);
    await shipments.park(service, shipment, 1, { reason: "x", resumeAt: new Date(0), cursor: { lane: "express" } });
    const all = await Promise.all([shipments.resumeParked(service), shipments.resumeParked(service)]);
    assert.equal(all[0].resumed + all[1].resumed, 1);
    const resumed = await shipments.read(ctx, shipment.id);
    assert.deepEqual([resumed.version, resumed.parking, resumed.updatedBy], [3, null, EMPTY_UUID]);
    assert.deepEqual([resumed.notificationId, resumed.itemId === shipment.itemId], [shipment.notificationId, false]);
    const items = (await claim(container, "express")).map(({ item }) => item);
    assert.deepEqual(items.map(({ id }) => id).sort(), [shipment.itemId, resumed.itemId].sort());
    assert.equal(items.find(({ id }) => id === resumed.itemId)?.createdBy, ctx.userId);
    assert.deepEqual(await shipments.resumeParked(service), { resumed: 0, postponed: 0 });
    assert.deepEqual(await events(container, ctx), [
      "shipments.shipment.created",
      "shipments.shipment.parked",
      "shipments.shipment.resumed",
    ]);
  });
});

Deno.test("deleteShipment() hides it, announces itself once, and its id is not created again", async () => {
  await withContainer(async (container, ctx) => {
    const { shipments } = container;
    const wanted = newShipment(URL);
    const { shipment } = await shipments.create(ctx, wanted);
    await assert.rejects(shipments.deleteShipment(ctx, shipment, 2), ConflictError);
    await assert.rejects(shipments.deleteShipment(await member(container), shipment, 1), NotFoundError);
    assert.equal(await shipments.wasDeleted(ctx, shipment.id), false);
    await shipments.deleteShipment(ctx, shipment, 1);
    assert.equal(await shipments.wasDeleted(ctx, shipment.id.toUpperCase()), true);
    await assert.rejects(shipments.read(ctx, shipment.id), NotFoundError);
    await assert.rejects(shipments.deleteShipment(ctx, shipment, 2), NotFoundError);
    await assert.rejects(shipments.markNotified(ctx, shipment, 2), NotFoundError);
    await assert.rejects(shipments.create(ctx, wanted), ValidationError);
    assert.deepEqual(await events(container, ctx), ["shipments.shipment.created", "shipments.shipment.deleted"]);
  });
});

Deno.test("park() and deleteShipment() whose answers were lost are read back: done is success, not done is told", async () => {
  await withContainer(async (container, ctx) => {
    const { shipment } = await container.shipments.create(ctx, newShipment(URL));
    const park = (manager: ShipmentManager) => manager.park(ctx, shipment, 1, { reason: "x", resumeAt: LATER });
    await assert.rejects(park(losing(container, "park", "before")), UnavailableError);
    const parked = await park(losing(container, "park", "after"));
    assert.deepEqual([parked.version, parked.parking?.reason], [2, "x"]);
    await assert.rejects(
      losing(container, "deleteShipment", "before").deleteShipment(ctx, parked, 2),
      UnavailableError,
    );
    assert.equal((await container.shipments.read(ctx, shipment.id)).version, 2);
    await losing(container, "deleteShipment", "after").deleteShipment(ctx, parked, 2);
    assert.equal(await container.shipments.wasDeleted(ctx, shipment.id), true);
    await container.managers.outbox.relayPending(request(container), 100);
    assert.deepEqual(await events(container, ctx), [
      "shipments.shipment.created",
      "shipments.shipment.parked",
      "shipments.shipment.deleted",
    ]);
  });
});
