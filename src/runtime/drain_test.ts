import assert from "node:assert/strict";
import { gate, WorkerRig } from "../../tests/support/worker_rig.ts";
import { UnavailableError } from "../core/errors.ts";
import type { WorkManager } from "../work/manager.ts";
import type { WorkHandler } from "../work/types.ts";

const away = () => Promise.reject(new UnavailableError("the database is away", "not-executed"));

/** Runs for `ms`, unless its signal fires. */
function busy(rig: WorkerRig, ms: number, started: string[] = []): WorkHandler["handle"] {
  return async (_ctx, item, run) => {
    started.push(item.id);
    await rig.clock.sleep(ms, run.signal);
    run.signal.throwIfAborted();
  };
}

Deno.test("drain with time enough: nothing is claimed after it, what runs finishes, readiness is off at once", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const ids = await Promise.all(Array.from({ length: 8 }, () => rig.enqueue(ctx)));
    const started: string[] = [];
    const worker = rig.start(busy(rig, 6_000, started));
    await rig.until("three run", () => started.length === 3);
    assert.deepEqual(await worker.ready(), { ok: true, reasons: [] });
    const drained = worker.drain();
    assert.equal((await worker.ready()).ok, false);
    assert.equal(worker.health().ok, true);
    await rig.clock.tick(10_000);
    assert.deepEqual(await drained, { finished: 3, released: 0, left: 0 });
    assert.equal(started.length, 3);
    const statuses = await Promise.all(ids.map(async (id) => (await rig.read(ctx, id)).status));
    assert.deepEqual(statuses.filter((s) => s === "done").length, 3);
    assert.deepEqual(statuses.filter((s) => s === "queued").length, 5);
  }));

Deno.test("drain past its grace: what runs is aborted and handed back at once, uncharged, with a note", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const ids = await Promise.all(Array.from({ length: 3 }, () => rig.enqueue(ctx)));
    const started: string[] = [];
    const worker = rig.start(busy(rig, 60_000, started), { drainGraceMs: 2_000 });
    await rig.until("three run", () => started.length === 3);
    const drained = worker.drain();
    await rig.clock.tick(1_900);
    assert.equal((await rig.read(ctx, ids[0] ?? "")).status, "claimed", "not before the grace has passed");
    await rig.clock.tick(300);
    for (const id of ids) {
      const item = await rig.read(ctx, id);
      assert.deepEqual([item.status, item.attempts, item.claimedBy], ["queued", 0, null]);
      assert.match(item.note ?? "", /worker was stopped/);
    }
    await rig.clock.tick(10_000);
    assert.deepEqual(await drained, { finished: 0, released: 3, left: 0 });
    rig.start(() => {});
    for (const id of ids) assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 1);
  }));

Deno.test("a second signal skips the grace; a grace of 0 is the way of the seed", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    for (const skip of [true, false]) {
      const id = await rig.enqueue(ctx);
      const started: string[] = [];
      const worker = rig.start(busy(rig, 60_000, started), { drainGraceMs: skip ? 3_600_000 : 0 });
      await rig.until("it runs", () => started.length === 1);
      const drained = worker.drain();
      if (skip) {
        await rig.clock.tick(1_000);
        assert.equal((await rig.read(ctx, id)).status, "claimed");
        worker.skipGrace();
      }
      await rig.clock.tick(100);
      assert.equal((await rig.read(ctx, id)).status, "queued");
      await rig.clock.tick(10_000);
      assert.equal((await drained).released, 1);
      const other = rig.start(() => {});
      await rig.untilStatus(ctx, id, "done");
      await rig.drain(other);
    }
  }));

Deno.test("leases are renewed during the grace", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const started: string[] = [];
    const worker = rig.start(busy(rig, 50_000, started), { drainGraceMs: 200_000, leaseMs: 6_000 });
    await rig.until("it runs", () => started.length === 1);
    const drained = worker.drain();
    await rig.clock.tick(60_000);
    assert.equal((await drained).finished, 1);
    assert.deepEqual([(await rig.read(ctx, id)).status, (await rig.read(ctx, id)).attempts], ["done", 1]);
  }));

Deno.test("a deaf handler does not hold the drain up: its item is handed back after two seconds", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const { promise, open } = gate();
    let started = false;
    const worker = rig.start(() => {
      started = true;
      return promise;
    }, { drainGraceMs: 1_000 });
    await rig.until("it runs", () => started);
    const drained = worker.drain();
    await rig.clock.tick(3_200);
    assert.deepEqual([(await rig.read(ctx, id)).status, (await rig.read(ctx, id)).attempts], ["queued", 0]);
    await rig.clock.tick(5_000);
    assert.deepEqual(await drained, { finished: 0, released: 1, left: 0 });
    open();
  }));

Deno.test("drain is bounded with the database down, and says what was left to expire", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx);
    await rig.enqueue(ctx);
    const started: string[] = [];
    let isAway = false;
    const { work } = rig.managers;
    const guarded: Partial<WorkManager> = {
      complete: (c, i) => isAway ? away() : work.complete(c, i),
      release: (c, i, n, d) => isAway ? away() : work.release(c, i, n, d),
      extendLeases: (c, l) => isAway ? away() : work.extendLeases(c, l),
    };
    const worker = rig.start(busy(rig, 60_000, started), { drainGraceMs: 1_000, work: guarded });
    await rig.until("both run", () => started.length === 2);
    isAway = true;
    const drained = worker.drain();
    await rig.clock.tick(12_000);
    let report: Awaited<typeof drained> | undefined;
    void drained.then((r) => report = r);
    await rig.clock.tick(0);
    assert.deepEqual(report, { finished: 0, released: 0, left: 2 });
  }));

Deno.test("a claim that is on its way when the drain begins is handed back, nothing of it runs", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const slow = gate();
    let claiming = false;
    const claim: WorkManager["claim"] = async (r, o) => {
      claiming = true;
      const claimed = await rig.managers.work.claim(r, o);
      await slow.promise;
      return claimed;
    };
    let runs = 0;
    const worker = rig.start(() => void runs++, { work: { claim } });
    await rig.until("a claim is on its way", () => claiming);
    const drained = worker.drain();
    slow.open();
    await rig.clock.tick(5_000);
    assert.deepEqual(await drained, { finished: 0, released: 0, left: 0 });
    const item = await rig.read(ctx, id);
    assert.deepEqual([item.status, item.attempts, runs], ["queued", 0, 0]);
  }));

Deno.test("a handler may enqueue while its worker drains", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx, { payload: { first: true } });
    let started = false;
    let followUp = "";
    const worker = rig.start(async () => {
      started = true;
      await rig.clock.sleep(2_000);
      followUp = await rig.enqueue(ctx);
    });
    await rig.until("it runs", () => started);
    const report = await rig.drain(worker);
    assert.equal(report.finished, 1);
    assert.equal((await rig.read(ctx, followUp)).status, "queued");
  }));

Deno.test("draining twice is draining once, and an idle worker drains at once", () =>
  WorkerRig.with(async (rig) => {
    const worker = rig.start(() => {});
    await rig.clock.tick(1_000);
    assert.equal(worker.drain(), worker.drain());
    await rig.clock.tick(10);
    assert.deepEqual(await worker.drain(), { finished: 0, released: 0, left: 0 });
    assert.equal(rig.logged("worker.drained"), 1);
  }));
