import assert from "node:assert/strict";
import { HintHub } from "../../tests/support/hint_hub.ts";
import { TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import type { OpContext } from "../core/context.ts";
import { createManagers, type Managers } from "../managers.ts";
import type { Topics } from "../infra/topics.ts";
import { createStorages } from "../storages.ts";

const HOUR_MS = 3_600_000;

/** Managers of one more process over the rig's store. */
function process(rig: WorkerRig, topics: Topics): Managers {
  return createManagers({
    storages: createStorages({ engine: "sqlite", db: rig.db }),
    topics,
    clock: rig.clock,
    logger: rig.logger,
    metrics: rig.metrics,
    kinds: [TASK],
    itemRetentionMs: HOUR_MS,
    keyRetentionMs: 2 * HOUR_MS,
    outboxRetentionMs: HOUR_MS,
    markerRetentionMs: HOUR_MS,
  });
}

/** Of a producer that tells nobody. */
const SILENT: Topics = {
  publish: () => Promise.resolve(),
  subscribe: () => () => {},
  close: () => Promise.resolve(),
};

interface Fleet {
  readonly counts: { claims: number; empty: number };
  readonly startedMs: Map<string, number>;
}

/** Starts idle workers, each with topics of its own as another process has, and lets them listen. */
async function startFleet(rig: WorkerRig, hub: HintHub, size: number): Promise<Fleet> {
  const fleet: Fleet = { counts: { claims: 0, empty: 0 }, startedMs: new Map() };
  for (let n = 0; n < size; n++) {
    const claim: Managers["work"]["claim"] = async (rctx, options) => {
      const claimed = await rig.managers.work.claim(rctx, options);
      fleet.counts.claims++;
      if (claimed.length === 0) fleet.counts.empty++;
      return claimed;
    };
    const handle = (_ctx: OpContext, item: { id: string }) => void fleet.startedMs.set(item.id, rig.clock.monotonic());
    rig.start(handle, { topics: hub.topics(), work: { claim }, sweepMs: HOUR_MS });
  }
  await rig.clock.tick(60_000);
  return fleet;
}

async function enqueue(managers: Managers, ctx: OpContext): Promise<string> {
  const item = { kind: TASK.name, idempotencyKey: crypto.randomUUID(), payload: {} };
  return (await managers.work.enqueue(ctx, item)).id;
}

// A process that asks 250 times a second is no burst and not held back: there the workers alone keep the claims few.
for (
  const { processes, everyMs, most } of [
    { processes: 1, everyMs: 1, most: 125 },
    { processes: 1, everyMs: 0, most: 10 },
    { processes: 4, everyMs: 1, most: 250 },
    { processes: 4, everyMs: 4, most: null },
  ]
) {
  const how = everyMs === 0 ? "at once" : `every ${everyMs} ms`;
  Deno.test(`a thousand enqueues, ${processes} process(es), ${how}: few notifications and few claims over 20 idle workers`, () =>
    WorkerRig.with(async (rig) => {
      const hub = new HintHub(rig.clock);
      const ctx = await rig.org();
      const fleet = await startFleet(rig, hub, 20);
      const producers = Array.from({ length: processes }, () => process(rig, hub.topics()));
      Object.assign(fleet.counts, { claims: 0, empty: 0 });
      hub.sent = 0;
      const fromMs = rig.clock.monotonic();
      const ids: string[] = [];
      for (let n = 0; n < 1_000 / processes; n++) {
        ids.push(...await Promise.all(producers.map((managers) => enqueue(managers, ctx))));
        if (everyMs > 0) await rig.clock.tick(everyMs);
      }
      await rig.until("all ran", () => ids.every((id) => fleet.startedMs.has(id)));
      const tookMs = rig.clock.monotonic() - fromMs;
      await rig.clock.tick(500);
      // It was a notification for each enqueue and twenty claims for each notification.
      const { claims, empty } = fleet.counts;

      if (most !== null) assert.ok(hub.sent <= most, `${hub.sent} notifications`);
      assert.ok(claims <= 2_500 && empty <= 1_500, `${claims} claims, ${empty} of them empty`);
      assert.ok(tookMs <= 1_200, `all begun after ${tookMs} ms`);
    }));
}

Deno.test("a lone worker begins at its hint, however often hints came to nothing a second before", () =>
  WorkerRig.with(async (rig) => {
    const hub = new HintHub(rig.clock);
    const ctx = await rig.org();
    const fleet = await startFleet(rig, hub, 1);
    const producer = process(rig, hub.topics());
    const topics = hub.topics();
    for (let n = 0; n < 50; n++) {
      void topics.publish("WORK_AVAILABLE", { lane: "default" });
      await rig.clock.tick(20);
    }
    await rig.clock.tick(1_000);
    for (let n = 0; n < 20; n++) {
      const atMs = rig.clock.monotonic();
      const id = await enqueue(producer, ctx);
      await rig.clock.tick(400);
      assert.ok((fleet.startedMs.get(id) ?? Infinity) - atMs <= 1, `item ${n}`);
    }
  }));

Deno.test("no hint is lost: one that comes while a worker claims, or is quiet, is looked after in time", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const hub = new HintHub(rig.clock);
    let during: (() => Promise<unknown>) | null = null;
    const startedMs = new Map<string, number>();
    const claim: Managers["work"]["claim"] = async (rctx, options) => {
      const claimed = await rig.managers.work.claim(rctx, options);
      const act = during;
      during = null;
      await act?.();
      return claimed;
    };
    const handle = (_ctx: OpContext, item: { id: string }) => void startedMs.set(item.id, rig.clock.monotonic());
    rig.start(handle, { topics: hub.topics(), work: { claim }, sweepMs: HOUR_MS });
    await rig.clock.tick(60_000);
    const producer = process(rig, hub.topics());
    const stray = hub.topics();
    const ids: string[] = [];
    // Committed behind the claim's snapshot, told before its answer.
    during = async () => void ids.push(await enqueue(producer, ctx));
    void stray.publish("WORK_AVAILABLE", { lane: "default" });
    await rig.clock.tick(30);
    assert.equal(startedMs.size, 1, "the one that came while claiming");
    for (let n = 0; n < 12; n++) {
      void stray.publish("WORK_AVAILABLE", { lane: "default" });
      await rig.clock.tick(300);
    }
    void stray.publish("WORK_AVAILABLE", { lane: "default" });
    await rig.clock.tick(2);
    const atMs = rig.clock.monotonic();
    ids.push(await enqueue(producer, ctx));
    await rig.clock.tick(1);
    assert.equal(startedMs.size, 1, "it is quiet");
    await rig.clock.tick(500);
    assert.ok((startedMs.get(ids[1] ?? "") ?? Infinity) - atMs <= 400, "and looks at the end of it");
  }));

Deno.test("an idle worker that listens asks seldom; cut off it polls again; what nobody told of is found in both", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const hub = new HintHub(rig.clock);
    const fleet = await startFleet(rig, hub, 1);
    fleet.counts.claims = 0;
    await rig.clock.tick(300_000);
    assert.ok(fleet.counts.claims <= 16, `${fleet.counts.claims} claims in five minutes`);
    const untold = process(rig, SILENT);
    const found = async (withinMs: number) => {
      const id = await enqueue(untold, ctx);
      const atMs = rig.clock.monotonic();
      await rig.until("its start", () => fleet.startedMs.has(id));
      const tookMs = (fleet.startedMs.get(id) ?? Infinity) - atMs;
      assert.ok(tookMs <= withinMs, `${tookMs} ms`);
    };
    await found(30_000);
    await rig.clock.tick(300_000);
    hub.cut();
    await rig.clock.tick(1);
    await found(2_500);
    await rig.clock.tick(60_000);
    await found(1_250);
    hub.up = true;
    await rig.clock.tick(10_000);
    fleet.counts.claims = 0;
    await rig.clock.tick(300_000);
    assert.ok(fleet.counts.claims <= 20, `${fleet.counts.claims} claims in five minutes, listening again`);
  }));

Deno.test("a retry after a long run begins when it is due, though the worker's poll had slowed down meanwhile", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const startedMs: number[] = [];
    rig.start(async () => {
      startedMs.push(rig.clock.monotonic());
      if (startedMs.length > 1) return;
      await rig.clock.sleep(58_000);
      throw new Error("broke");
    }, { topics: new HintHub(rig.clock).topics(), sweepMs: HOUR_MS });
    await enqueue(rig.managers, ctx);
    await rig.clock.tick(120_000);
    const afterMs = (startedMs[1] ?? Infinity) - (startedMs[0] ?? 0) - 58_000;
    assert.ok(afterMs <= 2_300, `${afterMs} ms after it failed, to be retried within 1 s`);
  }));

Deno.test("an idle worker learns of starts in the future, of retries and of what a sweep took back in time", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const hub = new HintHub(rig.clock);
    const fleet = await startFleet(rig, hub, 1);
    const other = process(rig, hub.topics());
    const item = { kind: TASK.name, idempotencyKey: "later", payload: {} };
    const atMs = rig.clock.monotonic();
    const later = (await other.work.enqueue(ctx, item, { delayMs: 3_000 })).id;
    await rig.clock.tick(5_000);
    const startedMs = (fleet.startedMs.get(later) ?? Infinity) - atMs;
    assert.ok(startedMs >= 3_000 && startedMs <= 3_010, `after ${startedMs} ms`);
    await rig.clock.tick(300_000);
    const lost = await enqueue(process(rig, SILENT), ctx);
    const claim = { lane: "default", kinds: [TASK.name], worker: "dead", leaseMs: 1_000, limit: 1 };
    assert.equal((await rig.managers.work.claim(rig.rctx, claim)).length, 1);
    await rig.clock.tick(1_100);
    assert.equal(fleet.startedMs.has(lost), false);
    assert.equal((await other.work.requeueStale(ctx)).requeued, 1);
    await rig.clock.tick(100);
    assert.equal(fleet.startedMs.has(lost), true, "told by whoever took it back");
  }));
