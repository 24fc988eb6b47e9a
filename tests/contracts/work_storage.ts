/**
 * The contract of `WorkStorage`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { DEFAULT_RETRY, RETRY_FLOOR_MS, retryDelay } from "../../src/work/rules.ts";
import type { ClaimRef, ItemInsert, OwnedItem, Settlement } from "../../src/work/storage.ts";
import type { WorkItem } from "../../src/work/types.ts";
import { type Cases, contractSuite } from "./contract.ts";
import { FAIR_CASES } from "./work_storage_fair.ts";
import { HOST_CASES } from "./work_storage_hosts.ts";
import { VALUE_CASES, type WorkHarness } from "./work_storage_values.ts";

export type { WorkHarness };

/**
 * Runs the contract over the storage that `make` provides.
 *
 * @param options `fair`: it claims in the order `fair` too; its store has the chain `fair`. `except`: cases it leaves out,
 * each with its reason.
 */
export function testWorkStorage(
  name: string,
  make: () => Promise<WorkHarness>,
  options: { readonly fair?: boolean; readonly except?: Readonly<Record<string, string>> } = {},
): void {
  const fair = options.fair === true ? FAIR_CASES : {};
  const cases: Record<string, (harness: WorkHarness) => Promise<void>> = {
    ...CASES,
    ...VALUE_CASES,
    ...HOST_CASES,
    ...fair,
  };
  for (const [behaviour, reason] of Object.entries(options.except ?? {})) {
    assert.ok(behaviour in cases, `there is no case "${behaviour}" to leave out`);
    console.log(`WorkStorage on ${name} leaves out "${behaviour}": ${reason}`);
    delete cases[behaviour];
  }
  contractSuite(`WorkStorage on ${name}`, make, cases);
}

const KIND = "CONTRACT_KIND";
const LEASE_MS = 30_000;

function newItem(fields: Partial<WorkItem> = {}): WorkItem {
  const now = new Date(Date.UTC(2026, 0, 1));
  return {
    id: newId(),
    createdAt: now,
    updatedAt: now,
    createdBy: newId(),
    updatedBy: newId(),
    kind: KIND,
    targetId: null,
    idempotencyKey: newId(),
    payload: { note: 'ünï "x" \\ 🚚', n: 1.5, list: [null, true, {}] },
    lane: "default",
    status: "queued",
    priority: 10,
    weight: "light",
    hostPreference: null,
    availableAt: now,
    claimedBy: null,
    claimToken: null,
    leaseExpiresAt: null,
    attempts: 0,
    maxAttempts: 3,
    claims: 0,
    expiries: 0,
    lastError: null,
    note: null,
    auditId: null,
    requestId: newId(),
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ...fields,
  };
}

function insert(fields: Partial<WorkItem> = {}, start: ItemInsert["start"] = null): ItemInsert {
  return { item: newItem(fields), start };
}

/** A lane of the case's own: claims then see no other case's items. */
function lane(): string {
  return `lane-${newId()}`;
}

async function put(
  h: WorkHarness,
  orgId: string,
  fields: Partial<WorkItem>,
  start: ItemInsert["start"] = null,
): Promise<WorkItem> {
  const one = insert(fields, start);
  assert.deepEqual(await h.storage.createItems(orgId, [one]), ["INSERTED"]);
  return one.item;
}

function claim(
  h: WorkHarness,
  inLane: string,
  options: { limit?: number; kinds?: string[]; leaseMs?: number; worker?: string } = {},
): Promise<OwnedItem[]> {
  return h.storage.claim({
    lane: inLane,
    kinds: options.kinds ?? [KIND],
    worker: options.worker ?? "w1",
    leaseMs: options.leaseMs ?? LEASE_MS,
    limit: options.limit ?? 10,
    token: newId(),
  });
}

async function claimOne(h: WorkHarness, inLane: string, leaseMs = LEASE_MS): Promise<OwnedItem> {
  const [owned] = await claim(h, inLane, { limit: 1, leaseMs });
  assert.ok(owned, "an item was there to claim");
  return owned;
}

function ref({ orgId, item }: OwnedItem): ClaimRef {
  assert.ok(item.claimToken);
  return { orgId, id: item.id, token: item.claimToken };
}

async function read(h: WorkHarness, orgId: string, id: string): Promise<WorkItem> {
  const item = await h.storage.readItem(orgId, id);
  assert.ok(item, "the item is there");
  return item;
}

const done = (owned: OwnedItem): Settlement => ({ ...ref(owned), to: "done" });
const back = (owned: OwnedItem, delayMs = 0): Settlement => ({
  ...ref(owned),
  to: "back",
  delayMs,
  note: "why",
  ran: false,
});

/** Hands back or finishes whatever other cases left claimed, so that tenant-less counts are of this case alone. */
async function noneStale(h: WorkHarness): Promise<void> {
  for (let orgs = await h.storage.orgsWithStale(1_000); orgs.length > 0; orgs = await h.storage.orgsWithStale(1_000)) {
    await h.storage.failStaleOf(orgs, "cleared", 1_000);
  }
}

const CASES: Cases<WorkHarness> = {
  "createItems() stores every field as it was given and gives it back": async (h) => {
    const orgId = newId();
    const item = await put(h, orgId, { lane: lane(), targetId: newId(), hostPreference: "host-1", priority: 4 });
    const stored = await read(h, orgId, item.id);
    assert.deepEqual({ ...stored, availableAt: item.availableAt }, item);
  },
  "createItems() reports an existing id and changes nothing": async (h) => {
    const orgId = newId();
    const first = await put(h, orgId, { lane: lane() });
    const again = insert({ id: first.id, lane: lane(), payload: { other: 1 } });
    assert.deepEqual(await h.storage.createItems(orgId, [again]), ["ID_EXISTS"]);
    assert.deepEqual((await read(h, orgId, first.id)).payload, first.payload);
    assert.equal(await h.storage.readItemByKey(orgId, again.item.idempotencyKey), null, "the other key stays free");
  },
  "createItems() reports an existing key under another id and leaves its holder as it stood": async (h) => {
    const orgId = newId();
    const first = await put(h, orgId, { lane: lane() });
    const again = insert({ idempotencyKey: first.idempotencyKey });
    assert.deepEqual(await h.storage.createItems(orgId, [again]), ["KEY_EXISTS"]);
    assert.equal(await h.storage.readItem(orgId, again.item.id), null);
    const holder = await h.storage.readItemByKey(orgId, first.idempotencyKey);
    assert.equal(holder?.id, first.id);
    assert.deepEqual(holder?.item?.payload, first.payload);
  },
  "createItems() inserts the same key and the same id under another org": async (h) => {
    const first = await put(h, newId(), { lane: lane() });
    const other = insert({ id: first.id, idempotencyKey: first.idempotencyKey });
    assert.deepEqual(await h.storage.createItems(newId(), [other]), ["INSERTED"]);
  },
  "createItems() gives each insert of a mixed batch its own outcome": async (h) => {
    const orgId = newId();
    const first = await put(h, orgId, { lane: lane() });
    const key = newId();
    const fresh = insert({ idempotencyKey: key });
    const outcomes = await h.storage.createItems(orgId, [
      insert({ id: first.id }),
      fresh,
      insert({ idempotencyKey: first.idempotencyKey }),
      insert({ idempotencyKey: key }),
      { ...fresh },
    ]);
    assert.deepEqual(outcomes, ["ID_EXISTS", "INSERTED", "KEY_EXISTS", "KEY_EXISTS", "ID_EXISTS"]);
  },
  "of two inserts of one id in one call the second is made when the first one's key was taken": async (h) => {
    const orgId = newId();
    const first = await put(h, orgId, { lane: lane() });
    const id = newId();
    const [third, key] = [insert({ id }), newId()];
    const outcomes = await h.storage.createItems(orgId, [
      insert({ id, idempotencyKey: first.idempotencyKey }),
      insert({ id, idempotencyKey: key }),
      third,
      insert({ idempotencyKey: key }),
    ]);
    assert.deepEqual(outcomes, ["KEY_EXISTS", "INSERTED", "ID_EXISTS", "KEY_EXISTS"]);
    assert.equal((await read(h, orgId, id)).idempotencyKey, key);
    assert.equal(await h.storage.readItemByKey(orgId, third.item.idempotencyKey), null, "the other key stays free");
  },
  "fifty creates of one key at once insert one row, and nobody sees a driver error": async (h) => {
    const orgId = newId();
    const key = newId();
    const all = await Promise.all(
      Array.from({ length: 50 }, () => h.storage.createItems(orgId, [insert({ idempotencyKey: key, lane: lane() })])),
    );
    const flat = all.flat();
    assert.equal(flat.filter((outcome) => outcome === "INSERTED").length, 1);
    assert.equal(flat.filter((outcome) => outcome === "KEY_EXISTS").length, 49);
  },
  "twenty creates of one id under different keys at once insert one row and take one key": async (h) => {
    const orgId = newId();
    const id = newId();
    const inserts = Array.from({ length: 20 }, () => insert({ id, lane: lane() }));
    const outcomes = await Promise.all(inserts.map((one) => h.storage.createItems(orgId, [one])));
    assert.equal(outcomes.flat().filter((outcome) => outcome === "INSERTED").length, 1);
    const holders = await Promise.all(inserts.map((one) => h.storage.readItemByKey(orgId, one.item.idempotencyKey)));
    assert.equal(holders.filter((holder) => holder !== null).length, 1);
  },
  "createItemIn() lands with its caller's transaction or not at all, or is refused where none can be joined": async (
    h,
  ) => {
    const orgId = newId();
    const [kept, lost] = [insert(), insert()];
    const { storage } = h;
    if (h.transaction === undefined) {
      const tx = { query: () => assert.fail("nothing is asked of it") };
      await assert.rejects(async () => await storage.createItemIn(tx, orgId, kept), { code: "VALIDATION" });
    } else {
      const outcomes: string[] = [];
      await h.transaction(async (tx) => {
        outcomes.push(await storage.createItemIn(tx, orgId, kept));
        outcomes.push(await storage.createItemIn(tx, orgId, insert({ idempotencyKey: kept.item.idempotencyKey })));
        outcomes.push(await storage.createItemIn(tx, orgId, insert({ id: kept.item.id })));
      });
      assert.deepEqual(outcomes, ["INSERTED", "KEY_EXISTS", "ID_EXISTS"]);
      assert.equal((await read(h, orgId, kept.item.id)).idempotencyKey, kept.item.idempotencyKey);
      await assert.rejects(
        h.transaction(async (tx) => {
          assert.equal(await storage.createItemIn(tx, orgId, lost), "INSERTED");
          throw new Error("rolled back");
        }),
        /rolled back/,
      );
    }
    assert.equal(await storage.readItem(orgId, lost.item.id), null);
    assert.equal(await storage.readItemByKey(orgId, lost.item.idempotencyKey), null);
  },
  "readItem() and readItemByKey() find nothing of another org": async (h) => {
    const item = await put(h, newId(), { lane: lane() });
    assert.equal(await h.storage.readItem(newId(), item.id), null);
    assert.equal(await h.storage.readItemByKey(newId(), item.idempotencyKey), null);
  },
  "claim() stamps token, worker, lease, attempt and claim, and signs as the system": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const { id, createdBy, requestId, traceparent } = await put(h, orgId, { lane: inLane });
    const [owned, ...more] = await claim(h, inLane, { worker: "w7" });
    assert.ok(owned);
    assert.equal(more.length, 0);
    assert.equal(owned.orgId, orgId);
    const { item } = owned;
    assert.deepEqual(
      [item.id, item.status, item.claimedBy, item.attempts, item.claims, item.updatedBy, item.createdBy],
      [id, "claimed", "w7", 1, 1, EMPTY_UUID, createdBy],
    );
    assert.deepEqual([item.requestId, item.traceparent], [requestId, traceparent]);
    assert.ok(item.claimToken !== null && item.leaseExpiresAt !== null);
    assert.deepEqual(await read(h, orgId, id), item);
  },
  "claim() takes items in order of priority, then of when they were available, then of id": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const late = await put(h, orgId, { lane: inLane, priority: 10 });
    await h.advance(10);
    const low = await put(h, orgId, { lane: inLane, priority: 50 });
    const urgent = await put(h, orgId, { lane: inLane, priority: 1 });
    const [a, b] = [newId(), newId()];
    await h.storage.createItems(orgId, [insert({ id: b, lane: inLane }), insert({ id: a, lane: inLane })]);
    // In two claims, by either form: an order of the answer alone would bring the wrong ones first.
    const first = await claim(h, inLane, { limit: 2 });
    const rest = await claim(h, inLane, { kinds: [KIND, "ABSENT"], limit: 1 });
    const claimed = [...first, ...rest, ...await claim(h, inLane)];
    assert.deepEqual(claimed.map(({ item }) => item.id), [urgent.id, late.id, a, b, low.id]);
  },
  "claim() keeps to its lane, its kinds and its limit": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane, kind: "OTHER_KIND" });
    for (let i = 0; i < 3; i++) await put(h, orgId, { lane: inLane });
    assert.equal((await claim(h, lane())).length, 0);
    assert.equal((await claim(h, inLane, { limit: 2 })).length, 2);
    assert.equal((await claim(h, inLane)).length, 1);
    assert.equal((await claim(h, inLane)).length, 0);
  },
  "claim() merges several kinds in claim order and costs absent kinds nothing": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const second = await put(h, orgId, { lane: inLane, kind: "KIND_A", priority: 20 });
    const first = await put(h, orgId, { lane: inLane, kind: "KIND_B", priority: 5 });
    const third = await put(h, orgId, { lane: inLane, kind: "KIND_A", priority: 30 });
    const kinds = ["KIND_A", "KIND_ABSENT", "KIND_B"];
    const some = await claim(h, inLane, { kinds, limit: 2 });
    assert.deepEqual(some.map(({ item }) => item.id), [first.id, second.id]);
    assert.deepEqual((await claim(h, inLane, { kinds })).map(({ item }) => item.id), [third.id]);
  },
  "claim() serves every org and tells each row's own": async (h) => {
    const inLane = lane();
    const orgs = [newId(), newId()];
    for (const orgId of orgs) await put(h, orgId, { lane: inLane });
    assert.deepEqual(new Set((await claim(h, inLane)).map(({ orgId }) => orgId)), new Set(orgs));
  },
  "two claimers at once on one item: exactly one wins": async (h) => {
    for (let round = 0; round < 10; round++) {
      const inLane = lane();
      await put(h, newId(), { lane: inLane });
      const results = await Promise.all([claim(h, inLane), claim(h, inLane), claim(h, inLane)]);
      assert.equal(results.flat().length, 1);
    }
  },
  "ten claimers at once share a backlog without a row twice, whatever the form of the claim": async (h) => {
    for (const kinds of [[KIND], [KIND, "KIND_ABSENT"]]) {
      const inLane = lane();
      const orgId = newId();
      await h.storage.createItems(orgId, Array.from({ length: 100 }, () => insert({ lane: inLane })));
      const ids = new Set<string>();
      for (let left = 100; left > 0;) {
        const results = (await Promise.all(Array.from({ length: 10 }, () => claim(h, inLane, { kinds, limit: 5 }))))
          .flat();
        assert.ok(results.length > 0, "a backlog is never reported empty to everybody");
        for (const { item } of results) ids.add(item.id);
        left -= results.length;
      }
      assert.equal(ids.size, 100);
    }
  },
  "an item with a start in the future is not claimed until it is due and promoted": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const item = await put(h, orgId, { lane: inLane, priority: 1 }, { delayMs: 60_000 });
    await h.storage.promote(1_000);
    assert.equal((await claim(h, inLane)).length, 0);
    const { nextDueInMs } = await h.storage.promote(1_000);
    assert.ok(nextDueInMs !== null && nextDueInMs <= 60_000, `next due in ${nextDueInMs}`);
    await h.advance(60_001);
    assert.ok((await h.storage.promote(1_000)).promoted >= 1);
    assert.deepEqual((await claim(h, inLane)).map((owned) => owned.item.id), [item.id]);
  },
  "promote() is bounded": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await h.storage.createItems(
      orgId,
      Array.from({ length: 5 }, () => insert({ lane: inLane }, { delayMs: 1_000 })),
    );
    await h.advance(1_001);
    assert.equal((await h.storage.promote(2)).promoted, 2);
    while ((await h.storage.promote(2)).promoted > 0);
    assert.equal((await claim(h, inLane)).length, 5);
  },
  "promote() tells when the next item falls due that is not yet, whatever it left behind of what is": async (h) => {
    while ((await h.storage.promote(1_000)).promoted > 0);
    const { nextDueInMs: before } = await h.storage.promote(1);
    const starts = [1_000, 1_000, 50_000].map((delayMs) => insert({ lane: lane() }, { delayMs }));
    await h.storage.createItems(newId(), starts);
    await h.advance(1_500);
    const { promoted, nextDueInMs } = await h.storage.promote(1);
    assert.equal(promoted, 1);
    const latest = Math.min(before ?? Infinity, 50_000);
    assert.ok(nextDueInMs !== null && nextDueInMs > 0 && nextDueInMs <= latest, `next due in ${nextDueInMs}`);
  },
  "a start in the past means now": async (h) => {
    const inLane = lane();
    const item = await put(h, newId(), { lane: inLane }, { notBefore: new Date(0) });
    assert.deepEqual((await claim(h, inLane)).map((owned) => owned.item.id), [item.id]);
  },
  "settle(done) finishes the item, keeps its token, and a repeat is recognised": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    assert.deepEqual(await h.storage.settle([done(owned)]), ["WRITTEN"]);
    const item = await read(h, orgId, owned.item.id);
    assert.deepEqual(
      [item.status, item.claimToken, item.claimedBy, item.leaseExpiresAt, item.attempts, item.updatedBy],
      ["done", owned.item.claimToken, null, null, 1, EMPTY_UUID],
    );
    assert.deepEqual(await h.storage.settle([done(owned)]), ["ALREADY"], "its first answer was lost");
    const failed: Settlement = { ...ref(owned), to: "failed", error: "no", auditId: newId() };
    assert.deepEqual(await h.storage.settle([failed]), ["REFUSED"], "done is never also failed");
  },
  "settle(done) of an item that is not kept leaves its key alone, and no row": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const { id, idempotencyKey } = await put(h, orgId, { lane: inLane });
    const beside = await put(h, orgId, { lane: inLane });
    const [owned, other] = await claim(h, inLane, { limit: 2 });
    assert.ok(owned && other);
    const dropped: Settlement = { ...ref(owned), to: "done", keep: false };
    const stale: Settlement = { ...ref(owned), token: newId(), to: "done", keep: false };
    assert.deepEqual(await h.storage.settle([stale, dropped, done(other)]), ["REFUSED", "WRITTEN", "WRITTEN"]);
    assert.equal(await h.storage.readItem(orgId, id), null);
    assert.deepEqual(await h.storage.readItemByKey(orgId, idempotencyKey), { id, item: null });
    assert.deepEqual(await h.storage.createItems(orgId, [insert({ idempotencyKey })]), ["KEY_EXISTS"]);
    assert.deepEqual(await h.storage.settle([dropped]), ["REFUSED"], "nothing is left to tell");
    assert.equal((await read(h, orgId, beside.id)).status, "done");
  },
  "a settle after the lease passed is refused, on database time": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    await h.advance(LEASE_MS + 1);
    const failed: Settlement = { ...ref(owned), to: "failed", error: "no", auditId: newId() };
    const retry: Settlement = { ...ref(owned), to: "retry", delayMs: 0, error: "no" };
    for (const settlement of [done(owned), failed, retry, back(owned)]) {
      assert.deepEqual(await h.storage.settle([settlement]), ["REFUSED"], settlement.to);
    }
    assert.deepEqual(await h.storage.extendLeases([ref(owned)], LEASE_MS), ["REFUSED"]);
    assert.deepEqual(await h.storage.failOrphaned([ref(owned)], "no"), ["REFUSED"]);
    assert.deepEqual(await read(h, orgId, owned.item.id), owned.item);
  },
  "a settle under the token of an earlier claim of the same worker is refused": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const stale = await claimOne(h, inLane);
    await h.storage.settle([back(stale)]);
    const holder = await claimOne(h, inLane);
    assert.equal(holder.item.id, stale.item.id);
    assert.equal(holder.item.claimedBy, stale.item.claimedBy);
    assert.notEqual(holder.item.claimToken, stale.item.claimToken);
    assert.deepEqual(await h.storage.settle([done(stale)]), ["REFUSED"]);
    assert.deepEqual(await h.storage.extendLeases([ref(stale)], LEASE_MS), ["REFUSED"]);
    assert.deepEqual(await read(h, orgId, holder.item.id), holder.item);
  },
  "a settle that presents another org's item with its token leaves the row as it stood": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    const foreign = { ...owned, orgId: newId() };
    assert.deepEqual(await h.storage.settle([done(foreign)]), ["REFUSED"]);
    assert.deepEqual(await h.storage.extendLeases([ref(foreign)], LEASE_MS), ["REFUSED"]);
    assert.deepEqual(await h.storage.failOrphaned([ref(foreign)], "no"), ["REFUSED"]);
    assert.deepEqual(await read(h, orgId, owned.item.id), owned.item);
  },
  "settle(retry) spends the attempt, keeps the error, and waits its delay": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    const retry: Settlement = { ...ref(owned), to: "retry", delayMs: 5_000, error: "it broke" };
    assert.deepEqual(await h.storage.settle([retry]), ["WRITTEN"]);
    const item = await read(h, orgId, owned.item.id);
    assert.deepEqual([item.status, item.attempts, item.lastError, item.claimToken], ["queued", 1, "it broke", null]);
    assert.equal((await claim(h, inLane)).length, 0);
    await h.advance(5_001);
    await h.storage.promote(1_000);
    const [again] = await claim(h, inLane);
    assert.equal(again?.item.attempts, 2);
    assert.equal(again?.item.claims, 2);
  },
  "settle(failed) dead-letters with the audit id given, and a repeat is recognised": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    const auditId = newId();
    const failed: Settlement = { ...ref(owned), to: "failed", error: "for good", auditId };
    assert.deepEqual(await h.storage.settle([failed]), ["WRITTEN"]);
    const item = await read(h, orgId, owned.item.id);
    assert.deepEqual([item.status, item.lastError, item.auditId], ["failed", "for good", auditId]);
    assert.deepEqual(await h.storage.settle([{ ...failed, auditId: newId() }]), ["ALREADY"]);
    assert.equal((await read(h, orgId, owned.item.id)).auditId, auditId, "a repeat mints no second entry");
    const unaudited = (await h.storage.readUnaudited(10_000)).find((row) => row.id === item.id);
    assert.deepEqual(
      [unaudited?.orgId, unaudited?.auditId, unaudited?.kind, unaudited?.lastError],
      [orgId, auditId, KIND, "for good"],
    );
    await h.storage.clearAudit([{ orgId, id: item.id, auditId: newId() }]);
    assert.equal((await read(h, orgId, item.id)).auditId, auditId, "another entry's id clears nothing");
    await h.storage.clearAudit([{ orgId, id: item.id, auditId }]);
    assert.equal((await read(h, orgId, item.id)).auditId, null);
  },
  "settle(back) gives the attempt back but never the claim, and keeps the note": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    assert.deepEqual(await h.storage.settle([back(owned)]), ["WRITTEN"]);
    const item = await read(h, orgId, owned.item.id);
    assert.deepEqual([item.status, item.attempts, item.claims, item.note], ["queued", 0, 1, "why"]);
    assert.equal((await claimOne(h, inLane)).item.id, item.id, "claimable at once");
  },
  "settle() of a mixed batch gives each row its own outcome, in order": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await h.storage.createItems(orgId, Array.from({ length: 4 }, () => insert({ lane: inLane })));
    const claimed = await claim(h, inLane);
    const [a, b, c, d] = claimed;
    assert.ok(a && b && c && d);
    const stale = { ...ref(c), token: newId() };
    const outcomes = await h.storage.settle([
      done(a),
      { ...stale, to: "done" },
      { ...ref(b), to: "retry", delayMs: 1_000, error: "e" },
      back(d),
    ]);
    assert.deepEqual(outcomes, ["WRITTEN", "REFUSED", "WRITTEN", "WRITTEN"]);
    const statuses = await Promise.all([a, b, c, d].map(async ({ item }) => (await read(h, orgId, item.id)).status));
    assert.deepEqual(statuses, ["done", "queued", "claimed", "queued"]);
  },
  "of two completions of one item in one batch the one under its stale claim is refused, whichever comes first": async (
    h,
  ) => {
    const inLane = lane();
    const orgId = newId();
    for (const staleFirst of [true, false]) {
      await put(h, orgId, { lane: inLane });
      const stale = await claimOne(h, inLane);
      await h.storage.settle([back(stale)]);
      const holder = await claimOne(h, inLane);
      const both = [done(stale), done(holder)];
      const outcomes = await h.storage.settle(staleFirst ? both : both.reverse());
      assert.deepEqual(outcomes, staleFirst ? ["REFUSED", "WRITTEN"] : ["WRITTEN", "REFUSED"]);
    }
  },
  "extendLeases() moves the lease on from the database's now and spends nothing": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    await h.advance(LEASE_MS - 10_000);
    assert.deepEqual(await h.storage.extendLeases([ref(owned)], LEASE_MS), ["WRITTEN"]);
    await h.advance(LEASE_MS - 10_000);
    const item = await read(h, orgId, owned.item.id);
    assert.deepEqual([item.status, item.attempts, item.claims], ["claimed", 1, 1]);
    assert.deepEqual(await h.storage.settle([done(owned)]), ["WRITTEN"]);
  },
  "readClaims() tells status, token and whether the lease lives, and leaves absent rows out": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    const asked = [{ orgId, id: owned.item.id }, { orgId, id: newId() }];
    const expected = { orgId, id: owned.item.id, status: "claimed", token: owned.item.claimToken };
    assert.deepEqual(await h.storage.readClaims(asked), [{ ...expected, leaseLive: true }]);
    await h.advance(LEASE_MS);
    assert.deepEqual(await h.storage.readClaims(asked), [{ ...expected, leaseLive: false }]);
  },
  "readClaimed() finds what a claim whose answer was lost holds": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const item = await put(h, orgId, { lane: inLane });
    const token = newId();
    await h.storage.claim({ lane: inLane, kinds: [KIND], worker: "w", leaseMs: LEASE_MS, limit: 5, token });
    assert.deepEqual((await h.storage.readClaimed(token)).map((owned) => owned.item.id), [item.id]);
    assert.deepEqual(await h.storage.readClaimed(newId()), []);
  },
  "failOrphaned() fails the item it names without an audit id, and is refused under a stale token": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    assert.deepEqual(await h.storage.failOrphaned([{ ...ref(owned), token: newId() }], "gone"), ["REFUSED"]);
    assert.deepEqual(await h.storage.failOrphaned([ref(owned)], "gone"), ["WRITTEN"]);
    const item = await read(h, orgId, owned.item.id);
    assert.deepEqual([item.status, item.lastError, item.auditId], ["failed", "gone", null]);
  },
  "requeueStale() takes back expired claims of its org alone, attempts spent, at once the first time": async (h) => {
    const inLane = lane();
    const [orgId, otherOrg] = [newId(), newId()];
    const mine = await put(h, orgId, { lane: inLane });
    const other = await put(h, otherOrg, { lane: inLane });
    const live = await put(h, orgId, { lane: inLane });
    assert.equal((await claim(h, inLane)).length, 3);
    const owned = await read(h, orgId, live.id);
    await h.advance(LEASE_MS - 10_000);
    await h.storage.extendLeases([ref({ orgId, item: owned })], LEASE_MS);
    await h.advance(10_000);
    const orgs = await h.storage.orgsWithStale(10_000);
    assert.ok(orgs.includes(orgId) && orgs.includes(otherOrg));
    assert.deepEqual(await h.storage.requeueStale(orgId, 100, DEFAULT_RETRY), { requeued: 1, deadLettered: 0 });
    const back1 = await read(h, orgId, mine.id);
    assert.deepEqual(
      [back1.status, back1.attempts, back1.expiries, back1.claimToken, back1.claimedBy, back1.updatedBy],
      ["queued", 1, 1, null, null, EMPTY_UUID],
    );
    assert.equal((await read(h, otherOrg, other.id)).status, "claimed");
    assert.equal((await read(h, orgId, live.id)).status, "claimed");
    assert.deepEqual((await claim(h, inLane)).map(({ item }) => item.id), [mine.id], "claimable at once");
  },
  "requeueStale() waits retryDelay from the second expiry on, within the bounds of the function": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const policy = { baseMs: 10_000, capMs: 15_000 };
    const inserts = Array.from({ length: 20 }, () => insert({ lane: inLane, maxAttempts: 10 }));
    await h.storage.createItems(orgId, inserts);
    for (let round = 0; round < 2; round++) {
      assert.equal((await claim(h, inLane, { limit: 50 })).length, 20);
      await h.advance(LEASE_MS);
      assert.equal((await h.storage.requeueStale(orgId, 100, policy)).requeued, 20);
    }
    assert.equal((await claim(h, inLane, { limit: 50 })).length, 0, "none at once after a second expiry");
    const floor = retryDelay(2, policy, 0);
    const ceiling = retryDelay(2, policy, 1);
    assert.deepEqual([floor, ceiling], [RETRY_FLOOR_MS, 15_000]);
    const delays = await Promise.all(inserts.map(async ({ item }) => {
      const { availableAt, updatedAt } = await read(h, orgId, item.id);
      return availableAt.getTime() - updatedAt.getTime();
    }));
    assert.ok(delays.every((ms) => ms >= floor - 1 && ms <= ceiling + 1), String(delays));
    assert.ok(new Set(delays).size > 5, "the delays are spread");
    await h.advance(ceiling + 1);
    await h.storage.promote(1_000);
    assert.equal((await claim(h, inLane, { limit: 50 })).length, 20);
  },
  "requeueStale() dead-letters an exhausted item with an audit id of its own": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const item = await put(h, orgId, { lane: inLane, maxAttempts: 1 });
    await claimOne(h, inLane);
    await h.advance(LEASE_MS);
    assert.deepEqual(await h.storage.requeueStale(orgId, 100, DEFAULT_RETRY), { requeued: 0, deadLettered: 1 });
    const dead = await read(h, orgId, item.id);
    assert.equal(dead.status, "failed");
    assert.ok(dead.auditId !== null && dead.lastError !== null && dead.lastError.includes("expired"));
  },
  "requeueStale() is bounded by its limit and does each row once under two sweeps at once": async (h) => {
    const inLane = lane();
    const orgId = newId();
    await h.storage.createItems(orgId, Array.from({ length: 10 }, () => insert({ lane: inLane })));
    await claim(h, inLane);
    await h.advance(LEASE_MS);
    assert.equal((await h.storage.requeueStale(orgId, 4, DEFAULT_RETRY)).requeued, 4);
    const both = await Promise.all([0, 1, 2].map(() => h.storage.requeueStale(orgId, 100, DEFAULT_RETRY)));
    assert.equal(both.reduce((sum, counts) => sum + counts.requeued, 0), 6);
  },
  "a completion against the sweep at the same moment: the row ends one way, and each is told the truth": async (h) => {
    for (let round = 0; round < 10; round++) {
      const inLane = lane();
      const orgId = newId();
      await put(h, orgId, { lane: inLane });
      const owned = await claimOne(h, inLane, 1_000);
      await h.advance(round % 2 === 0 ? 500 : 1_000);
      const [outcomes, counts] = await Promise.all([
        h.storage.settle([done(owned)]),
        h.storage.requeueStale(orgId, 10, DEFAULT_RETRY),
      ]);
      const { status } = await read(h, orgId, owned.item.id);
      assert.equal(status === "done", outcomes[0] === "WRITTEN");
      assert.equal(status === "queued", counts.requeued === 1);
    }
  },
  "a run that ends resets its item's expiries, one that is cut short does not": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const { id } = await put(h, orgId, { lane: inLane, maxAttempts: 10 });
    await claimOne(h, inLane);
    await h.advance(LEASE_MS);
    await h.storage.requeueStale(orgId, 10, DEFAULT_RETRY);
    const second = await claimOne(h, inLane);
    assert.equal(second.item.expiries, 1);
    await h.storage.settle([back(second)]);
    assert.equal((await read(h, orgId, id)).expiries, 1);
    const third = await claimOne(h, inLane);
    await h.storage.settle([{ ...ref(third), to: "retry", delayMs: 0, error: "e" }]);
    assert.equal((await read(h, orgId, id)).expiries, 0);
  },
  "failStaleOf() fails expired claims of the orgs it names alone": async (h) => {
    const inLane = lane();
    const [gone, here] = [newId(), newId()];
    const ended = await put(h, gone, { lane: inLane });
    const other = await put(h, here, { lane: inLane });
    await claim(h, inLane);
    assert.equal(await h.storage.failStaleOf([gone], "org gone", 10), 0, "not while its lease lives");
    await h.advance(LEASE_MS);
    assert.equal(await h.storage.failStaleOf([gone], "org gone", 10), 1);
    const item = await read(h, gone, ended.id);
    assert.deepEqual([item.status, item.lastError, item.auditId], ["failed", "org gone", null]);
    assert.equal((await read(h, here, other.id)).status, "claimed");
    assert.equal(await h.storage.failStaleOf([], "org gone", 10), 0);
  },
  "purgeItems() removes old done and failed items in every org, sparing queued, claimed, newer and unaudited": async (
    h,
  ) => {
    await noneStale(h);
    const inLane = lane();
    const orgs = [newId(), newId()];
    const doomed: { orgId: string; id: string }[] = [];
    for (const orgId of orgs) {
      await put(h, orgId, { lane: inLane });
      const owned = await claimOne(h, inLane);
      await h.storage.settle([done(owned)]);
      doomed.push({ orgId, id: owned.item.id });
    }
    const [orgId] = orgs;
    assert.ok(orgId);
    await put(h, orgId, { lane: inLane });
    const orphan = await claimOne(h, inLane);
    await h.storage.failOrphaned([ref(orphan)], "gone");
    doomed.push({ orgId, id: orphan.item.id });
    await put(h, orgId, { lane: inLane });
    const unaudited = await claimOne(h, inLane);
    await h.storage.settle([{ ...ref(unaudited), to: "failed", error: "e", auditId: newId() }]);
    const otherLane = lane();
    const queued = await put(h, orgId, { lane: otherLane });
    await put(h, orgId, { lane: inLane });
    const claimed = await claimOne(h, inLane, 3_600_000);
    await h.advance(100_000);
    await put(h, orgId, { lane: inLane });
    const newer = await claimOne(h, inLane);
    await h.storage.settle([done(newer)]);
    while (await h.storage.purgeItems(60_000, 2) > 0);
    for (const row of doomed) assert.equal(await h.storage.readItem(row.orgId, row.id), null);
    for (const item of [unaudited.item, queued, claimed.item, newer.item]) {
      assert.ok(await h.storage.readItem(orgId, item.id), "spared");
    }
  },
  "a key outlives its item, names it, and is freed after its own retention": async (h) => {
    const inLane = lane();
    const orgId = newId();
    const { id, idempotencyKey } = await put(h, orgId, { lane: inLane });
    const kept = await put(h, orgId, { lane: lane() });
    const owned = await claimOne(h, inLane);
    await h.storage.settle([done(owned)]);
    await h.advance(1_000);
    while (await h.storage.purgeItems(500, 1_000) > 0);
    assert.equal(await h.storage.readItem(orgId, id), null);
    assert.deepEqual(await h.storage.readItemByKey(orgId, idempotencyKey), { id, item: null });
    assert.deepEqual(await h.storage.createItems(orgId, [insert({ idempotencyKey })]), ["KEY_EXISTS"]);
    await h.advance(10_000);
    while (await h.storage.purgeKeys(10_000, 1_000) > 0);
    assert.equal(await h.storage.readItemByKey(orgId, idempotencyKey), null);
    assert.equal(
      (await h.storage.readItemByKey(orgId, kept.idempotencyKey))?.id,
      kept.id,
      "a living item keeps its key",
    );
    assert.deepEqual(await h.storage.createItems(orgId, [insert({ idempotencyKey })]), ["INSERTED"]);
  },
  "readGauges() counts due and dead items and ages the oldest due one across lanes": async (h) => {
    const before = await h.storage.readGauges();
    const orgId = newId();
    await put(h, orgId, { lane: lane(), priority: 1 });
    await put(h, orgId, { lane: lane() }, { delayMs: 1_000_000 });
    const inLane = lane();
    await put(h, orgId, { lane: inLane });
    const owned = await claimOne(h, inLane);
    await h.storage.failOrphaned([ref(owned)], "gone");
    await h.advance(7_000);
    const after = await h.storage.readGauges();
    assert.equal(after.queued - before.queued, 1);
    assert.equal(after.failed - before.failed, 1);
    assert.ok(after.oldestAgeSeconds >= 7, `oldest ${after.oldestAgeSeconds}`);
  },
  "takeSweepSteps() lets one of many take each step, once an interval": async (h) => {
    const steps = [`step-a-${newId()}`, `step-b-${newId()}`];
    const take = (asked = steps) => h.storage.takeSweepSteps(asked, 60_000);
    const first = (await Promise.all(Array.from({ length: 10 }, () => take()))).flat();
    assert.deepEqual(first.sort(), steps, "each step once, whoever takes it");
    await h.advance(30_000);
    assert.deepEqual(await take(), []);
    const [fresh] = await take([...steps, `step-c-${newId()}`]);
    assert.match(fresh ?? "", /^step-c-/, "a step that is free is taken beside those that are not");
    await h.advance(30_001);
    const second = (await Promise.all(Array.from({ length: 10 }, () => take([...steps].reverse())))).flat();
    assert.deepEqual(second.sort(), steps);
    assert.deepEqual(await take([]), []);
  },
  "attempts set high by an operator overflow nothing": async (h) => {
    for (const attempts of [31, 32, 63, 64, 98]) {
      const inLane = lane();
      const orgId = newId();
      const { id } = await put(h, orgId, { lane: inLane, maxAttempts: 100 });
      await h.tamper(orgId, id, { attempts: String(attempts), expiries: "5" });
      await claimOne(h, inLane);
      await h.advance(LEASE_MS);
      const counts = await h.storage.requeueStale(orgId, 10, DEFAULT_RETRY);
      assert.deepEqual(counts, { requeued: 1, deadLettered: 0 });
      const item = await read(h, orgId, id);
      const delayMs = item.availableAt.getTime() - item.updatedAt.getTime();
      assert.ok(delayMs >= RETRY_FLOOR_MS - 1 && delayMs <= DEFAULT_RETRY.capMs + 1, `${attempts}: ${delayMs}`);
    }
  },
};
