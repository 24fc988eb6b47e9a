/**
 * The contract of `EndpointStorage`, beside the shipments that wait for its endpoints.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../../mod.ts";
import type { Cases } from "../../../testing.ts";
import { probeDelay } from "../endpoints/rules.ts";
import type { Shipment } from "../shipments/types.ts";
import {
  created,
  HOST,
  isDue,
  LONG_AGO,
  markOf,
  parked,
  POLICY,
  type ShipmentHarness,
  takeDown,
  wake,
} from "./contract_world.ts";

/** The cases, added to those of the suite. */
export const ENDPOINT_CASES: Cases<ShipmentHarness> = {
  "failed() counts to the bound, then leaves the endpoint alone by probeDelay, which only probes that fail extend":
    async (h) => {
      const { endpoints } = h;
      const orgId = newId();
      const fail = (probe: boolean) => endpoints.failed(orgId, HOST, { ...POLICY, probe });
      assert.equal(await endpoints.readEndpoint(orgId, HOST), null);
      for (let failures = 1; failures < POLICY.downAfter; failures++) {
        assert.deepEqual(await fail(false), { host: HOST, failures, probeAt: null });
      }
      const down = await fail(false);
      assert.ok(down.probeAt !== null);
      assert.deepEqual(await fail(false), down, "others that were on their way tell nothing new");
      assert.deepEqual(await endpoints.readEndpoint(orgId, HOST), down);
      let last = down.probeAt;
      for (let failures = POLICY.downAfter + 1; failures < POLICY.downAfter + 12; failures++) {
        const waitMs = probeDelay(failures, POLICY);
        await h.advance(waitMs);
        assert.equal(await endpoints.takeProbe(orgId, HOST, 0), true);
        const again = await fail(true);
        assert.equal(again.failures, failures);
        const tookMs = Number(again.probeAt?.getTime()) - last.getTime();
        // From the failure on, database time; what the case itself takes comes on top on a real clock.
        assert.ok(Math.abs(tookMs - 2 * waitMs) <= waitMs + 5_000, `${failures}: ${tookMs} of ${waitMs}`);
        last = again.probeAt ?? last;
      }
    },

  "failed() by a bound of one takes an endpoint down at once": async ({ endpoints }) => {
    const { probeAt, failures } = await endpoints.failed(newId(), HOST, { ...POLICY, downAfter: 1, probe: false });
    assert.deepEqual([probeAt !== null, failures], [true, 1]);
  },

  "failed() many times at once counts each": async ({ endpoints }) => {
    const orgId = newId();
    const policy = { ...POLICY, downAfter: 100, probe: false };
    await Promise.all(Array.from({ length: 20 }, () => endpoints.failed(orgId, HOST, policy)));
    assert.equal((await endpoints.readEndpoint(orgId, HOST))?.failures, 20);
  },

  "takeProbe() is won by one of many, when its time has come, and again once its hold is over": async (h) => {
    const { endpoints } = h;
    const orgId = newId();
    const take = () => Promise.all(Array.from({ length: 20 }, () => endpoints.takeProbe(orgId, HOST, 30_000)));
    const won = async () => (await take()).filter((one) => one).length;
    assert.equal(await won(), 0, "there is no row");
    await endpoints.failed(orgId, HOST, { ...POLICY, probe: false });
    assert.equal(await won(), 0, "it is not down");
    await takeDown(h, orgId);
    assert.equal(await won(), 0, "its time has not come");
    await h.advance(POLICY.probeMs);
    assert.equal(await won(), 1);
    await h.advance(15_000);
    assert.equal(await won(), 0, "another holds the probe");
    await h.advance(15_001);
    assert.equal(await won(), 1, "whoever held it died");
  },

  "an endpoint is an org's own, and a host its own": async (h) => {
    const { endpoints } = h;
    const [mine, other] = [newId(), newId()];
    await takeDown(h, mine);
    const down = await endpoints.readEndpoint(mine, HOST);
    await h.advance(POLICY.probeMs);
    assert.equal(await endpoints.readEndpoint(other, HOST), null);
    assert.equal(await endpoints.readEndpoint(mine, `${HOST}:8443`), null);
    assert.equal(await endpoints.takeProbe(other, HOST, 1_000), false);
    await endpoints.answered(other, HOST);
    assert.deepEqual(await endpoints.readEndpoint(mine, HOST), down);
    assert.equal((await endpoints.failed(other, HOST, { ...POLICY, probe: false })).failures, 1);
  },

  "answered() makes those that wait for the endpoint due, one after the other, and nobody else": async (h) => {
    const { storage, endpoints } = h;
    const [orgId, other] = [newId(), newId()];
    const later = { resumeAt: new Date("2100-01-01T00:00:00Z") };
    const waiting = new Set<string>();
    for (let i = 0; i < 5; i++) waiting.add((await parked(h, orgId, { ...later, host: HOST })).id);
    await parked(h, orgId, later);
    await parked(h, orgId, { ...later, host: "other.example" });
    await parked(h, other, { ...later, host: HOST });
    await endpoints.failed(orgId, HOST, { ...POLICY, probe: false });
    await endpoints.answered(orgId, HOST);
    assert.equal(await endpoints.readEndpoint(orgId, HOST), null);
    assert.deepEqual(await storage.readDueParked(orgId, 10), [], "it was not down: they wait for something else");
    await takeDown(h, orgId);
    await endpoints.answered(orgId, HOST);
    await h.advance(60_000);
    const due = await storage.readDueParked(orgId, 10);
    assert.deepEqual(new Set(due.map(({ shipment }) => shipment.id)), waiting);
    const times = due.map(({ shipment }) => Number(shipment.parking?.resumeAt));
    assert.deepEqual(times.slice(1).map((at, i) => at - (times[i] ?? 0)), [100, 100, 100, 100]);
    assert.deepEqual(await storage.readDueParked(other, 10), []);
  },

  "answered() does not put off one that is due already": async (h) => {
    const orgId = newId();
    const late = await parked(h, orgId, { host: HOST });
    await takeDown(h, orgId);
    await h.endpoints.answered(orgId, HOST);
    assert.deepEqual((await h.storage.readShipment(orgId, late.id))?.parking?.resumeAt, LONG_AGO);
  },

  "markNotified() shows that its endpoint answered; refused, it shows nothing": async (h) => {
    const { storage, endpoints } = h;
    const orgId = newId();
    const waits = await parked(h, orgId, { resumeAt: new Date("2100-01-01T00:00:00Z"), host: HOST });
    const told = await created(h, orgId);
    await takeDown(h, orgId);
    const mark = { ...markOf(told), host: HOST };
    assert.equal(await storage.markNotified(orgId, { ...mark, expectedVersion: 7 }, []), null);
    assert.notEqual(await endpoints.readEndpoint(orgId, HOST), null);
    assert.notEqual(await storage.markNotified(orgId, mark, []), null);
    assert.equal(await endpoints.readEndpoint(orgId, HOST), null);
    await h.advance(1_000);
    assert.equal(isDue(await storage.readDueParked(orgId, 10), waits), true);
  },

  "markNotified() of a shipment that waits for that very endpoint leaves it parked no longer": async (h) => {
    const orgId = newId();
    const one = await parked(h, orgId, { host: HOST });
    const other = await parked(h, orgId, { resumeAt: new Date("2100-01-01T00:00:00Z"), host: HOST });
    await takeDown(h, orgId);
    const marked = await h.storage.markNotified(orgId, { ...markOf(one), host: HOST }, []);
    assert.deepEqual([marked?.status, marked?.version, marked?.parking], ["notified", 3, null]);
    assert.deepEqual(await h.storage.readShipment(orgId, one.id), marked);
    await h.advance(1_000);
    assert.deepEqual((await h.storage.readDueParked(orgId, 10)).map(({ shipment }) => shipment.id), [other.id]);
  },

  "answered() by many at once while shipments park and resume settles": async (h) => {
    const { storage, endpoints } = h;
    const orgId = newId();
    const all: Shipment[] = [];
    for (let i = 0; i < 10; i++) all.push(await parked(h, orgId, { host: HOST }));
    await takeDown(h, orgId);
    const told = await Promise.all(Array.from({ length: 5 }, () => created(h, orgId)));
    await Promise.all([
      ...Array.from({ length: 5 }, () => endpoints.answered(orgId, HOST)),
      ...told.map((shipment) => storage.markNotified(orgId, { ...markOf(shipment), host: HOST }, [])),
      storage.resumeParked(orgId, all.toReversed().map((shipment) => wake(shipment).move), []),
      storage.resumeParked(orgId, all.map((shipment) => wake(shipment).move), []),
    ]);
    assert.equal(await endpoints.readEndpoint(orgId, HOST), null);
    for (const { id } of told) assert.equal((await storage.readShipment(orgId, id))?.status, "notified");
  },
};
