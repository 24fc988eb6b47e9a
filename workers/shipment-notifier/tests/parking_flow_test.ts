/**
 * Parking, in one process under the real loop: an endpoint goes down, its shipments park, it comes back, every one of
 * them is notified once, and one after the other.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  CHAINS,
  createWorkerRuntime,
  MemoryCache,
  type MetricName,
  noMetrics,
  type OpContext,
  silentLogger,
  type Store,
  systemClock,
  type WorkerRuntime,
} from "../../../mod.ts";
import { createTestDatabase } from "../../../tests/support/postgres.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { forTests, type TestContainer } from "../container.ts";
import { notifyShipmentKind } from "../kind.ts";
import { SHIPMENTS_CHAIN } from "../shipments/chain.ts";
import type { Shipment } from "../shipments/types.ts";
import { type Received, startTestReceiver } from "./receiver.ts";
import { member, newShipment, request } from "./world.ts";

const DOWN_AFTER = 3;
const SHIPMENTS = 12;

function runtimeOf(container: TestContainer, worker: string, gauges: Map<MetricName, number>): WorkerRuntime {
  const { managers, topics, handler, sweepSteps, shipments } = container;
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
    metrics: { ...noMetrics, set: (name, value) => void gauges.set(name, value) },
    capacity: 4,
    leaseMs: 30_000,
    pollMs: 20,
    heartbeatMs: 1_000,
    sweepMs: 100,
    drainGraceMs: 5_000,
    sweepSteps,
    countParked: (rctx) => shipments.countParked(rctx),
  });
}

async function withStore(engine: "sqlite" | "postgres", test: (store: Store | undefined) => Promise<void>) {
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
    name: `shipments of an endpoint that is down park, and are notified once each when it is back, on ${engine}`,
    fn: () => withStore(engine, downAndBack),
  });
}

async function downAndBack(store: Store | undefined): Promise<void> {
  const container = await forTests({
    kind: notifyShipmentKind({ baseMs: 100, capMs: 200 }),
    endpointPolicy: { downAfter: DOWN_AFTER, probeMs: 50, probeCapMs: 200, probeHoldMs: 1_000 },
    shipmentOptions: { stagger: { spacingMs: 50, spreadMs: 5_000 }, probeHoldMs: 100 },
    ...(store === undefined ? {} : { store }),
  });
  let up = false;
  const delivered: Received[] = [];
  const receiver = startTestReceiver(() => container.secret, (received) => {
    // Another org's endpoint on the same host is an endpoint of its own.
    if (received.path.endsWith("/well") || up) delivered.push(received);
    return new Response(null, { status: received.path.endsWith("/well") || up ? 204 : 500 });
  });
  const gauges = new Map<MetricName, number>();
  let workers = ["a", "b"].map((name) => runtimeOf(container, `test@${name}`, gauges));
  try {
    for (const worker of workers) worker.start();
    const [ctx, well] = [await member(container), await member(container)];
    const made = await createAll(container, ctx, receiver.url);
    const fine = await container.shipments.create(well, newShipment(`${receiver.url}/well`));
    await allAre(container, ctx, made, ({ parking }) => parking !== null);
    await waitFor("the gauge to tell", () => gauges.get("laneway_records_parked") === SHIPMENTS);
    const [parked] = await Promise.all(made.map(({ id }) => container.shipments.read(ctx, id)));
    assert.match(parked?.parking?.reason ?? "", /^Its endpoint 127\.0\.0\.1:\d+ is down after \d+ failures in a row/);
    assert.doesNotMatch(parked?.parking?.reason ?? "", /hooks/);
    await waitFor(
      "the other org's shipment to be marked",
      async () => (await container.shipments.read(well, fine.shipment.id)).status === "notified",
    );
    // The state outlives the workers that made it.
    await Promise.all(workers.map((worker) => worker.drain()));
    const met = receiver.received.length;
    workers = ["c", "d"].map((name) => runtimeOf(container, `test@${name}`, gauges));
    for (const worker of workers) worker.start();
    await waitFor("a probe", () => receiver.received.length > met);
    up = true;
    await allAre(container, ctx, made, ({ status }) => status === "notified");
    await checkNotifiedOnce(container, ctx, { made, delivered });
    await waitFor("the gauge to clear", () => gauges.get("laneway_records_parked") === 0);
    const service = await container.managers.tenancy.serviceContext(request(container), ctx.orgId);
    const host = new URL(receiver.url).host;
    assert.equal(await container.endpoints.read(service, host), null, "the endpoint is well again");
  } finally {
    await Promise.all(workers.map((worker) => worker.drain()));
    await receiver.stop();
    await container.close();
  }
}

async function createAll({ shipments }: TestContainer, ctx: OpContext, url: string): Promise<Shipment[]> {
  const made: Shipment[] = [];
  for (let i = 0; i < SHIPMENTS; i++) made.push((await shipments.create(ctx, newShipment(url))).shipment);
  return made;
}

async function allAre(
  { shipments }: TestContainer,
  ctx: OpContext,
  made: readonly Shipment[],
  holds: (now: Shipment) => boolean,
): Promise<void> {
  const seen = new Set<string>();
  // A probe is parked no longer for a moment: each is to be seen so once, not all at one time.
  await waitFor(`every shipment to be as ${holds}`, async () => {
    for (const { id } of made) if (holds(await shipments.read(ctx, id))) seen.add(id);
    return seen.size === made.length;
  }, { timeoutMs: 20_000 });
}

async function checkNotifiedOnce(
  { shipments, managers }: TestContainer,
  ctx: OpContext,
  { made, delivered }: { made: readonly Shipment[]; delivered: readonly Received[] },
): Promise<void> {
  const starts = new Set<number>();
  for (const { id, notificationId } of made) {
    const told = delivered.filter(({ shipmentId }) => shipmentId === id).map(({ webhookId }) => webhookId);
    assert.deepEqual(told, [notificationId], "once, under the id it always had");
    const now = await shipments.read(ctx, id);
    assert.notEqual(now.itemId, now.notificationId, "another item carried it");
    const item = await waitFor("its item to be done", async () => {
      const found = await managers.work.read(ctx, now.itemId);
      return found.status === "done" && found;
    });
    assert.equal(item.createdBy, ctx.userId, "for whoever created the shipment");
    assert.equal((await managers.work.read(ctx, notificationId)).status, "done", "items are never parked");
    // When it was resumed and, of several resumed together, how much later its turn was.
    starts.add(item.createdAt.getTime() + Number(item.payload.startMs ?? 0));
  }
  const events = await managers.audit.readEvents(ctx, { afterSeq: 0, limit: 1_000 });
  const marks = events.filter(({ kind }) => kind === "shipments.shipment.notified");
  assert.equal(marks.length, made.length);
  assert.ok(starts.size > made.length / 2, `they began at ${starts.size} times, not all at once`);
}
