/**
 * The bench: `deno task bench [--rounds N] [--scale F] [--only memory,sqlite,postgres,fleet,start]`.
 *
 * Every figure is the median of the rounds with its full range; what was done is counted in the database, and a mismatch
 * ends the bench instead of printing a rate.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { measureFleet } from "./fleet.ts";
import { makeRig } from "./rig.ts";
import { measureStart } from "./start.ts";
import { medianAndRange, quantile, table } from "./statistics.ts";
import { type BenchEngine, BenchStores } from "./stores.ts";

const NAMES: Readonly<Record<BenchEngine, string>> = {
  memory: "`:memory:`",
  sqlite: "SQLite file, `synchronous=FULL`",
  postgres: "Postgres, full durability",
};

interface DrainFigures {
  readonly drained: number[];
  readonly filled: number[];
}

async function drainOnce(stores: BenchStores, engine: BenchEngine, items: number, capacity: number) {
  const open = await stores.open(engine);
  try {
    const rig = await makeRig(open.store, open.topics);
    const fillMs = performance.now();
    await rig.fill(items);
    const filled = items / (performance.now() - fillMs) * 1000;
    await open.settle();
    let runs = 0;
    const { promise: allRun, resolve } = Promise.withResolvers<void>();
    const worker = rig.worker({ capacity, handle: () => ++runs === items ? resolve() : undefined });
    const startMs = performance.now();
    worker.start();
    await allRun;
    while (await open.count("done") < items) await new Promise((again) => setTimeout(again, 5));
    const drained = items / (performance.now() - startMs) * 1000;
    await worker.drain();
    if (runs !== items) throw new Error(`${runs} runs of ${items} items on ${engine}: the figure is void`);
    return { drained, filled };
  } finally {
    await open.close();
  }
}

/** Starts a steady producer and measures from enqueue to the handler's start, in one process over LISTEN. */
async function latencyOnce(stores: BenchStores, engine: BenchEngine, samples: number, perSecond: number) {
  const open = await stores.open(engine);
  try {
    const rig = await makeRig(open.store, open.topics);
    const startedAt = new Map<string, number>();
    const latencies: number[] = [];
    const worker = rig.worker({
      capacity: 10,
      handle: (_ctx, item) => void latencies.push(performance.now() - (startedAt.get(item.idempotencyKey) ?? NaN)),
    });
    worker.start();
    await new Promise((ready) => setTimeout(ready, 1_000));
    const [ctx] = rig.contexts;
    if (ctx === undefined) throw new Error("the rig has no org");
    for (let n = 0; n < samples; n++) {
      const next = performance.now() + 1000 / perSecond;
      const idempotencyKey = crypto.randomUUID();
      startedAt.set(idempotencyKey, performance.now());
      await rig.managers.work.enqueue(ctx, { kind: "BENCH_NOOP", idempotencyKey, payload: { n } });
      await new Promise((wait) => setTimeout(wait, Math.max(next - performance.now(), 0)));
    }
    while (await open.count("done") < samples) await new Promise((again) => setTimeout(again, 20));
    await worker.drain();
    if (latencies.length !== samples) {
      throw new Error(`${latencies.length} starts of ${samples} items: the figure is void`);
    }
    return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99), max: quantile(latencies, 1) };
  } finally {
    await open.close();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      rounds: { type: "string", default: "3" },
      scale: { type: "string", default: "1" },
      only: { type: "string", default: "memory,sqlite,postgres,fleet,start" },
    },
  });
  const rounds = Number(values.rounds);
  const scale = Number(values.scale);
  if (!Number.isInteger(rounds) || rounds < 1 || !(scale > 0)) {
    console.error(
      "Cannot use --rounds or --scale: a whole number of rounds from 1, a scale above 0 (1 is the full size)",
    );
    Deno.exit(2);
  }
  const only = values.only.split(",");
  const engines = (["memory", "sqlite", "postgres"] as const).filter((engine) => only.includes(engine));
  const stores = new BenchStores();
  try {
    console.log(await describeMachine());
    if (engines.includes("postgres")) console.log(`Postgres: ${await stores.describeServer()}`);
    if (engines.length > 0) console.log(`\n${await drainTable(stores, engines, rounds, scale)}`);
    const slow = engines.filter((engine) => engine !== "sqlite");
    if (slow.length > 0) console.log(`\n${await latencyTable(stores, slow, rounds, scale)}`);
    if (only.includes("fleet")) {
      const watchMs = Math.max(Math.round(30_000 * scale), 5_000);
      console.log(`\n${await measureFleet(stores, { workers: 20, orgs: 10_000, watchMs })}`);
    }
    if (only.includes("start")) console.log(`\n${await measureStart(rounds)}`);
  } finally {
    await stores.close();
  }
}

async function drainTable(
  stores: BenchStores,
  engines: readonly BenchEngine[],
  rounds: number,
  scale: number,
): Promise<string> {
  const settings = engines.flatMap((engine) => [[engine, 10], [engine, 1_000]] as const);
  const figures = new Map(settings.map((s) => [s, { drained: [], filled: [] } as DrainFigures]));
  // Interleaved and rotated: what else the machine does then hits every setting alike.
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < settings.length; i++) {
      const setting = settings[(i + round) % settings.length];
      const into = setting === undefined ? undefined : figures.get(setting);
      if (setting === undefined || into === undefined) continue;
      const [engine, capacity] = setting;
      const items = Math.round((capacity === 10 ? 10_000 : 40_000) * scale);
      const { drained, filled } = await drainOnce(stores, engine, items, capacity);
      into.drained.push(drained);
      into.filled.push(filled);
    }
  }
  const rows = [...figures].map(([[engine, capacity], { drained, filled }]) => [
    NAMES[engine],
    String(capacity),
    medianAndRange(drained),
    medianAndRange(filled),
  ]);
  return table(
    ["no-op items, one process", "capacity", "claim → handle → complete, items/s", "bulk enqueue, items/s"],
    rows,
  );
}

async function latencyTable(
  stores: BenchStores,
  engines: readonly BenchEngine[],
  rounds: number,
  scale: number,
): Promise<string> {
  const rows: string[][] = [];
  for (const engine of engines) {
    const figures = [];
    for (let round = 0; round < rounds; round++) {
      figures.push(await latencyOnce(stores, engine, Math.max(Math.round(500 * scale), 20), 50));
    }
    rows.push([
      NAMES[engine],
      medianAndRange(figures.map((f) => f.p50), " ms"),
      medianAndRange(figures.map((f) => f.p99), " ms"),
      medianAndRange(figures.map((f) => f.max), " ms"),
    ]);
  }
  return table(["enqueue → start at 50/s", "p50", "p99", "max"], rows);
}

async function describeMachine(): Promise<string> {
  const cpu = /model name\s*:\s*(.*)/.exec(await Deno.readTextFile("/proc/cpuinfo").catch(() => ""))?.[1] ?? "unknown";
  const memory = Math.round(Deno.systemMemoryInfo().total / 2 ** 30);
  const [load] = Deno.loadavg();
  return `Machine: ${navigator.hardwareConcurrency} × ${cpu}, ${memory} GiB, load ${load?.toFixed(1)} before; ` +
    `Deno ${Deno.version.deno}; ${new Date().toISOString().slice(0, 10)}`;
}

if (import.meta.main) await main();
