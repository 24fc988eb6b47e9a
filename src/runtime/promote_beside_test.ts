import assert from "node:assert/strict";
import { HintHub } from "../../tests/support/hint_hub.ts";
import { gate, WorkerRig } from "../../tests/support/worker_rig.ts";
import type { WorkManager } from "../work/manager.ts";

const HOUR_MS = 3_600_000;
const LANE = { lane: "default" };

/** A worker that listens and has been idle for a minute: a hint makes it ask for due items too. What `rig` enqueues, nobody tells it. */
async function idleWorker(rig: WorkerRig, work: Partial<WorkManager>) {
  const hub = new HintHub(rig.clock);
  const started: string[] = [];
  rig.start((_ctx, item) => void started.push(item.id), { sweepMs: HOUR_MS, topics: hub.topics(), work });
  await rig.clock.tick(60_000);
  hub.sent = 0;
  const producer = hub.topics();
  return { hub, started, tell: () => void producer.publish("WORK_AVAILABLE", LANE) };
}

Deno.test("what a hint tells of begins while due items are still being moved into reach", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const moved = gate();
    let holds = false;
    let held = 0;
    const { started, tell } = await idleWorker(rig, {
      promote: async (rctx, limit) => {
        if (holds && ++held > 0) await moved.promise;
        return await rig.managers.work.promote(rctx, limit);
      },
    });
    holds = true;
    const id = await rig.enqueue(ctx);
    tell();
    await rig.clock.tick(1);
    assert.equal(held, 1, "due items are asked for");
    assert.deepEqual(started, [id]);
    moved.open();
  }));

Deno.test("what a hinted claim came too early for is claimed right behind it, and what it leaves is told to others", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let most = Infinity;
    const { hub, started, tell } = await idleWorker(rig, {
      // The claim is answered first.
      promote: async (rctx, limit) => {
        await rig.clock.sleep(2);
        return await rig.managers.work.promote(rctx, limit);
      },
      claim: (rctx, options) => rig.managers.work.claim(rctx, { ...options, limit: Math.min(options.limit, most) }),
    });
    const later = [await rig.enqueue(ctx, {}, { delayMs: 100 }), await rig.enqueue(ctx, {}, { delayMs: 100 })];
    await rig.clock.tick(101);
    most = 1;
    const now = await rig.enqueue(ctx);
    tell();
    await rig.clock.tick(1);
    assert.deepEqual(started, [now]);
    await rig.clock.tick(3);
    assert.ok(later.includes(started[1] ?? ""), "one of two, right behind");
    assert.equal(hub.sent, 2, "the producer's, and one of this worker's that there is another");
  }));

Deno.test("a move that fails beside a claim counts as a failed look; what the claim brought runs all the same", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let fails = false;
    const { started, tell } = await idleWorker(rig, {
      promote: (rctx, limit) => fails ? Promise.reject(new Error("away")) : rig.managers.work.promote(rctx, limit),
    });
    fails = true;
    const id = await rig.enqueue(ctx);
    tell();
    await rig.clock.tick(1);
    assert.deepEqual(started, [id]);
    assert.equal(rig.counts.get("laneway_claim_failures_total"), 1);
    fails = false;
  }));
