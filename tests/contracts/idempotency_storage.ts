/**
 * The contract of `IdempotencyStorage`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import type { IdempotencyStorage, MarkerBegin } from "../../src/idempotency/types.ts";
import { type Cases, contractSuite, type Harness } from "./contract.ts";

/** What the markers' suite runs over. */
export interface IdempotencyHarness extends Harness {
  /** The storage under test. */
  readonly storage: IdempotencyStorage;
}

/** Runs the contract over the storage that `make` provides. */
export function testIdempotencyStorage(name: string, make: () => Promise<IdempotencyHarness>): void {
  contractSuite(`IdempotencyStorage on ${name}`, make, CASES);
}

function begin(fields: Partial<MarkerBegin> = {}): MarkerBegin {
  return { key: newId(), digest: "d1", token: newId(), recordId: newId(), leaseMs: 60_000, ...fields };
}

const CASES: Cases<IdempotencyHarness> = {
  "begin() of an absent key makes it pending under its attempt": async ({ storage }) => {
    const orgId = newId();
    const first = begin();
    const marker = await storage.begin(orgId, first);
    assert.deepEqual(
      [marker?.state, marker?.token, marker?.digest, marker?.recordId, marker?.outcome],
      ["pending", first.token, "d1", first.recordId, null],
    );
    assert.ok(marker !== null && marker.leaseLeftMs > 0 && marker.leaseLeftMs <= 60_000);
    assert.equal((await storage.readMarker(orgId, first.key))?.token, first.token);
  },
  "begin() is refused while another attempt is pending, and repeating one's own is success": async ({ storage }) => {
    const orgId = newId();
    const first = begin();
    await storage.begin(orgId, first);
    assert.equal(await storage.begin(orgId, begin({ key: first.key })), null);
    assert.equal((await storage.begin(orgId, first))?.token, first.token);
  },
  "twenty begins of one key at once: one wins": async ({ storage }) => {
    const orgId = newId();
    const key = newId();
    const begun = await Promise.all(Array.from({ length: 20 }, () => storage.begin(orgId, begin({ key }))));
    assert.equal(begun.filter((marker) => marker !== null).length, 1);
  },
  "begin() takes over a released marker, and a pending one whose lease is out, and keeps the record's id": async (
    h,
  ) => {
    const { storage } = h;
    const orgId = newId();
    const first = begin();
    await storage.begin(orgId, first);
    assert.equal(await storage.release(orgId, first.key, first.token), true);
    const second = begin({ key: first.key });
    assert.deepEqual((await storage.begin(orgId, second))?.recordId, first.recordId);
    await h.advance(60_001);
    const third = begin({ key: first.key });
    const taken = await storage.begin(orgId, third);
    assert.deepEqual([taken?.token, taken?.recordId], [third.token, first.recordId]);
  },
  "a stale attempt's finish and release are refused": async (h) => {
    const { storage } = h;
    const orgId = newId();
    const first = begin();
    await storage.begin(orgId, first);
    await h.advance(60_001);
    const second = begin({ key: first.key });
    await storage.begin(orgId, second);
    assert.equal(await storage.finish(orgId, first.key, first.token, 1), false);
    assert.equal(await storage.release(orgId, first.key, first.token), false);
    const marker = await storage.readMarker(orgId, first.key);
    assert.deepEqual([marker?.state, marker?.token, marker?.outcome], ["pending", second.token, null]);
  },
  "finish() stores the outcome; repeated it is success and the first outcome stands; nothing begins again": async (
    h,
  ) => {
    const { storage } = h;
    const orgId = newId();
    const first = begin();
    await storage.begin(orgId, first);
    const outcome = { id: first.recordId, note: 'ünï "x" 🚚', list: [null, true] };
    assert.equal(await storage.finish(orgId, first.key, first.token, outcome), true);
    assert.equal(await storage.finish(orgId, first.key, first.token, "other"), true);
    assert.equal(await storage.release(orgId, first.key, first.token), false);
    await h.advance(3_600_000);
    assert.equal(await storage.begin(orgId, begin({ key: first.key })), null);
    const marker = await storage.readMarker(orgId, first.key);
    assert.deepEqual([marker?.state, marker?.outcome], ["finished", outcome]);
  },
  "an outcome of JSON null is an outcome": async ({ storage }) => {
    const orgId = newId();
    const first = begin();
    await storage.begin(orgId, first);
    assert.equal(await storage.finish(orgId, first.key, first.token, null), true);
    const marker = await storage.readMarker(orgId, first.key);
    assert.deepEqual([marker?.state, marker?.outcome], ["finished", null]);
  },
  "begin() with another request's digest is refused, whatever the state": async (h) => {
    const { storage } = h;
    const orgId = newId();
    const first = begin();
    await storage.begin(orgId, first);
    await storage.release(orgId, first.key, first.token);
    assert.equal(await storage.begin(orgId, begin({ key: first.key, digest: "d2" })), null);
    await h.advance(60_001);
    assert.equal(await storage.begin(orgId, begin({ key: first.key, digest: "d2" })), null);
  },
  "keys of two orgs have nothing to do with each other": async ({ storage }) => {
    const [one, other] = [newId(), newId()];
    const first = begin();
    await storage.begin(one, first);
    assert.equal(await storage.readMarker(other, first.key), null);
    assert.equal(await storage.finish(other, first.key, first.token, 1), false);
    assert.equal(await storage.release(other, first.key, first.token), false);
    assert.equal((await storage.begin(other, begin({ key: first.key })))?.state, "pending");
    assert.equal((await storage.readMarker(one, first.key))?.state, "pending");
  },
  "purgeMarkers() removes what was untouched for long, in every org, and spares the newer and the held": async (h) => {
    const { storage } = h;
    const [one, other] = [newId(), newId()];
    const [old, oldOther, held] = [begin(), begin(), begin({ leaseMs: 3_600_000 })];
    await storage.begin(one, old);
    await storage.finish(one, old.key, old.token, 1);
    await storage.begin(other, oldOther);
    await storage.begin(one, held);
    await h.advance(1_000_000);
    const newer = begin();
    await storage.begin(one, newer);
    while (await storage.purgeMarkers(900_000, 1) > 0);
    assert.equal(await storage.readMarker(one, old.key), null);
    assert.equal(await storage.readMarker(other, oldOther.key), null);
    assert.equal((await storage.readMarker(one, held.key))?.state, "pending");
    assert.equal((await storage.readMarker(one, newer.key))?.state, "pending");
  },
};
