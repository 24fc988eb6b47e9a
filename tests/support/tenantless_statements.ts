/**
 * Every statement without a tenant, with attempts to reach A's rows through it: a stolen token under another org's id, a
 * guessed id, a token with another item. A test holds the list to the source.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import type { ClaimRef, Settlement } from "../../src/work/storage.ts";
import { type AllStorages, entryOf, insertOf, KIND, MARK, type World } from "./breach_world.ts";

/** One statement's attempts. A's rows must be the same afterwards, and the answer must not hold its mark. */
export interface TenantlessCase {
  /** `<room>.<statement>`, or the method where two share one statement. */
  readonly name: string;
  /** Tries, and asserts what the method must answer. */
  readonly act: (storages: AllStorages, world: World) => Promise<unknown>;
  /** Why its answer may hold what is A's: set where handing rows on, each beside its org, is what it is for. */
  readonly hands?: string;
}

/** Every way of naming a claim of A's that must hold nothing. */
function wrongRefs({ a, b, held, stale, dead, done, queued }: World): ClaimRef[] {
  return [
    // Stolen tokens under another org's id.
    { orgId: b, id: held.id, token: held.token },
    { orgId: b, id: stale.id, token: stale.token },
    { orgId: b, id: dead.id, token: dead.token },
    { orgId: b, id: done.id, token: done.token },
    { orgId: newId(), id: held.id, token: held.token },
    // A guessed id, a guessed token, none.
    { orgId: a, id: newId(), token: held.token },
    { orgId: a, id: held.id, token: newId() },
    { orgId: a, id: held.id, token: EMPTY_UUID },
    { orgId: a, id: queued.id, token: EMPTY_UUID },
    // Tokens with another item, and one whose lease has passed.
    { orgId: a, id: queued.id, token: held.token },
    { orgId: a, id: held.id, token: stale.token },
    { orgId: a, id: held.id, token: dead.token },
    { orgId: a, id: held.id, token: done.token },
    { orgId: a, id: done.id, token: held.token },
    { orgId: a, id: dead.id, token: held.token },
    { orgId: a, id: stale.id, token: stale.token },
  ];
}

function settlementsOf(ref: ClaimRef): Settlement[] {
  return [
    { ...ref, to: "done" },
    { ...ref, to: "failed", error: "x", auditId: newId() },
    { ...ref, to: "retry", delayMs: 0, error: "x" },
    { ...ref, to: "back", delayMs: 0, note: "x", ran: true },
    { ...ref, to: "back", delayMs: 0, note: null, ran: false },
  ];
}

/** A claim that is B's own, to stand in one batch with the stolen ones. */
async function ownClaim({ work }: AllStorages, orgId: string): Promise<ClaimRef> {
  const insert = insertOf({ lane: newId() });
  await work.createItems(orgId, [insert]);
  const token = newId();
  await work.claim({ lane: insert.item.lane, kinds: [KIND], worker: "b", leaseMs: 60_000, limit: 1, token });
  return { orgId, id: insert.item.id, token };
}

/** The batch is refused row by row: B's own is written in the midst of it. */
function refusedAround(own: number, outcomes: readonly string[]): void {
  assert.deepEqual([...new Set(outcomes.filter((_, i) => i !== own))], ["REFUSED"]);
  assert.equal(outcomes[own], "WRITTEN");
}

async function completesNothing(storages: AllStorages, world: World, keep: boolean): Promise<void> {
  const wrong = wrongRefs(world);
  const own = await ownClaim(storages, world.b);
  const batch = [...wrong, own].map((ref): Settlement => ({ ...ref, to: "done", keep }));
  refusedAround(wrong.length, await storages.work.settle(batch));
}

const HOUR_MS = 3_600_000;

/** The cases. */
export const TENANTLESS_CASES: readonly TenantlessCase[] = [
  {
    name: "audit.createEntries",
    act: ({ audit }, { a, b, entryId }) =>
      audit.createEntries([entryOf(a, { id: entryId, action: "FORGED" }), entryOf(b, { id: entryId })]),
  },
  { name: "idempotency.purgeMarkers", act: ({ idempotency }) => idempotency.purgeMarkers(HOUR_MS, 1_000) },
  {
    name: "outbox.readPending",
    hands: "the relay's: each row beside its org",
    async act({ outbox }, { a, b, outboxId }) {
      const rows = await outbox.readPending(1_000);
      assert.deepEqual(rows.filter(({ id }) => id === outboxId).map(({ orgId }) => orgId), [a]);
      assert.equal(rows.some(({ orgId }) => orgId === b), false);
      assert.equal((await outbox.readPending(1_000, [outboxId])).some(({ id }) => id === outboxId), false);
    },
  },
  {
    name: "outbox.markDone",
    act: ({ outbox }, { a, b, outboxId }) =>
      outbox.markDone([{ orgId: b, id: outboxId }, { orgId: newId(), id: outboxId }, { orgId: a, id: newId() }]),
  },
  { name: "outbox.purgeDone", act: ({ outbox }) => outbox.purgeDone(0, 1_000) },
  { name: "outbox.readLag", act: ({ outbox }) => outbox.readLag() },
  {
    name: "tenancy.createOrg",
    async act({ tenancy }, { a }) {
      assert.equal(await tenancy.createOrg({ id: a, name: "mine", createdAt: new Date(), endedAt: new Date() }), false);
    },
  },
  {
    name: "tenancy.endOrg",
    act: async ({ tenancy }) => assert.equal(await tenancy.endOrg(newId()), false),
  },
  {
    name: "tenancy.createUser",
    async act({ tenancy }, { ana }) {
      const before = await tenancy.readUser(ana);
      assert.equal(await tenancy.createUser({ id: ana, name: "mine", createdAt: new Date() }), false);
      assert.deepEqual(await tenancy.readUser(ana), before);
    },
  },
  {
    name: "tenancy.readUser",
    act: async ({ tenancy }) => assert.equal(await tenancy.readUser(newId()), null),
  },
  {
    name: "tenancy.readSubjects",
    async act({ tenancy }, { a, b, ana, bob }) {
      const pairs = [[b, ana], [newId(), ana], [a, bob], [a, newId()]] as const;
      const states = await tenancy.readSubjects(pairs.map(([orgId, userId]) => ({ orgId, userId })));
      assert.deepEqual(states.map(({ memberLive, role }) => [memberLive, role]), pairs.map(() => [false, null]));
    },
  },
  { name: "tenancy.purgeSessions", act: ({ tenancy }) => tenancy.purgeSessions(HOUR_MS, 1_000) },
  { name: "tenancy.purgeSocketTickets", act: ({ tenancy }) => tenancy.purgeSocketTickets(1_000) },
  { name: "tenancy.liveOrgIds", act: ({ tenancy }) => tenancy.liveOrgIds(null, 1_000) },
  {
    name: "work.claim",
    async act({ work }, { queued }) {
      const ask = { worker: "b", leaseMs: 60_000, limit: 100, token: newId() };
      for (const order of ["due", "fair"] as const) {
        const claim = (lane: string, ...kinds: string[]) => work.claim({ ...ask, order, lane, kinds });
        assert.deepEqual(await claim(newId(), KIND), []);
        assert.deepEqual(await claim(queued.lane, "OTHER"), []);
        assert.deepEqual(await claim(queued.lane, "OTHER", "ANOTHER"), []);
      }
    },
  },
  {
    name: "work.readClaimed",
    async act({ work }, { queued, dead }) {
      for (const token of [newId(), EMPTY_UUID, queued.id, dead.token]) {
        assert.deepEqual(await work.readClaimed(token), []);
      }
    },
  },
  {
    name: "work.settle",
    async act(storages, world) {
      const wrong = wrongRefs(world);
      for (const ref of wrong) {
        // Singly, so that a finished row's own repeat is told from a write.
        for (const one of settlementsOf(ref)) assert.deepEqual(await storages.work.settle([one]), ["REFUSED"], one.to);
      }
      const own = await ownClaim(storages, world.b);
      const batch = [...wrong, own].map((ref): Settlement => ({ ...ref, to: "retry", delayMs: 0, error: "x" }));
      refusedAround(wrong.length, await storages.work.settle(batch));
    },
  },
  {
    name: "work.complete",
    act: (storages, world) => completesNothing(storages, world, true),
  },
  {
    name: "work.completeAndDrop",
    act: (storages, world) => completesNothing(storages, world, false),
  },
  {
    name: "work.extendLeases",
    async act(storages, world) {
      const wrong = wrongRefs(world);
      const own = await ownClaim(storages, world.b);
      refusedAround(0, await storages.work.extendLeases([own, ...wrong], 60_000));
    },
  },
  {
    name: "work.failOrphaned",
    async act(storages, world) {
      const wrong = wrongRefs(world);
      const own = await ownClaim(storages, world.b);
      refusedAround(0, await storages.work.failOrphaned([own, ...wrong], "x"));
    },
  },
  {
    name: "work.readClaims",
    async act({ work }, { a, b, held, dead }) {
      const refs = [{ orgId: b, id: held.id }, { orgId: newId(), id: dead.id }, { orgId: a, id: newId() }];
      assert.deepEqual(await work.readClaims(refs), []);
    },
  },
  { name: "work.promote", act: ({ work }) => work.promote(1_000) },
  {
    name: "work.orgsWithStale",
    async act({ work }) {
      for (const id of await work.orgsWithStale(1_000)) assert.match(id, /^[0-9a-f-]{36}$/);
    },
  },
  {
    name: "work.failStaleOf",
    act: async ({ work }, { b, stale }) => assert.equal(await work.failStaleOf([b, newId(), stale.id], "x", 1_000), 0),
  },
  {
    name: "work.readUnaudited",
    hands: "bookkeeping's: each row beside its org",
    async act({ work }, { a, dead }) {
      const rows = await work.readUnaudited(1_000);
      assert.deepEqual(rows.filter(({ id }) => id === dead.id).map(({ orgId }) => orgId), [a]);
      assert.equal(JSON.stringify(rows).includes(`"mark":"${MARK}"`), false, "no payload is handed out");
    },
  },
  {
    name: "work.clearAudit",
    act: ({ work }, { a, b, dead, held }) =>
      work.clearAudit([
        { orgId: b, id: dead.id, auditId: dead.auditId },
        { orgId: a, id: dead.id, auditId: newId() },
        { orgId: a, id: held.id, auditId: dead.auditId },
        { orgId: a, id: newId(), auditId: dead.auditId },
      ]),
  },
  { name: "work.purgeItems", act: ({ work }) => work.purgeItems(HOUR_MS, 1_000) },
  { name: "work.purgeKeys", act: ({ work }) => work.purgeKeys(0, 1_000) },
  { name: "work.readGauges", act: ({ work }) => work.readGauges() },
  { name: "shipments.orgsWithParked", act: ({ shipments }) => shipments.orgsWithParked(null, 1_000) },
  { name: "shipments.countParked", act: ({ shipments }) => shipments.countParked() },
  {
    name: "shipments.orgsWithDeleted",
    act: ({ shipments }) => shipments.orgsWithDeleted(0, { afterOrgId: null, limit: 1_000 }),
  },
  { name: "work.archiveDone", act: ({ work }) => work.archiveDone(HOUR_MS, { limit: 1_000, keep: true }) },
  { name: "work.purgeAttempts", act: ({ work }) => work.purgeAttempts(HOUR_MS, 1_000) },
  {
    name: "work.hostOrgs",
    act: async ({ work }) => assert.deepEqual(await work.hostOrgs(null, 1_000), []),
  },
  {
    name: "work.dropHostOrgs",
    act: async ({ work }, { a, b }) => assert.equal(await work.dropHostOrgs([a, b, newId()]), 0),
  },
  {
    name: "work.readHosts",
    act: async ({ work }) => assert.deepEqual(await work.readHosts(1_000), []),
  },
  { name: "work.takeSweepSteps", act: ({ work }) => work.takeSweepSteps(["a-step"], 1_000) },
];
