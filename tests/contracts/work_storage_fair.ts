/**
 * The contract of `WorkStorage` where it claims in the order `fair`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import type { ClaimRequest, ItemInsert, OwnedItem } from "../../src/work/storage.ts";
import type { WorkItem } from "../../src/work/types.ts";
import type { Cases } from "./contract.ts";
import type { WorkHarness } from "./work_storage_values.ts";

const KINDS = ["FAIR_A", "FAIR_B", "FAIR_ABSENT"];

function insert(fields: Partial<WorkItem>): ItemInsert {
  const now = new Date(Date.UTC(2026, 0, 1));
  const item: WorkItem = {
    ...{ id: newId(), createdAt: now, updatedAt: now, createdBy: newId(), updatedBy: newId(), kind: KINDS[0] ?? "" },
    ...{ targetId: null, idempotencyKey: newId(), payload: {}, lane: "default", status: "queued", priority: 10 },
    ...{ weight: "light", hostPreference: null, availableAt: now, claimedBy: null, claimToken: null },
    ...{ leaseExpiresAt: null, attempts: 0, maxAttempts: 3, claims: 0, expiries: 0, lastError: null, note: null },
    ...{ auditId: null, requestId: null, traceparent: null },
    ...fields,
  };
  return { item, start: null };
}

/** A lane of the case's own, with a claim that takes turns. */
class Lane {
  readonly name = `lane-${newId()}`;
  readonly #h: WorkHarness;

  constructor(h: WorkHarness) {
    this.#h = h;
  }

  async put(orgId: string, count: number, fields: Partial<WorkItem> = {}): Promise<void> {
    const inserts = Array.from({ length: count }, () => insert({ lane: this.name, ...fields }));
    const outcomes = await this.#h.storage.createItems(orgId, inserts);
    assert.ok(outcomes.every((outcome) => outcome === "INSERTED"));
  }

  claim(limit: number, fields: Partial<ClaimRequest> = {}): Promise<OwnedItem[]> {
    const base = { lane: this.name, kinds: KINDS.slice(0, 1), worker: "w", leaseMs: 30_000, token: newId() };
    return this.#h.storage.claim({ ...base, limit, order: "fair", ...fields });
  }
}

/** How many items of each org were claimed, in the order the orgs are given. */
function shares(claimed: readonly OwnedItem[], orgs: readonly string[]): number[] {
  return orgs.map((org) => claimed.filter(({ orgId }) => orgId === org).length);
}

const orgs = (count: number) => Array.from({ length: count }, newId);

/** The cases. They need the index of the chain `fair`. */
export const FAIR_CASES: Cases<WorkHarness> = {
  "a fair claim of an org's ten items does not wait for another's thousands": async (h) => {
    const lane = new Lane(h);
    const [big = "", small = ""] = orgs(2);
    await lane.put(big, 3_000);
    await lane.put(small, 10);
    const first = await lane.claim(10);
    assert.deepEqual(shares(first, [big, small]), [5, 5]);
    assert.deepEqual(shares(await lane.claim(10), [big, small]), [5, 5]);
    assert.deepEqual(shares(await lane.claim(10), [big, small]), [10, 0]);
  },
  "without being asked for turns a claim takes what is due first": async (h) => {
    const lane = new Lane(h);
    const [big = "", small = ""] = orgs(2);
    await lane.put(big, 20);
    await h.advance(1);
    await lane.put(small, 10);
    for (const order of [undefined, "due"] as const) {
      assert.deepEqual(shares(await lane.claim(10, { order }), [big, small]), [10, 0]);
    }
  },
  "a fair claim takes the better priority first, whoever's it is, and then takes turns at the next": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = "", c = ""] = orgs(3);
    await lane.put(a, 50);
    await lane.put(b, 50);
    await lane.put(c, 4, { priority: 5 });
    await lane.put(a, 3, { priority: 5 });
    await lane.put(b, 50, { priority: 50 });
    const claimed = await lane.claim(17);
    assert.deepEqual(claimed.map(({ item }) => item.priority), [...Array(7).fill(5), ...Array(10).fill(10)]);
    assert.deepEqual(shares(claimed.slice(0, 7), [a, b, c]), [3, 0, 4]);
    assert.deepEqual(shares(claimed.slice(7), [a, b, c]), [5, 5, 0]);
  },
  "a trickle of better items does not send the turns behind it back to the beginning": async (h) => {
    const lane = new Lane(h);
    const all = orgs(4);
    for (const org of all) await lane.put(org, 20);
    const served = new Set<string>();
    for (let i = 0; i < 4; i++) {
      await lane.put(all[3] ?? "", 1, { priority: 1 });
      const [urgent, other] = await lane.claim(2);
      assert.equal(urgent?.item.priority, 1);
      served.add(other?.orgId ?? "");
    }
    assert.equal(served.size, 4);
  },
  "every org has its turn before any has two": async (h) => {
    const lane = new Lane(h);
    const all = orgs(7);
    for (const org of all) await lane.put(org, 20);
    for (const limit of [1, 3, 7]) {
      const claimed: OwnedItem[] = [];
      while (claimed.length < 21) claimed.push(...await lane.claim(limit));
      assert.deepEqual(shares(claimed, all), Array(7).fill(3), `by ${limit}`);
    }
  },
  "many orgs have their turns with a small limit": async (h) => {
    const lane = new Lane(h);
    const all = orgs(60);
    for (const org of all) await lane.put(org, 3);
    const claimed: OwnedItem[] = [];
    while (claimed.length < 60) claimed.push(...await lane.claim(4));
    assert.deepEqual(shares(claimed, all), Array(60).fill(1));
  },
  "of one org what is due first is claimed first": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = ""] = orgs(2);
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) {
      for (const org of [a, b]) {
        const id = newId();
        ids.push(id);
        await lane.put(org, 1, { id });
      }
      await h.advance(10);
    }
    assert.deepEqual((await lane.claim(4)).map(({ item }) => item.id), ids.slice(0, 4));
    assert.deepEqual((await lane.claim(4)).map(({ item }) => item.id), ids.slice(4));
  },
  "what the others do not use goes to who has more, until the limit": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = "", c = ""] = orgs(3);
    await lane.put(a, 30);
    await lane.put(b, 2);
    await lane.put(c, 1);
    await lane.put(c, 5, { priority: 60 });
    assert.deepEqual(shares(await lane.claim(30), [a, b, c]), [27, 2, 1]);
    assert.deepEqual(shares(await lane.claim(30), [a, b, c]), [3, 0, 5]);
    assert.deepEqual(await lane.claim(30), []);
  },
  "a fair claim reaches past many priorities": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = ""] = orgs(2);
    for (let priority = 1; priority <= 9; priority++) {
      await lane.put(a, 2, { priority });
      await lane.put(b, 1, { priority });
    }
    const claimed = await lane.claim(25);
    assert.equal(claimed.length, 25);
    const priorities = claimed.map(({ item }) => item.priority);
    assert.deepEqual(priorities, priorities.toSorted((x, y) => x - y));
    assert.equal((await lane.claim(25)).length, 2);
  },
  "one fair claim holds all it brought under its one token, and reads like any other": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = ""] = orgs(2);
    for (const priority of [5, 10]) for (const org of [a, b]) await lane.put(org, 2, { priority });
    const token = newId();
    const claimed = await lane.claim(8, { token, worker: "mine" });
    assert.equal(claimed.length, 8);
    for (const { orgId, item } of claimed) {
      assert.deepEqual(await h.storage.readItem(orgId, item.id), item);
      assert.deepEqual([item.claimToken, item.claimedBy, item.status, item.attempts], [token, "mine", "claimed", 1]);
    }
    const held = await h.storage.readClaimed(token);
    assert.deepEqual(held.map(({ item }) => item.id).sort(), claimed.map(({ item }) => item.id).sort());
  },
  "of several kinds each org's are one row of turns, and kinds not served are left": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = "", c = ""] = orgs(3);
    await lane.put(a, 20, { kind: "FAIR_A" });
    await lane.put(a, 20, { kind: "FAIR_B" });
    await lane.put(b, 20, { kind: "FAIR_B" });
    await lane.put(c, 20, { kind: "FAIR_OTHER" });
    assert.deepEqual(shares(await lane.claim(10, { kinds: KINDS }), [a, b, c]), [5, 5, 0]);
    assert.deepEqual(shares(await lane.claim(80, { kinds: KINDS }), [a, b, c]), [35, 15, 0]);
    assert.deepEqual(await lane.claim(10, { kinds: KINDS }), []);
  },
  "claimers at once share the rows, none twice and none left": async (h) => {
    for (const kinds of [KINDS.slice(0, 1), KINDS]) {
      const lane = new Lane(h);
      const all = orgs(5);
      for (const org of all) await lane.put(org, 40);
      const claimed: OwnedItem[] = [];
      const claimer = async () => {
        for (let empty = 0; empty < 3;) {
          const found = await lane.claim(7, { kinds });
          claimed.push(...found);
          empty = found.length === 0 ? empty + 1 : 0;
        }
      };
      await Promise.all([claimer(), claimer(), claimer()]);
      assert.equal(new Set(claimed.map(({ item }) => item.id)).size, 200);
      assert.equal(claimed.length, 200);
    }
  },
  "what is not due is left, in turns too": async (h) => {
    const lane = new Lane(h);
    const [a = "", b = ""] = orgs(2);
    await lane.put(a, 2);
    const { item } = insert({ lane: lane.name });
    await h.storage.createItems(b, [{ item, start: { delayMs: 5_000 } }]);
    assert.deepEqual(shares(await lane.claim(10), [a, b]), [2, 0]);
    await h.advance(5_000);
    while ((await h.storage.promote(1_000)).promoted > 0);
    assert.deepEqual(shares(await lane.claim(10), [a, b]), [0, 1]);
  },
};
