import assert from "node:assert/strict";
import { gate, WorkerRig } from "../../tests/support/worker_rig.ts";
import { UnavailableError } from "../core/errors.ts";
import type { Cache } from "../infra/cache.ts";
import type { WorkManager } from "../work/manager.ts";

const away = () => Promise.reject(new UnavailableError("the table is gone", "not-executed"));

Deno.test("a worker with an empty queue, and one whose slots are all taken, are healthy throughout", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const { promise, open } = gate();
    const full = rig.start(() => promise, { capacity: 1 });
    const idle = rig.start(() => {}, { lane: "empty", pollMs: 30_000 });
    await rig.enqueue(ctx);
    for (let i = 0; i < 120; i++) {
      await rig.clock.tick(500);
      assert.deepEqual([full.health(), idle.health()], [{ ok: true, reasons: [] }, { ok: true, reasons: [] }]);
    }
    open();
  }));

Deno.test("claims that fail make the worker unhealthy within two heartbeat windows, and healthy again by itself", () =>
  WorkerRig.with(async (rig) => {
    let isAway = false;
    const claim: WorkManager["claim"] = (r, o) => isAway ? away() : rig.managers.work.claim(r, o);
    const worker = rig.start(() => {}, { work: { claim } });
    await rig.clock.tick(3_000);
    isAway = true;
    await rig.clock.tick(3_000);
    assert.equal(worker.health().ok, true, "one window is no outage");
    await rig.clock.tick(7_000);
    assert.match(worker.health().reasons.join(), /out of reach.*the table is gone/);
    isAway = false;
    await rig.clock.tick(5_000);
    assert.equal(worker.health().ok, true);
  }));

Deno.test("a claim that is never answered makes the worker unhealthy within two heartbeat windows", () =>
  WorkerRig.with(async (rig) => {
    const hole = gate<never[]>();
    let isHole = false;
    const claim: WorkManager["claim"] = (r, o) => isHole ? hole.promise : rig.managers.work.claim(r, o);
    const worker = rig.start(() => {}, { work: { claim } });
    await rig.clock.tick(3_000);
    isHole = true;
    await rig.clock.tick(10_000);
    assert.match(worker.health().reasons.join(), /has not answered/);
    isHole = false;
    hole.open([]);
    await rig.clock.tick(2_000);
    assert.equal(worker.health().ok, true);
  }));

Deno.test("a blocked event loop is logged with the kinds that ran, and leaves the worker healthy afterwards", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const { promise, open } = gate();
    const worker = rig.start(() => promise);
    await rig.enqueue(ctx);
    await rig.clock.tick(2_000);
    rig.clock.block(20_000);
    assert.equal(worker.health().ok, true);
    await rig.clock.tick(1_000);
    assert.equal(worker.health().ok, true);
    const line = rig.log.find(({ event }) => event === "event_loop.blocked");
    assert.equal(line?.fields.running, "TASK");
    open();
  }));

Deno.test("a handler that blocked and has ended is named all the same", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    rig.start(() => rig.clock.block(20_000));
    await rig.enqueue(ctx);
    await rig.clock.tick(2_000);
    assert.deepEqual(
      rig.log.filter(({ event }) => event === "event_loop.blocked").map(({ fields }) => fields.running),
      [
        "TASK",
      ],
    );
  }));

Deno.test("a failed liveness publish is logged once, and neither pauses claiming nor changes the health", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let published = 0;
    const cache: Cache = {
      set: () => {
        published++;
        return published % 2 === 0 ? new Promise(() => {}) : away();
      },
      get: () => Promise.resolve(null),
      list: () => Promise.resolve([]),
      delete: () => new Promise(() => {}),
    };
    const worker = rig.start(() => {}, { cache });
    await rig.clock.tick(60_000);
    assert.ok(published >= 2, `${published} publishes`);
    const id = await rig.enqueue(ctx);
    await rig.clock.tick(100);
    assert.equal((await rig.read(ctx, id)).status, "done");
    assert.equal(worker.health().ok, true);
    assert.equal(rig.logged("heartbeat.publish_failed"), 1);
  }));

Deno.test("the liveness key is there while the worker runs and gone when it is offline", () =>
  WorkerRig.with(async (rig) => {
    const keys = new Map<string, string>();
    const cache: Cache = {
      set: (scope, key, value) => Promise.resolve(void keys.set(`${scope}/${key}`, value)),
      get: (scope, key) => Promise.resolve(keys.get(`${scope}/${key}`) ?? null),
      list: () => Promise.resolve([]),
      delete: (scope, key) => Promise.resolve(void keys.delete(`${scope}/${key}`)),
    };
    const worker = rig.start(() => {}, { cache });
    await rig.clock.tick(100);
    assert.deepEqual([...keys.keys()], ["WORKER_LIVENESS/rig"]);
    await rig.drain(worker);
    assert.equal(keys.size, 0);
  }));
