/**
 * Faults of the work manager's callers, its storage and its clock, each provoked.
 *
 * @module
 */
import assert from "node:assert/strict";
import { UnavailableError, ValidationError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/ids.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { WorkManager } from "../../src/work/manager.ts";
import type { ClaimRequest } from "../../src/work/storage.ts";
import type { ClaimedItem, NewWorkItem } from "../../src/work/types.ts";
import { ANY, type ManagersRig, openManagers, withStorage } from "../support/managers_rig.ts";
import { ENGINES } from "../support/stores.ts";

const OTHER = defineKind("OTHER", { schema: ANY.schema });
const LOST = new UnavailableError("the answer was lost", "unknown");

function item(fields: Partial<NewWorkItem> = {}): NewWorkItem {
  return { kind: ANY.name, idempotencyKey: newId(), payload: {}, ...fields };
}

function claim(
  work: WorkManager,
  rig: ManagersRig,
  options: { lane: string; kinds?: string[]; limit?: number },
): Promise<ClaimedItem[]> {
  return work.claim(rig.rctx, { kinds: [ANY.name], worker: "w", leaseMs: 30_000, limit: 10, ...options });
}

function lane(): string {
  return `lane-${newId()}`;
}

/** A manager whose next claims take effect and lose their answers, until `heal`. */
function losingClaims(rig: ManagersRig): { work: WorkManager; heal(): void } {
  let losing = true;
  const work = withStorage(rig, {
    claim: async (request: ClaimRequest) => {
      const rows = await rig.storages.work.claim(request);
      if (losing) throw LOST;
      return rows;
    },
    readClaimed: async (token: string) => {
      if (losing) throw LOST;
      return await rig.storages.work.readClaimed(token);
    },
  }, [OTHER]);
  return { work, heal: () => losing = false };
}

const CASES: Readonly<Record<string, (rig: ManagersRig) => Promise<void>>> = {
  "claim() that fails on its way past orphans hands out what it holds already": async (rig) => {
    const inLane = lane();
    const [gone, here] = [await rig.member(), await rig.member()];
    await rig.managers.work.enqueue(gone, item({ lane: inLane }));
    const { id } = await rig.managers.work.enqueue(here, item({ lane: inLane }));
    await rig.managers.tenancy.endOrg(rig.rctx, gone.orgId);
    let calls = 0;
    const work = withStorage(rig, {
      claim: (request: ClaimRequest) => ++calls > 1 ? Promise.reject(LOST) : rig.storages.work.claim(request),
    });
    assert.deepEqual((await claim(work, rig, { lane: inLane })).map((held) => held.item.id), [id]);
    assert.equal(calls, 2);
  },
  "two claims at once after a lost answer hand each of its items to one of them": async (rig) => {
    const inLane = lane();
    const ctx = await rig.member();
    for (let i = 0; i < 3; i++) await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const { work, heal } = losingClaims(rig);
    await assert.rejects(claim(work, rig, { lane: inLane }), LOST);
    heal();
    const both = await Promise.all([claim(work, rig, { lane: inLane }), claim(work, rig, { lane: inLane })]);
    const ids = both.flat().map((held) => held.item.id);
    assert.deepEqual([ids.length, new Set(ids).size], [3, 3]);
  },
  "a claim that was lost is found again when finding it failed first": async (rig) => {
    const inLane = lane();
    const ctx = await rig.member();
    await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const { work, heal } = losingClaims(rig);
    for (let i = 0; i < 3; i++) await assert.rejects(claim(work, rig, { lane: inLane }), LOST);
    heal();
    assert.equal((await claim(work, rig, { lane: inLane })).length, 1);
  },
  "what a lost claim of another lane holds is not handed to a claim that did not ask for it": async (rig) => {
    const [oneLane, otherLane] = [lane(), lane()];
    const ctx = await rig.member();
    await rig.managers.work.enqueue(ctx, item({ lane: oneLane }));
    const { work, heal } = losingClaims(rig);
    await assert.rejects(claim(work, rig, { lane: oneLane }), LOST);
    heal();
    assert.equal((await claim(work, rig, { lane: otherLane })).length, 0);
    assert.equal((await claim(work, rig, { lane: oneLane, kinds: [OTHER.name] })).length, 0);
    assert.equal((await claim(work, rig, { lane: oneLane })).length, 1);
  },
  "a claim never brings more than its limit, whatever a lost one held": async (rig) => {
    const inLane = lane();
    const ctx = await rig.member();
    for (let i = 0; i < 5; i++) await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const { work, heal } = losingClaims(rig);
    await assert.rejects(claim(work, rig, { lane: inLane }), LOST);
    heal();
    assert.equal((await claim(work, rig, { lane: inLane, limit: 2 })).length, 2);
    const rest = await claim(work, rig, { lane: inLane });
    assert.equal(rest.length, 3, "what was over was handed back");
    assert.ok(rest.every((held) => held.item.attempts === 1), "uncharged");
  },
  "claim() of a kind named twice hands an item out once": async (rig) => {
    const inLane = lane();
    const ctx = await rig.member();
    for (let i = 0; i < 3; i++) await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const held = await claim(rig.managers.work, rig, { lane: inLane, kinds: [ANY.name, ANY.name], limit: 3 });
    assert.deepEqual(held.map(({ item }) => item.attempts), [1, 1, 1]);
    assert.equal(new Set(held.map(({ item }) => item.id)).size, 3);
  },
  "enqueueMany() gives the others their results when one key's holder is purged meanwhile": async (rig) => {
    const ctx = await rig.member();
    const key = newId();
    await rig.managers.work.enqueue(ctx, item({ idempotencyKey: key }));
    const work = withStorage(rig, { readItemByKey: () => Promise.resolve(null) });
    const [fresh, held] = await work.enqueueMany(ctx, [item(), item({ idempotencyKey: key })]);
    assert.ok(fresh !== undefined && "outcome" in fresh && fresh.outcome === "INSERTED");
    assert.ok(held instanceof Error && /enqueue again/.test(held.message));
  },
  "enqueues of one id and key at once: one is told inserted, the others that the id exists": async (rig) => {
    const ctx = await rig.member();
    const same = item({ id: newId() });
    const results = await Promise.all(Array.from({ length: 20 }, () => rig.managers.work.enqueue(ctx, same)));
    const told = results.map(({ outcome }) => outcome);
    assert.equal(told.filter((outcome) => outcome === "INSERTED").length, 1);
    assert.equal(told.filter((outcome) => outcome === "ID_EXISTS").length, 19);
    assert.ok(results.every(({ item }) => item?.id === same.id));
  },
  "enqueueMany() of payloads that no single statement could hold stores them all": async (rig) => {
    const ctx = await rig.member();
    let largest = 0;
    const work = withStorage(rig, {
      createItems: (_orgId, inserts) => {
        const bytes = inserts.reduce((sum, { item }) => sum + JSON.stringify(item.payload).length, 0);
        largest = Math.max(largest, bytes);
        return Promise.resolve(inserts.map(() => "INSERTED" as const));
      },
    });
    const payload = { text: "x".repeat(200_000) };
    const results = await work.enqueueMany(ctx, Array.from({ length: 100 }, () => item({ payload })));
    assert.ok(results.every((result) => "outcome" in result));
    assert.ok(largest <= 16_000_000, `${largest} bytes in one statement`);
  },
  "purgeKeys() gets past a backlog of items that outlive the retention of their keys": async (rig) => {
    const { test, storages } = rig;
    const ctx = await rig.member();
    const { id } = await rig.managers.work.enqueue(ctx, item());
    const [items, keys] = [test.table("queue.work_items"), test.table("queue.work_keys")];
    // As many old keys of a living item as one pass looks at, and a free one behind them.
    const at = test.store.engine === "sqlite" ? "n" : "to_timestamp(n / 1000.0)";
    const orgId = test.store.engine === "sqlite" ? "org_id" : "org_id::uuid";
    const insertKeys = (from: number, to: number, itemId: string) =>
      test.sql(`with recursive counted as (select ${from} as n union all select n + 1 from counted where n < ${to})
        insert into ${keys} (org_id, key, item_id, created_at)
        select ${orgId}, 'old ' || n, ${itemId}, ${at} from counted, (select * from ${items} where id = '${id}') one
        returning 1 as one`);
    await insertKeys(1, 10_001, "id");
    await insertKeys(20_000, 20_000, test.store.engine === "sqlite" ? `'${newId()}'` : "gen_random_uuid()");
    const purged = [await storages.work.purgeKeys(1_000, 10), await storages.work.purgeKeys(1_000, 10)];
    assert.deepEqual(purged, [0, 1]);
    assert.equal(await storages.work.readItemByKey(ctx.orgId, "old 20000"), null);
    await test.sql(`delete from ${keys} where key like 'old %' returning 1 as one`);
    assert.equal(await storages.work.purgeKeys(1_000, 10), 0, "and begins anew");
  },
  "enqueueMany() gives an item that cannot even be looked at its own error": async (rig) => {
    const ctx = await rig.member();
    const odd = Object.create(null) as string;
    const throwing = {
      get a(): string {
        throw new Error("no");
      },
    };
    const results = await rig.managers.work.enqueueMany(ctx, [
      item({ lane: odd }),
      item({ kind: Symbol("k") as unknown as string }),
      item({ priority: odd as unknown as number }),
      item({ targetId: odd }),
      item({ payload: throwing }),
      item(),
    ]);
    const fields = results.map((result) => result instanceof ValidationError ? result.field : "inserted");
    assert.deepEqual(fields, ["lane", "kind", "priority", "targetId", "payload.a", "inserted"]);
  },
  "read() of what is no id is refused naming the field, and an id may be written in either case": async (rig) => {
    const ctx = await rig.member();
    await assert.rejects(
      rig.managers.work.read(ctx, "nope"),
      (error) => error instanceof ValidationError && error.field === "id",
    );
    const { id } = await rig.managers.work.enqueue(ctx, item());
    assert.equal((await rig.managers.work.read(ctx, id.toUpperCase())).id, id);
  },
  "times that no database holds are refused naming the field; a start ages ago means now": async (rig) => {
    const ctx = await rig.member();
    const { work } = rig.managers;
    for (const ms of [8.64e15, -8.64e15, Date.UTC(10_000, 0, 1), -1]) {
      for (const field of ["createdAt", "updatedAt"] as const) {
        await assert.rejects(
          work.enqueue(ctx, item({ [field]: new Date(ms) })),
          (error) => error instanceof ValidationError && error.field === field && /year/.test(error.message),
          `${field} ${ms}`,
        );
      }
    }
    const inLane = lane();
    const { id } = await work.enqueue(ctx, item({ lane: inLane }), { notBefore: new Date(-8.64e15) });
    assert.deepEqual((await claim(work, rig, { lane: inLane })).map((held) => held.item.id), [id]);
  },
};

for (const engine of ENGINES) {
  Deno.test(`WorkManager meets faults on ${engine}`, async (t) => {
    const rig = await openManagers(engine, { kinds: [ANY, OTHER] });
    try {
      for (const [name, run] of Object.entries(CASES)) {
        await t.step({ name, fn: () => run(rig), sanitizeOps: false, sanitizeResources: false });
      }
    } finally {
      await rig.close();
    }
  });
}
