/**
 * The whole flow in one process: create → outbox → relay → claim → webhook → mark, under the real loop.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  CHAINS,
  createWorkerRuntime,
  MemoryCache,
  noMetrics,
  silentLogger,
  type Store,
  systemClock,
  type WorkerRuntime,
  type WorkerRuntimeOptions,
} from "../../../mod.ts";
import { createTestDatabase } from "../../../tests/support/postgres.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { forTests, type TestContainer } from "../container.ts";
import { notifyShipmentKind } from "../kind.ts";
import { SHIPMENTS_CHAIN } from "../shipments/chain.ts";
import { startTestReceiver } from "./receiver.ts";
import { member, newShipment } from "./world.ts";

const RETRY = { baseMs: 100, capMs: 200 };

function runtimeOf(
  { managers, topics, handler, sweepSteps, shipments }: TestContainer,
  worker: string,
  options: Partial<WorkerRuntimeOptions> = {},
): WorkerRuntime {
  return createWorkerRuntime({
    worker,
    app: { type: "WORKER", version: "shipment-notifier@test" },
    lane: "default",
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
    sweepSteps,
    countParked: (rctx) => shipments.countParked(rctx),
    ...options,
  });
}

async function onStores(test: (store: Store | undefined) => Promise<void>, engine: "sqlite" | "postgres") {
  if (engine === "sqlite") return await test(undefined);
  const db = await createTestDatabase([...CHAINS, SHIPMENTS_CHAIN]);
  try {
    await test({ engine: "postgres", databases: db.databases });
  } finally {
    await db.drop();
  }
}

for (const engine of ["sqlite", "postgres"] as const) {
  Deno.test({
    name:
      `every shipment is notified and marked once by two workers, whatever its receiver answers first, on ${engine}`,
    fn: () => onStores(notifyAll, engine),
  });
}

async function notifyAll(store: Store | undefined): Promise<void> {
  const kind = notifyShipmentKind(RETRY);
  // Some receivers here fail at random, none is down.
  const container = await forTests({
    kind,
    endpointPolicy: { downAfter: 100 },
    ...(store === undefined ? {} : { store }),
  });
  let nth = 0;
  const receiver = startTestReceiver(() => container.secret, (received, times) => {
    if (received.path.endsWith("/gone")) return new Response(null, { status: 410 });
    if (times > 1 || ++nth % 3 !== 0) return new Response(null, { status: 200 });
    return new Response(null, nth % 2 === 0 ? { status: 500 } : { status: 503, headers: { "retry-after": "1" } });
  });
  const workers = ["a", "b"].map((name) => runtimeOf(container, `test@${name}`));
  try {
    for (const worker of workers) worker.start();
    const authors = await Promise.all([member(container), member(container), member(container)]);
    const created = await Promise.all(Array.from({ length: 30 }, async (_, i) => {
      const ctx = authors[i % authors.length] ?? assert.fail();
      return { ctx, ...await container.shipments.create(ctx, newShipment(receiver.url)) };
    }));
    const closed = authors[0] ?? assert.fail();
    const gone = await container.shipments.create(closed, newShipment(`${receiver.url}/gone`));
    await waitFor("every shipment to be marked", async () => {
      const now = await Promise.all(created.map(({ ctx, shipment }) => container.shipments.read(ctx, shipment.id)));
      return now.every(({ status }) => status === "notified");
    });
    await waitFor(
      "the closed receiver's item to be a dead letter",
      async () => (await container.managers.work.read(closed, gone.shipment.notificationId)).status === "failed",
    );
    for (const { ctx, shipment } of created) {
      assert.equal((await container.shipments.read(ctx, shipment.id)).version, 2);
      assert.deepEqual(receiver.idsOf(shipment.id), [shipment.notificationId]);
      const item = await waitFor("its item to be done", async () => {
        const found = await container.managers.work.read(ctx, shipment.notificationId);
        return found.status === "done" && found;
      });
      assert.equal(item.createdBy, ctx.userId);
    }
    assert.equal((await container.shipments.read(closed, gone.shipment.id)).status, "created");
    assert.deepEqual(receiver.forged, []);
    const announced = await Promise.all(
      authors.map((ctx) => container.managers.audit.readEvents(ctx, { afterSeq: 0, limit: 100 })),
    );
    const marks = announced.flat().filter((event) => event.kind === "shipments.shipment.notified");
    assert.equal(new Set(marks.map((event) => (event.payload as { id: string }).id)).size, created.length);
    assert.equal(marks.length, created.length);
  } finally {
    await Promise.all(workers.map((worker) => worker.drain()));
    await receiver.stop();
    await container.close();
  }
}
