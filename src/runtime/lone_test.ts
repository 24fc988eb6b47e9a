/**
 * What simulated worlds found: items that run alone, and claims whose answer was lost while the worker became full.
 */
import assert from "node:assert/strict";
import { overlay } from "../../tests/support/overlay.ts";
import { gate, TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import type { OpContext } from "../core/context.ts";
import { UnavailableError } from "../core/errors.ts";
import { createStorages } from "../storages.ts";
import type { WorkManager } from "../work/manager.ts";
import type { WorkStorage } from "../work/storage.ts";
import { createWorkManager } from "../work/work_manager.ts";

async function suspect(rig: WorkerRig, ctx: OpContext, priority: number): Promise<string> {
  const id = await rig.enqueue(ctx, { priority });
  await rig.db.write((s) => s.run("update queue_work_items set expiries = 1 where id = ?", id));
  return id;
}

/** Claims so many items, however few there is room for: as a worker does that claims ahead of its slots. */
function claimsOf(rig: WorkerRig, limit: number): Pick<WorkManager, "claim"> {
  return { claim: (rctx, options) => rig.managers.work.claim(rctx, { ...options, limit }) };
}

Deno.test("an item that is to run alone waits for a slot, however long its worker is full", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const plain = await rig.enqueue(ctx, { priority: 1 });
    const alone = await suspect(rig, ctx, 10);
    const slow = gate();
    const begun: string[] = [];
    rig.start(async (_ctx, item) => {
      begun.push(item.id);
      if (item.id === plain) await slow.promise;
    }, { capacity: 1, leaseMs: 5_000, work: claimsOf(rig, 2) });
    await rig.clock.tick(30_000);
    assert.deepEqual(begun, [plain]);
    slow.open();
    assert.equal((await rig.untilStatus(ctx, alone, "done")).attempts, 1);
    assert.deepEqual(begun, [plain, alone]);
  }));

Deno.test("an item that is to run alone keeps its lease while others are handed back for it", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const alone = await suspect(rig, ctx, 1);
    const other = await suspect(rig, ctx, 10);
    const answer = gate();
    const hung: string[] = [];
    const begun: string[] = [];
    rig.start((_ctx, item) => void begun.push(item.id), {
      leaseMs: 5_000,
      work: {
        ...claimsOf(rig, 2),
        async release(releaseCtx, item, note, delayMs) {
          if (item.id === other && hung.push(item.id) === 1) await answer.promise;
          await rig.managers.work.release(releaseCtx, item, note, delayMs);
        },
      },
    });
    await rig.until("the hand-back is on its way", () => hung.length > 0);
    await rig.clock.tick(30_000);
    assert.equal((await rig.read(ctx, alone)).claims, 1, "nobody else could claim it meanwhile");
    assert.deepEqual(begun, []);
    answer.open();
    const done = await rig.untilStatus(ctx, alone, "done");
    assert.deepEqual([done.attempts, done.claims], [1, 1]);
  }));

Deno.test("a worker that is full by the time its claim's answer is lost hands back what the claim took", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const slow = gate();
    const full = gate();
    let runs = 0;
    let taken: readonly string[] = [];
    const lose = async (storage: WorkStorage, request: Parameters<WorkStorage["claim"]>[0]) => {
      const rows = await storage.claim(request);
      if (runs < 30 || taken.length > 0 || rows.length < 2) return rows;
      taken = rows.map(({ item }) => item.id);
      await full.promise;
      await rig.clock.sleep(200);
      throw new UnavailableError("the answer was lost", "unknown");
    };
    const work = managerOver(rig, (storage) => ({ claim: (request) => lose(storage, request) }));
    rig.start(async () => {
      runs++;
      // Quick, so that it claims ahead; until a claim is about to be lost.
      if (taken.length === 0) return await rig.clock.sleep(1);
      full.open();
      await slow.promise;
    }, { capacity: 1, work: { claim: (rctx, options) => work.claim(rctx, options) } });
    await rig.managers.work.enqueueMany(
      ctx,
      Array.from({ length: 120 }, (_, n) => ({ kind: TASK.name, idempotencyKey: `key ${n}`, payload: {} })),
    );
    await rig.until("a claim was lost", () => taken.length > 0);
    await rig.clock.tick(10_000);
    const items = await Promise.all(taken.map((id) => rig.read(ctx, id)));
    assert.deepEqual(
      items.map(({ status, attempts, expiries }) => [status, attempts, expiries]),
      items.map(() => ["queued", 0, 0]),
    );
    slow.open();
    for (const id of taken) assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 1);
  }));

/** A work manager of its own over the rig's store, some of whose storage's methods are replaced. */
function managerOver(rig: WorkerRig, replaced: (storage: WorkStorage) => Partial<WorkStorage>): WorkManager {
  const storage = createStorages({ engine: "sqlite", db: rig.db }).work;
  const { tenancy, audit } = rig.managers;
  return createWorkManager({
    ...{ storage: overlay(storage, replaced(storage)), tenancy, audit, topics: rig.topics, clock: rig.clock },
    ...{ logger: rig.logger, metrics: rig.metrics, kinds: [TASK], itemRetentionMs: 60_000, keyRetentionMs: 120_000 },
  });
}
