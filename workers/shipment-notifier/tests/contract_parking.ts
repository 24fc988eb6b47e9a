/**
 * The part of the contract of `ShipmentStorage` that is about parking and deletion.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EMPTY_UUID, newId } from "../../../mod.ts";
import type { Cases } from "../../../testing.ts";
import type { Shipment } from "../shipments/types.ts";
import {
  created,
  HOST,
  insertOf,
  isDue,
  markOf,
  parked,
  pending,
  POLICY,
  rowOf,
  type ShipmentHarness,
  takeDown,
  wake,
  wakeRows,
} from "./contract_world.ts";

/** Every org an `orgsWith…` method names, page by page. */
async function everyOrg(page: (afterOrgId: string | null) => Promise<string[]>): Promise<string[]> {
  const seen: string[] = [];
  for (let rounds = 0; rounds < 1_000; rounds++) {
    const found = await page(seen.at(-1) ?? null);
    if (found.length === 0) return seen;
    assert.ok(found.length <= 2);
    seen.push(...found);
  }
  assert.fail("the pages have no end");
}

/** The cases, added to those of the suite. */
export const PARKING_CASES: Cases<ShipmentHarness> = {
  "park() keeps reason, time and cursor, one version on, signed, with its outbox rows": async (h) => {
    const orgId = newId();
    const before = await created(h, orgId);
    const cursor = { lane: "express", at: [1, null, "ünï 🚚"] };
    const mark = markOf(before, { reason: '受取人 "down"', resumeAt: new Date("2030-01-02T03:04:05.678Z"), cursor });
    const after = await h.storage.park(orgId, mark, [rowOf(orgId, "shipments.shipment.parked", before.id)]);
    assert.deepEqual(after, {
      ...before,
      version: 2,
      parking: { reason: mark.reason, resumeAt: mark.resumeAt, cursor },
      updatedAt: after?.updatedAt,
      updatedBy: mark.updatedBy,
    });
    assert.deepEqual(await h.storage.readShipment(orgId, before.id), after);
    assert.deepEqual(await pending(h.outbox, orgId), ["shipments.shipment.parked"]);
  },

  "park() of another version, of one parked, notified or deleted, or under another org, changes nothing": async (h) => {
    const { storage } = h;
    const [orgId, other] = [newId(), newId()];
    const [one, told, gone] = [await parked(h, orgId), await created(h, orgId), await created(h, orgId)];
    const notified = await storage.markNotified(orgId, { ...markOf(told), host: HOST }, []) ?? assert.fail();
    assert.equal(await storage.deleteShipment(orgId, markOf(gone), []), true);
    const rows = () => [rowOf(orgId, "shipments.shipment.parked", one.id)];
    for (const expectedVersion of [1, 2, 3]) {
      for (const shipment of [one, notified, gone]) {
        assert.equal(await storage.park(orgId, markOf(shipment, { expectedVersion }), rows()), null);
      }
    }
    const free = await created(h, orgId);
    assert.equal(await storage.park(other, markOf(free), [rowOf(other, "shipments.shipment.parked", free.id)]), null);
    assert.deepEqual(await storage.readShipment(orgId, one.id), one);
    assert.deepEqual(await storage.readShipment(orgId, free.id), free);
    assert.deepEqual([await pending(h.outbox, orgId), await pending(h.outbox, other)], [[], []]);
  },

  "park() many times at once from one version lets one win, and writes its rows alone": async (h) => {
    const orgId = newId();
    const shipment = await created(h, orgId);
    const rows = () => [rowOf(orgId, "shipments.shipment.parked", shipment.id)];
    const all = await Promise.all(Array.from({ length: 20 }, () => h.storage.park(orgId, markOf(shipment), rows())));
    assert.equal(all.filter((one) => one !== null).length, 1);
    assert.deepEqual(await pending(h.outbox, orgId), ["shipments.shipment.parked"]);
  },

  "a parked shipment that is notified after all is parked no longer": async (h) => {
    const orgId = newId();
    const one = await parked(h, orgId);
    const marked = await h.storage.markNotified(orgId, { ...markOf(one), host: HOST }, []);
    assert.deepEqual([marked?.status, marked?.parking], ["notified", null]);
    assert.deepEqual(await h.storage.readDueParked(orgId, 10), []);
  },

  "readDueParked() gives the longest due first, as many as asked for, of its org alone": async (h) => {
    const { storage } = h;
    const [orgId, other] = [newId(), newId()];
    const late = await parked(h, orgId, { resumeAt: new Date(2_000) });
    const early = await parked(h, orgId, { resumeAt: new Date(1_000), host: "a.example" });
    const future = await parked(h, orgId, { resumeAt: new Date("2100-01-01T00:00:00Z") });
    await parked(h, other);
    const due = await storage.readDueParked(orgId, 10);
    assert.deepEqual(due, [
      { shipment: early, host: "a.example", probeInMs: null },
      { shipment: late, host: null, probeInMs: null },
    ]);
    assert.equal(isDue(due, future), false);
    assert.equal((await storage.readDueParked(orgId, 1)).length, 1);
  },

  "readDueParked() says how long an endpoint that is down is left alone, and nothing of one that merely fails": async (
    h,
  ) => {
    const [orgId, other] = [newId(), newId()];
    await parked(h, orgId, { host: HOST });
    await h.endpoints.failed(orgId, HOST, { ...POLICY, probe: false });
    await takeDown(h, other);
    const probeIn = async () => (await h.storage.readDueParked(orgId, 10))[0]?.probeInMs;
    assert.equal(await probeIn(), null);
    await takeDown(h, orgId);
    const inMs = await probeIn();
    assert.ok(typeof inMs === "number" && inMs > 0 && inMs <= POLICY.probeMs, String(inMs));
    await h.advance(POLICY.probeMs);
    assert.ok(Number(await probeIn()) <= 0);
  },

  "resumeParked() resumes with a new item, keeps the cursor, and postpones others, with the rows of the resumed alone":
    async (h) => {
      const { storage } = h;
      const orgId = newId();
      const one = await parked(h, orgId, { cursor: { lane: "x" }, host: HOST });
      const waits = await parked(h, orgId, { host: HOST });
      const { move, itemId } = wake(one);
      const stays = { id: waits.id, expectedVersion: waits.version, itemId: null, postponeMs: 60_000 };
      const rows = [...wakeRows(orgId, one, itemId), rowOf(orgId, "shipments.shipment.resumed", waits.id)];
      assert.deepEqual(await storage.resumeParked(orgId, [move, stays], rows), [one.id]);
      const resumed = await storage.readShipment(orgId, one.id);
      assert.deepEqual(resumed, {
        ...one,
        version: 3,
        itemId,
        parking: null,
        updatedAt: resumed?.updatedAt,
        updatedBy: EMPTY_UUID,
      });
      assert.deepEqual(await pending(h.outbox, orgId), ["shipments.shipment.resumed", "work.notify_shipment"]);
      assert.deepEqual(await storage.readDueParked(orgId, 10), []);
      await h.advance(60_001);
      const [due] = await storage.readDueParked(orgId, 10);
      assert.deepEqual([due?.shipment.id, due?.shipment.version, due?.host], [waits.id, waits.version, HOST]);
      const again = await storage.park(orgId, markOf(resumed ?? one), []);
      assert.deepEqual(again?.parking?.cursor, { lane: "x" }, "a park without a cursor keeps the one there was");
    },

  "resumeParked() passes over another version, one not due, one not parked, and another org's": async (h) => {
    const { storage } = h;
    const [orgId, other] = [newId(), newId()];
    const one = await parked(h, orgId);
    const future = await parked(h, orgId, { resumeAt: new Date("2100-01-01T00:00:00Z") });
    const free = await created(h, orgId);
    const moves = [{ ...wake(one).move, expectedVersion: 1 }, wake(future).move, wake(free).move];
    const rows = [one, future, free].flatMap((shipment) => wakeRows(orgId, shipment, newId()));
    assert.deepEqual(await storage.resumeParked(orgId, moves, rows), []);
    assert.deepEqual(await storage.resumeParked(other, [wake(one).move], wakeRows(other, one, newId())), []);
    const postpone = { ...wake(one).move, itemId: null, postponeMs: 60_000 };
    assert.deepEqual(await storage.resumeParked(other, [postpone], []), []);
    for (const shipment of [one, future, free]) {
      assert.deepEqual(await storage.readShipment(orgId, shipment.id), shipment);
    }
    assert.deepEqual([await pending(h.outbox, orgId), await pending(h.outbox, other)], [[], []]);
  },

  "resumeParked() by many sweeps at once, in any order, resumes each shipment once": async (h) => {
    const orgId = newId();
    const all: Shipment[] = [];
    for (let i = 0; i < 12; i++) all.push(await parked(h, orgId));
    const sweeps = Array.from({ length: 8 }, (_, i) => {
      const order = i % 2 === 0 ? all : all.toReversed();
      const plans = order.map((shipment) => ({ shipment, ...wake(shipment) }));
      const rows = plans.flatMap(({ shipment, itemId }) => wakeRows(orgId, shipment, itemId).slice(1));
      return h.storage.resumeParked(orgId, plans.map(({ move }) => move), rows);
    });
    const resumed = (await Promise.all(sweeps)).flat();
    assert.deepEqual(resumed.sort(), all.map(({ id }) => id).sort());
    assert.equal((await pending(h.outbox, orgId)).length, 12);
  },

  "orgsWithParked() pages through orgs with something due; countParked() counts what is parked, over all orgs": async (
    h,
  ) => {
    const { storage } = h;
    const before = await storage.countParked();
    const orgs = [newId(), newId(), newId(), newId(), newId()];
    const [a = "", b = "", c = "", d = "", e = ""] = orgs;
    await parked(h, a);
    await parked(h, a);
    await parked(h, b);
    await parked(h, c, { resumeAt: new Date("2100-01-01T00:00:00Z") });
    await created(h, d);
    const gone = await parked(h, e);
    assert.equal(await storage.countParked(), before + 5);
    await storage.deleteShipment(e, markOf(gone), []);
    assert.equal(await storage.countParked(), before + 4);
    const seen = await everyOrg((after) => storage.orgsWithParked(after, 2));
    assert.deepEqual(seen, [...seen].sort());
    assert.deepEqual(seen.filter((id) => orgs.includes(id)), [a, b]);
  },

  "deleteShipment() hides the row, with its outbox rows; under another version or org it changes nothing": async (
    h,
  ) => {
    const { storage } = h;
    const [orgId, other] = [newId(), newId()];
    const shipment = await parked(h, orgId);
    const rows = (of: string) => [rowOf(of, "shipments.shipment.deleted", shipment.id)];
    assert.equal(await storage.deleteShipment(orgId, { ...markOf(shipment), expectedVersion: 1 }, rows(orgId)), false);
    assert.equal(await storage.deleteShipment(other, markOf(shipment), rows(other)), false);
    assert.deepEqual(await storage.readShipment(orgId, shipment.id), shipment);
    assert.equal(await storage.wasDeleted(orgId, shipment.id), false);
    assert.equal(await storage.deleteShipment(orgId, markOf(shipment), rows(orgId)), true);
    assert.equal(await storage.readShipment(orgId, shipment.id), null);
    assert.deepEqual([await storage.wasDeleted(orgId, shipment.id), await storage.wasDeleted(other, shipment.id)], [
      true,
      false,
    ]);
    assert.deepEqual(await storage.readDueParked(orgId, 10), []);
    for (const expectedVersion of [2, 3]) {
      const mark = { ...markOf(shipment), expectedVersion, host: HOST };
      assert.equal(await storage.markNotified(orgId, mark, []), null);
      assert.equal(await storage.deleteShipment(orgId, mark, rows(orgId)), false);
    }
    assert.equal(await storage.createShipment(orgId, insertOf({ id: shipment.id }), []), null, "its id stays taken");
    assert.deepEqual([await pending(h.outbox, orgId), await pending(h.outbox, other)], [
      ["shipments.shipment.deleted"],
      [],
    ]);
  },

  "purgeDeletedShipments() removes what was deleted long ago, in batches, of its org alone; orgsWithDeleted() names them":
    async (h) => {
      const { storage } = h;
      const [orgId, other, clean] = [newId(), newId(), newId()];
      const live = await created(h, orgId);
      for (const  of of[orgId, orgId, orgId, other]) {
        await storage.deleteShipment(of, markOf(await created(h, of)), []);
      }
      await created(h, clean);
      await h.advance(60_000);
      const fresh = await created(h, orgId);
      await storage.deleteShipment(orgId, markOf(fresh), []);
      const named = await everyOrg((afterOrgId) => storage.orgsWithDeleted(30_000, { afterOrgId, limit: 2 }));
      assert.deepEqual(named.filter((id) => [orgId, other, clean].includes(id)).sort(), [orgId, other].sort());
      assert.equal(await storage.purgeDeletedShipments(clean, 30_000, 10), 0);
      const purged: number[] = [];
      for (let i = 0; i < 3; i++) purged.push(await storage.purgeDeletedShipments(orgId, 30_000, 2));
      assert.deepEqual(purged, [2, 1, 0]);
      assert.equal(await storage.wasDeleted(orgId, fresh.id), true, "deleted too lately");
      assert.notEqual(await storage.readShipment(orgId, live.id), null);
      assert.equal(await storage.purgeDeletedShipments(other, 30_000, 10), 1);
    },
};
