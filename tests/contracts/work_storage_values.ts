/**
 * The contract of `WorkStorage`, second part: values at the edges, batches that name a row twice, clocks that go back.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { newId } from "../../src/core/ids.ts";
import { encodeJson } from "../../src/core/json.ts";
import { defineKind } from "../../src/work/kinds.ts";
import { buildInsert } from "../../src/work/new_item.ts";
import type { CallerTransaction, ClaimRef, ItemInsert, OwnedItem, WorkStorage } from "../../src/work/storage.ts";
import type { NewWorkItem, Payload, WorkItem } from "../../src/work/types.ts";
import { z } from "zod";
import type { Cases, Harness } from "./contract.ts";

/** What the work suite runs over. */
export interface WorkHarness extends Harness {
  /** The storage under test. */
  readonly storage: WorkStorage;
  /** Sets columns of one item past every rule, as an operator's SQL would. Values are SQL literals of both engines. */
  tamper(orgId: string, id: string, assignments: Readonly<Record<string, string>>): Promise<void>;
  /** Runs SQL past every rule, where hosts are served: what they write cannot be written through the storage. */
  hostSql?(text: string): Promise<Record<string, unknown>[]>;
  /** Runs `work` in a transaction of a caller's own, committed unless it rejects. Absent where the storage joins none. */
  transaction?(work: (tx: CallerTransaction) => Promise<void>): Promise<void>;
}

const KIND = defineKind("CONTRACT_KIND", { schema: z.looseObject({}) });
/** The lease of `claimedOne`. */
export const LEASE_MS = 30_000;
const SEED = 20_260_801;
const LIMIT_BYTES = 262_144;

function insert(fields: Partial<NewWorkItem>): ItemInsert {
  const item = { kind: KIND.name, idempotencyKey: newId(), payload: {}, ...fields };
  const attribution = { actorId: newId(), requestId: null, traceparent: null };
  return buildInsert(item, { kind: KIND, attribution, nowMs: 0, payloadLimitBytes: LIMIT_BYTES, start: {} });
}

async function claimed(h: WorkHarness, orgId: string, inserts: readonly ItemInsert[]): Promise<OwnedItem[]> {
  const lane = inserts[0]?.item.lane ?? "default";
  assert.ok((await h.storage.createItems(orgId, inserts)).every((outcome) => outcome === "INSERTED"));
  return await h.storage.claim({
    lane,
    kinds: [KIND.name],
    worker: "w",
    leaseMs: LEASE_MS,
    limit: 1_000,
    token: newId(),
  });
}

/** Puts an item into a lane of its own and claims it. */
export async function claimedOne(h: WorkHarness, fields: Partial<NewWorkItem> = {}): Promise<OwnedItem> {
  const [owned] = await claimed(h, newId(), [insert({ lane: `lane-${newId()}`, ...fields })]);
  assert.ok(owned);
  return owned;
}

/** Names a claim. */
export function ref({ orgId, item }: OwnedItem): ClaimRef {
  assert.ok(item.claimToken);
  return { orgId, id: item.id, token: item.claimToken };
}

async function read(h: WorkHarness, { orgId, item }: OwnedItem): Promise<WorkItem> {
  const row = await h.storage.readItem(orgId, item.id);
  assert.ok(row);
  return row;
}

/** Payloads that the manager would take, of every kind of value and key. */
function payloads(count: number): Payload[] {
  const text = fc.string({ unit: "binary", maxLength: 12 });
  const value = fc.anything({ key: text, values: [fc.boolean(), fc.double(), fc.integer(), text, fc.constant(null)] });
  const object = fc.dictionary(text, value, { maxKeys: 6 }).filter((candidate) => {
    try {
      encodeJson(candidate, "payload", LIMIT_BYTES);
      return true;
    } catch {
      return false;
    }
  });
  return fc.sample(object, { seed: SEED, numRuns: count });
}

/** As JSON gives it back: without prototypes, and without properties that are undefined. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The cases that `testWorkStorage` adds to its own. */
export const VALUE_CASES: Cases<WorkHarness> = {
  "every payload that is taken comes back exactly": async (h) => {
    const lane = `lane-${newId()}`;
    const given = payloads(300);
    const inserts = given.map((payload) => insert({ lane, payload }));
    const rows = await claimed(h, newId(), inserts);
    const byId = new Map(rows.map(({ item }) => [item.id, item.payload]));
    inserts.forEach(({ item }, i) =>
      assert.deepEqual(plain(byId.get(item.id)), plain(given[i]), `seed ${SEED}, payload ${i}`)
    );
  },
  "keys are told apart by each character: case, accents, their composition, spaces": async (h) => {
    const orgId = newId();
    const keys = ["key", "KEY", "key ", " key", "k\u00e9", "ke\u0301", "ke", "k\u200bey", "\uff4bey", "🚚".repeat(200)];
    const outcomes = await h.storage.createItems(orgId, keys.map((idempotencyKey) => insert({ idempotencyKey })));
    assert.deepEqual(outcomes, keys.map(() => "INSERTED"));
    for (const key of keys) {
      assert.equal((await h.storage.readItemByKey(orgId, key))?.item?.idempotencyKey, key);
    }
  },
  "texts and numbers at the ends of their ranges are stored as they are": async (h) => {
    for (const [priority, maxAttempts, at] of [[0, 1, 0], [32_767, 1_000, 253_402_300_799_999]]) {
      const ends = {
        priority,
        maxAttempts,
        createdAt: new Date(at ?? 0),
        updatedAt: new Date(at ?? 0),
        hostPreference: "🏠".repeat(200),
        idempotencyKey: "'\";--\\\n\t" + newId(),
        weight: "w".repeat(63),
      };
      const { item } = await claimedOne(h, ends);
      const stored = Object.fromEntries(Object.keys(ends).map((key) => [key, item[key as keyof WorkItem]]));
      assert.deepEqual(stored, { ...ends, updatedAt: item.updatedAt });
    }
  },
  "an error and a note keep every character": async (h) => {
    const odd = '"quoted" \\ back\nline 🚚 ü \u2028 {json: [1]} $1 %s';
    const owned = await claimedOne(h);
    await h.storage.settle([{ ...ref(owned), to: "retry", delayMs: 60_000, error: odd }]);
    assert.equal((await read(h, owned)).lastError, odd);
    const other = await claimedOne(h);
    await h.storage.settle([{ ...ref(other), to: "back", delayMs: 60_000, note: odd, ran: false }]);
    assert.equal((await read(h, other)).note, odd);
  },
  "no write after the claim conditions on who claimed": async (h) => {
    for (const to of ["done", "retry"] as const) {
      const owned = await claimedOne(h);
      await h.tamper(owned.orgId, owned.item.id, { claimed_by: "'somebody else'" });
      assert.deepEqual(await h.storage.extendLeases([ref(owned)], LEASE_MS), ["WRITTEN"]);
      const settlement = to === "done" ? { ...ref(owned), to } : { ...ref(owned), to, delayMs: 0, error: "e" };
      assert.deepEqual(await h.storage.settle([settlement]), ["WRITTEN"]);
    }
  },
  "a batch that names one claim twice writes it once and answers both": async (h) => {
    const owned = await claimedOne(h);
    assert.deepEqual(await h.storage.extendLeases([ref(owned), ref(owned)], LEASE_MS), ["WRITTEN", "WRITTEN"]);
    const done = { ...ref(owned), to: "done" } as const;
    assert.deepEqual((await h.storage.settle([done, done])).sort(), ["ALREADY", "WRITTEN"]);
    const other = await claimedOne(h);
    const outcomes = await h.storage.settle([
      { ...ref(other), to: "retry", delayMs: 0, error: "e" },
      { ...ref(other), to: "back", delayMs: 0, note: null, ran: true },
    ]);
    assert.deepEqual(outcomes.sort(), ["REFUSED", "WRITTEN"]);
    assert.ok((await read(h, other)).attempts <= 1);
  },
  "of two completions of an item in one batch only the claim at hand's is told as written": async (h) => {
    for (const order of [0, 1]) {
      const first = await claimedOne(h);
      await h.storage.settle([{ ...ref(first), to: "back", delayMs: 0, note: null, ran: false }]);
      const token = newId();
      const { lane, kind } = first.item;
      const [again] = await h.storage.claim({ lane, kinds: [kind], worker: "w", leaseMs: LEASE_MS, limit: 1, token });
      assert.equal(again?.item.id, first.item.id);
      const stale = { ...ref(first), to: "done" } as const;
      const held = { ...ref(first), token, to: "done" } as const;
      const outcomes = await h.storage.settle(order === 0 ? [stale, held] : [held, stale]);
      assert.deepEqual(outcomes, order === 0 ? ["REFUSED", "WRITTEN"] : ["WRITTEN", "REFUSED"]);
    }
  },
  "batches of nothing answer with nothing": async (h) => {
    assert.deepEqual(await h.storage.createItems(newId(), []), []);
    assert.deepEqual(await h.storage.settle([]), []);
    assert.deepEqual(await h.storage.extendLeases([], LEASE_MS), []);
    assert.deepEqual(await h.storage.failOrphaned([], "e"), []);
    assert.deepEqual(await h.storage.readClaims([]), []);
    await h.storage.clearAudit([]);
  },
  "a lease is over at the moment it ends, and not before": async (h) => {
    const early = await claimedOne(h);
    await h.advance(LEASE_MS - 10_000);
    assert.deepEqual(await h.storage.requeueStale(early.orgId, 10, { baseMs: 1, capMs: 100 }), {
      requeued: 0,
      deadLettered: 0,
    });
    await h.advance(10_000);
    assert.deepEqual(await h.storage.settle([{ ...ref(early), to: "done" }]), ["REFUSED"]);
    assert.equal((await h.storage.requeueStale(early.orgId, 10, { baseMs: 1, capMs: 100 })).requeued, 1);
  },
  "an item taken back for the first time keeps its place before all that came after it": async (h) => {
    const early = await claimedOne(h);
    const { orgId, item: { lane } } = early;
    await h.advance(1_000);
    await h.storage.createItems(orgId, Array.from({ length: 20 }, () => insert({ lane })));
    await h.advance(LEASE_MS);
    assert.equal((await h.storage.requeueStale(orgId, 10, { baseMs: 1, capMs: 100 })).requeued, 1);
    const request = { lane, kinds: [KIND.name], worker: "w", leaseMs: LEASE_MS, limit: 3, token: newId() };
    assert.equal((await h.storage.claim(request))[0]?.item.id, early.item.id);
  },
  "an item handed back at once, as it never ran, keeps its place; one that asks for later gives it up": async (h) => {
    for (const [ran, delayMs, first] of [[false, 0, true], [true, 0, false]] as const) {
      const early = await claimedOne(h);
      const { orgId, item: { lane } } = early;
      await h.advance(1_000);
      await h.storage.createItems(orgId, Array.from({ length: 20 }, () => insert({ lane })));
      await h.advance(1_000);
      assert.deepEqual(await h.storage.settle([{ ...ref(early), to: "back", delayMs, note: null, ran }]), ["WRITTEN"]);
      const request = { lane, kinds: [KIND.name], worker: "w", leaseMs: LEASE_MS, limit: 3, token: newId() };
      assert.equal((await h.storage.claim(request))[0]?.item.id === early.item.id, first);
    }
  },
  "unaudited dead letters are read oldest first, as many as asked for, until each is cleared by its own audit id":
    async (h) => {
      const ids: string[] = [];
      for (let i = 0; i < 3; i++) {
        const owned = await claimedOne(h);
        const auditId = newId();
        await h.storage.settle([{ ...ref(owned), to: "failed", error: `e${i}`, auditId }]);
        ids.push(owned.item.id);
        await h.advance(10);
      }
      const mine = async () => (await h.storage.readUnaudited(1_000)).filter(({ id }) => ids.includes(id));
      const rows = await mine();
      assert.deepEqual(rows.map(({ id, lastError, attempts }) => [id, lastError, attempts]), [
        [ids[0], "e0", 1],
        [ids[1], "e1", 1],
        [ids[2], "e2", 1],
      ]);
      assert.equal((await h.storage.readUnaudited(1)).length, 1);
      await h.storage.clearAudit(rows.slice(0, 1).map((row) => ({ ...row, auditId: newId() })));
      assert.equal((await mine()).length, 3, "another audit id clears nothing");
      await h.storage.clearAudit(rows.slice(0, 2));
      assert.deepEqual((await mine()).map(({ id }) => id), [ids[2]]);
      await h.storage.clearAudit(rows);
    },
  "orgsWithStale() and failStaleOf() are bounded": async (h) => {
    const all = [await claimedOne(h), await claimedOne(h), await claimedOne(h)];
    await h.advance(LEASE_MS);
    assert.equal((await h.storage.orgsWithStale(2)).length, 2);
    const orgs = all.map(({ orgId }) => orgId);
    assert.equal(await h.storage.failStaleOf(orgs, "gone", 2), 2);
    assert.equal(await h.storage.failStaleOf(orgs, "gone", 2), 1);
  },
  "a database clock that was set back stops no sweep step for longer than two intervals": async (h) => {
    const step = `step-${newId()}`;
    assert.deepEqual(await h.storage.takeSweepSteps([step], 60_000), [step]);
    await h.advance(-3_600_000);
    try {
      assert.deepEqual(await h.storage.takeSweepSteps([step], 60_000), [step], "an hour back");
      assert.deepEqual(await h.storage.takeSweepSteps([step], 60_000), [], "once");
    } finally {
      await h.advance(3_600_000);
    }
  },
};
