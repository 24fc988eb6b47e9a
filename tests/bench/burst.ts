/**
 * What a burst of enqueues costs an idle fleet: how many notifications, and how many claims that come back empty.
 *
 * `deno run -A tests/bench/burst.ts [--workers N] [--items N] [--latency]`
 *
 * @module
 */
import { parseArgs } from "node:util";
import { systemClock } from "../../src/core/clock.ts";
import { listenOn } from "../../src/db/listener.ts";
import { HINT_CHANNEL } from "../../src/infra/topics.ts";
import { PostgresTopics } from "../../src/infra/postgres_topics.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { MemoryCache } from "../../src/infra/memory_cache.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { createWorkerRuntime } from "../../src/runtime/worker.ts";
import { createStorages } from "../../src/storages.ts";
import { overlay } from "../support/overlay.ts";
import { type FlatDatabase, withFlatServer } from "./flat_database.ts";
import { BENCH_KIND } from "./rig.ts";
import { quantile, table } from "./statistics.ts";

/** How large a fleet, and how large a burst. */
export interface BurstOptions {
  readonly workers: number;
  readonly items: number;
}

const APP = { type: "WORKER", version: "bench@0" } as const;
const HOUR_MS = 3_600_000;
const SHAPES = ["one after the other", "20 at a time", "4 processes, one after the other each"] as const;

/** Counts of one burst. */
interface Counts {
  notifications: number;
  claims: number;
  empty: number;
}

/** Runs a burst of each shape over an idle fleet and returns the table. */
export async function measureBurst({ workers, items }: BurstOptions): Promise<string> {
  return await withFlatServer(async (open) => {
    const db = await open();
    const counts: Counts = { notifications: 0, claims: 0, empty: 0 };
    const fleet = await startFleet(db, workers, counts);
    const listener = await PostgresClient.open(db.systemUrl, {
      onNotify: (_channel, text) => text.includes("WORK_AVAILABLE") && counts.notifications++,
    });
    await listener.query(`listen ${HINT_CHANNEL}`);
    try {
      const rows: string[][] = [];
      for (const shape of SHAPES) {
        await quiet();
        Object.assign(counts, { notifications: 0, claims: 0, empty: 0 });
        const before = fleet.ran();
        const startMs = performance.now();
        await enqueueAs(shape, fleet.producers, items);
        const enqueuedMs = performance.now() - startMs;
        while (fleet.ran() - before < items) await new Promise((again) => setTimeout(again, 5));
        const tookMs = performance.now() - startMs;
        // What the burst's last hints set off belongs to it; polls of this second are counted too.
        await new Promise((after) => setTimeout(after, 1_000));
        rows.push([
          shape,
          (items / enqueuedMs * 1_000).toFixed(0),
          `${tookMs.toFixed(0)} ms`,
          ...[counts.notifications, counts.claims, counts.empty].map(String),
        ]);
      }
      const head = [`${items} single enqueues, ${workers} idle workers`, "enqueued/s", "all run within"];
      return table([...head, "notifications", "claims", "of them empty"], rows);
    } finally {
      await listener.close();
      await fleet.stop();
      await db.close();
    }
  }, { max_connections: "400" });
}

/** From enqueue to start with one worker, its producer on a connection of its own. */
export async function measureBurstLatency(rates: readonly number[], seconds: number): Promise<string> {
  return await withFlatServer(async (open) => {
    const db = await open();
    const counts: Counts = { notifications: 0, claims: 0, empty: 0 };
    const fleet = await startFleet(db, 1, counts);
    const rows: string[][] = [];
    try {
      for (const rate of rates) {
        await quiet();
        Object.assign(counts, { notifications: 0, claims: 0, empty: 0 });
        fleet.startedAt.clear();
        const latencies = fleet.latencies.splice(0, Infinity) && fleet.latencies;
        const [producer] = fleet.producers;
        const sending: Promise<void>[] = [];
        const startMs = performance.now();
        for (let n = 0; n < rate * seconds; n++) {
          await new Promise((next) => setTimeout(next, Math.max(startMs + n / rate * 1_000 - performance.now(), 0)));
          if (producer !== undefined) sending.push(producer.enqueue());
        }
        await Promise.all(sending);
        while (latencies.length < sending.length) await new Promise((again) => setTimeout(again, 5));
        rows.push([
          String(rate),
          ...[0.5, 0.99, 1].map((q) => quantile(latencies, q).toFixed(1)),
          ...[counts.claims, counts.empty].map((n) => (n / sending.length).toFixed(2)),
        ]);
      }
    } finally {
      await fleet.stop();
      await db.close();
    }
    return table(["single enqueues/s", "p50 ms", "p99 ms", "max ms", "claims an item", "of them empty"], rows);
  });
}

async function quiet(): Promise<void> {
  await new Promise((passed) => setTimeout(passed, 2_000));
}

interface Producer {
  enqueue(): Promise<void>;
}

async function startFleet(db: FlatDatabase, size: number, counts: Counts) {
  let ran = 0;
  const startedAt = new Map<string, number>();
  const latencies: number[] = [];
  const rig = await db.rig();
  const [ctx] = rig.contexts;
  if (ctx === undefined) throw new Error("the rig has no org");
  const members = Array.from({ length: size }, () => {
    const topics = topicsOf(db);
    const managers = managersOf(db, topics);
    const work = overlay(managers.work, {
      async claim(rctx, options) {
        const claimed = await managers.work.claim(rctx, options);
        counts.claims++;
        if (claimed.length === 0) counts.empty++;
        return claimed;
      },
    });
    const worker = createWorkerRuntime({
      worker: "bench",
      app: APP,
      lane: "default",
      kinds: [BENCH_KIND.name],
      handlers: [{
        kind: BENCH_KIND,
        handle: (_ctx, item) => {
          ran++;
          const at = startedAt.get(item.idempotencyKey);
          if (at !== undefined) latencies.push(performance.now() - at);
        },
      }],
      managers: { ...managers, work },
      ping: () => Promise.resolve(),
      topics,
      cache: new MemoryCache(systemClock),
      clock: systemClock,
      logger: silentLogger,
      metrics: noMetrics,
      capacity: 10,
      leaseMs: 30_000,
      pollMs: 1_000,
      heartbeatMs: 5_000,
      sweepMs: 10_000,
      drainGraceMs: 10_000,
    });
    worker.start();
    return { worker, topics };
  });
  // As other processes have it: hints of their own, on connections of their own.
  const senders = Array.from({ length: 4 }, () => topicsOf(db));
  const producers = senders.map((topics): Producer => {
    const managers = managersOf(db, topics);
    return {
      async enqueue() {
        const idempotencyKey = crypto.randomUUID();
        startedAt.set(idempotencyKey, performance.now());
        await managers.work.enqueue(ctx, { kind: BENCH_KIND.name, idempotencyKey, payload: { n: 1 } });
      },
    };
  });
  return {
    producers,
    startedAt,
    latencies,
    ran: () => ran,
    async stop() {
      await Promise.all(members.map(({ worker }) => worker.drain()));
      await Promise.all([...members.map(({ topics }) => topics), ...senders].map((topics) => topics.close()));
    },
  };
}

function topicsOf(db: FlatDatabase): PostgresTopics {
  return new PostgresTopics({
    run: (text, params) => db.databases.queue.system(text, params),
    listen: listenOn(db.systemUrl),
  });
}

function managersOf(db: FlatDatabase, topics: PostgresTopics): Managers {
  return createManagers({
    storages: createStorages({ engine: "postgres", databases: db.databases }),
    topics,
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [BENCH_KIND],
    itemRetentionMs: 168 * HOUR_MS,
    keyRetentionMs: 168 * HOUR_MS,
    outboxRetentionMs: 24 * HOUR_MS,
    markerRetentionMs: 24 * HOUR_MS,
  });
}

async function enqueueAs(shape: typeof SHAPES[number], producers: readonly Producer[], items: number): Promise<void> {
  const [first] = producers;
  if (first === undefined) throw new Error("there is no producer");
  const inTurn = async (producer: Producer, count: number) => {
    for (let n = 0; n < count; n++) await producer.enqueue();
  };
  switch (shape) {
    case "one after the other":
      return await inTurn(first, items);
    case "20 at a time":
      await Promise.all(Array.from({ length: 20 }, (_, i) => inTurn(first, share(items, 20, i))));
      return;
    case "4 processes, one after the other each":
      await Promise.all(producers.map((producer, i) => inTurn(producer, share(items, producers.length, i))));
  }
}

function share(items: number, among: number, i: number): number {
  return Math.floor(items * (i + 1) / among) - Math.floor(items * i / among);
}

if (import.meta.main) {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      workers: { type: "string", default: "20" },
      items: { type: "string", default: "1000" },
      latency: { type: "boolean", default: false },
    },
  });
  console.log(await measureBurst({ workers: Number(values.workers), items: Number(values.items) }));
  if (values.latency) console.log(`\n${await measureBurstLatency([20, 50, 200, 600], 5)}`);
}
