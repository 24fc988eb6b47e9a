/**
 * The whole way in one process: create → outbox → relay → claim → effect → mark, under the real loop.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  createWorkerRuntime,
  MemoryCache,
  noMetrics,
  silentLogger,
  systemClock,
  type WorkerRuntime,
  type WorkerRuntimeOptions,
} from "laneway";
import { forTests, type TestContainer } from "../container.ts";
import { LANE } from "../sample_records/manager.ts";
import { claimOne, member, WatchedEffect } from "./world.ts";

function runtimeOf(
  { managers, topics, handler }: TestContainer,
  worker: string,
  options: Partial<WorkerRuntimeOptions> = {},
): WorkerRuntime {
  return createWorkerRuntime({
    worker,
    app: { type: "WORKER", version: "sample-worker@test" },
    lane: LANE,
    kinds: [handler.kind.name],
    handlers: [handler],
    managers,
    ping: () => Promise.resolve(),
    topics,
    cache: new MemoryCache(systemClock),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    capacity: 10,
    leaseMs: 30_000,
    pollMs: 20,
    heartbeatMs: 1_000,
    sweepMs: 100,
    drainGraceMs: 5_000,
    ...options,
  });
}

/** Looks until it holds. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 1_000; looks++) {
    if (await holds()) return;
    await systemClock.sleep(10);
  }
  assert.fail(`waited in vain for ${what}`);
}

Deno.test("every sample record is worked on by two workers and marked once, also when its effect fails at first", async () => {
  const effect: WatchedEffect = new WatchedEffect((_run, times) =>
    times === 1 && effect.made.length % 10 === 0 ? Promise.reject(new Error("busy")) : Promise.resolve()
  );
  const container = await forTests({ effect });
  const workers = ["a", "b"].map((name) => runtimeOf(container, `test@${name}`));
  try {
    for (const worker of workers) worker.start();
    const authors = [await member(container), await member(container)];
    const created = await Promise.all(Array.from({ length: 30 }, async (_, i) => {
      const ctx = authors[i % authors.length] ?? assert.fail();
      return { ctx, ...await container.sampleRecords.create(ctx, { reference: `№ ${i + 1}` }) };
    }));
    const read = () => Promise.all(created.map((one) => container.sampleRecords.read(one.ctx, one.sampleRecord.id)));
    await until("every mark", async () => (await read()).every(({ status }) => status === "done"));
    for (const worker of workers) await worker.drain();
    assert.deepEqual(new Set((await read()).map(({ version }) => version)), new Set([2]));
    assert.equal(new Set(effect.made.map(({ effectId }) => effectId)).size, 30);
  } finally {
    for (const worker of workers) await worker.drain();
    await container.close();
  }
});

Deno.test("creating again under the same id neither creates nor enqueues anything", async () => {
  const container = await forTests();
  try {
    const ctx = await member(container);
    const first = await container.sampleRecords.create(ctx, { reference: "№ 1" });
    const again = await container.sampleRecords.create(ctx, { id: first.sampleRecord.id, reference: "other" });
    assert.deepEqual([first.outcome, again.outcome], ["INSERTED", "EXISTS"]);
    assert.deepEqual(again.sampleRecord, first.sampleRecord);
    await claimOne(container);
  } finally {
    await container.close();
  }
});

Deno.test("a drain hands back what does not end in its grace, uncharged, for another worker to run", async () => {
  const begun = Promise.withResolvers<void>();
  const effect = new WatchedEffect(({ signal }, times) => {
    if (times > 1) return Promise.resolve();
    begun.resolve();
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const container = await forTests({ effect });
  try {
    const ctx = await member(container);
    const { sampleRecord } = await container.sampleRecords.create(ctx, { reference: "№ 1" });
    const first = runtimeOf(container, "test@first", { drainGraceMs: 0 });
    first.start();
    await begun.promise;
    await first.drain();
    assert.equal((await container.sampleRecords.read(ctx, sampleRecord.id)).status, "open");
    const { item } = await claimOne(container);
    assert.equal(item.attempts, 1, "the attempt that was cut short was not charged");
    await container.managers.work.release(ctx, item, "for the next worker");
    const second = runtimeOf(container, "test@second");
    second.start();
    await until("the mark", async () => (await container.sampleRecords.read(ctx, sampleRecord.id)).status === "done");
    await second.drain();
  } finally {
    await container.close();
  }
});
