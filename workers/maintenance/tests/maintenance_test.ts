/**
 * The handler run twice, and a maintenance worker that cleans up after the dead.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  createWorkerRuntime,
  FakeClock,
  MemoryCache,
  newId,
  noMetrics,
  type OpContext,
  silentLogger,
  type WorkerRuntime,
} from "../../../mod.ts";
import { forTests, type TestContainer } from "../container.ts";
import { NOOP } from "../kind.ts";

const APP = { type: "WORKER", version: "maintenance@test" } as const;

async function service({ managers }: TestContainer): Promise<OpContext> {
  const rctx = managers.tenancy.requestContext(APP);
  const org = await managers.tenancy.createOrg(rctx, { name: "Łódź" });
  return await managers.tenancy.serviceContext(rctx, org.id);
}

function start(container: TestContainer, clock: FakeClock): WorkerRuntime {
  const { managers, topics, parts } = container;
  const worker = createWorkerRuntime({
    ...{ worker: "maintenance", app: APP, lane: "default", kinds: [NOOP.name], handlers: parts.handlers },
    ...{ managers, topics, clock, ping: () => Promise.resolve(), cache: new MemoryCache(clock) },
    ...{ logger: silentLogger, metrics: noMetrics, capacity: 1, leaseMs: 30_000, pollMs: 1_000 },
    ...{ heartbeatMs: 5_000, sweepMs: 10_000, drainGraceMs: 0 },
  });
  worker.start();
  return worker;
}

Deno.test("an item run twice is done once", async () => {
  const clock = new FakeClock();
  const container = await forTests({ clock });
  const ctx = await service(container);
  const { work, tenancy } = container.managers;
  await work.enqueue(ctx, { kind: NOOP.name, idempotencyKey: "probe", payload: {} });
  const options = { lane: "default", kinds: [NOOP.name], worker: "w", leaseMs: 30_000, limit: 1 };
  const [held] = await work.claim(tenancy.requestContext(APP), options);
  assert.ok(held);
  const [handler] = container.parts.handlers;
  const run = { signal: new AbortController().signal, attempt: 1, fence: 1, deadline: null };
  for (let times = 0; times < 2; times++) assert.equal(await handler?.handle(held.ctx, held.item, run), undefined);
  await work.complete(held.ctx, held.item);
  assert.equal((await work.read(ctx, held.item.id)).status, "done");
  await container.close();
});

Deno.test("it takes back what a dead worker held, of any lane, and completes its own kind", async () => {
  const clock = new FakeClock();
  const container = await forTests({ clock });
  const ctx = await service(container);
  const { work, tenancy } = container.managers;
  const item = { kind: NOOP.name, payload: {}, idempotencyKey: newId() };
  const other = await work.enqueue(ctx, { ...item, lane: "other" });
  const options = { lane: "other", kinds: [NOOP.name], worker: "dead", leaseMs: 1_000, limit: 1 };
  assert.equal((await work.claim(tenancy.requestContext(APP), options)).length, 1);
  const worker = start(container, clock);
  const mine = await work.enqueue(ctx, { ...item, idempotencyKey: newId() });
  await clock.tick(12_000);
  const taken = await work.read(ctx, other.id);
  assert.deepEqual([taken.status, taken.attempts, taken.expiries], ["queued", 1, 1]);
  assert.equal((await work.read(ctx, mine.id)).status, "done");
  const drained = worker.drain();
  await clock.tick(5_000);
  assert.deepEqual(await drained, { finished: 0, released: 0, left: 0 });
  await container.close();
});
