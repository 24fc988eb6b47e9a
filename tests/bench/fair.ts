/**
 * What claiming in turns of orgs does and costs: how long one org's ten items wait behind another's backlog, in either
 * order; and how fast no-op items of many orgs are drained.
 *
 * `deno run -A tests/bench/fair.ts [--only wait,drain] [--backlog N] [--items N] [--rounds N] [--capacity N] [--orders due,fair]`
 *
 * @module
 */
import { parseArgs } from "node:util";
import { CHAINS, FAIR_CHAIN } from "../../src/migrations.ts";
import type { ClaimOrder } from "../../src/work/types.ts";
import { type FlatDatabase, withFlatServer } from "./flat_database.ts";
import { loadRows } from "./flat_rows.ts";
import { BENCH_KIND, type Rig } from "./rig.ts";
import { medianAndRange, ratios, ratioText, rotated, table } from "./statistics.ts";

/** How much is measured. */
export interface FairOptions {
  readonly only: readonly string[];
  /** Items of one org that wait, before the ten of another come. */
  readonly backlog: number;
  /** Items over 50 orgs that are drained. */
  readonly items: number;
  readonly rounds: number;
  readonly capacity: number;
  /** Of the wait. */
  readonly orders: readonly ClaimOrder[];
}

/** The sizes of the target. */
export const FAIR_DEFAULTS: FairOptions = {
  only: ["wait", "drain"],
  backlog: 1_000_000,
  items: 50_000,
  rounds: 3,
  capacity: 100,
  orders: ["due", "fair"],
};

const TEN = 10;
const DRAINS = [
  { name: "due", order: "due", chains: CHAINS },
  { name: "due, with the index of fair", order: "due", chains: [...CHAINS, FAIR_CHAIN] },
  { name: "fair", order: "fair", chains: [...CHAINS, FAIR_CHAIN] },
] as const;

/** Runs what `only` names and returns the tables. Progress goes to `say`. */
export async function measureFair(options: FairOptions, say: (line: string) => void = () => {}): Promise<string> {
  return await withFlatServer(async (open) => {
    const parts: string[] = [];
    if (options.only.includes("wait")) {
      parts.push(await waits(() => open([...CHAINS, FAIR_CHAIN]), options, say));
    }
    if (options.only.includes("drain")) parts.push(await drains(open, options, say));
    return parts.join("\n\n");
  });
}

/** Milliseconds from the first enqueue of the ten to the last one's run, by order. */
async function waits(
  open: () => Promise<FlatDatabase>,
  { backlog, rounds, capacity, orders }: FairOptions,
  say: (line: string) => void,
): Promise<string> {
  const ms: Record<string, number[]> = {};
  const ran: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++) {
    for (const order of rotated(orders, round)) {
      const db = await open();
      try {
        const rig = await db.rig();
        await loadRows(db, [{ state: "waiting", count: backlog, orgs: 1 }]);
        const found = await waitOfTen(rig, order, capacity);
        (ms[order] ??= []).push(found.ms);
        (ran[order] ??= []).push(found.before);
        say(`  round ${round + 1}, ${order}: ${found.ms.toFixed(0)} ms, ${found.before} of the backlog ran meanwhile`);
      } finally {
        await db.close();
      }
    }
  }
  const title = `ten items behind ${backlog.toLocaleString("en")} of another org`;
  return table(
    [title, "all ten ran after, ms", "of the backlog ran meanwhile"],
    orders.map((order) => [order, medianAndRange(ms[order] ?? []), medianAndRange(ran[order] ?? [])]),
  );
}

/** The worker is at work on the backlog when the ten come. */
async function waitOfTen(rig: Rig, order: ClaimOrder, capacity: number): Promise<{ ms: number; before: number }> {
  const small = rig.contexts.toSorted((a, b) => a.orgId < b.orgId ? -1 : 1).at(-1);
  if (small === undefined) throw new Error("the rig has no orgs");
  let [others, left] = [0, TEN];
  const all = Promise.withResolvers<void>();
  const worker = rig.worker({
    capacity,
    claimOrder: order,
    handle: (ctx) => {
      if (ctx.orgId !== small.orgId) others++;
      else if (--left === 0) all.resolve();
    },
  });
  worker.start();
  try {
    while (others < 2_000) await new Promise((again) => setTimeout(again, 5));
    const before = others;
    const startMs = performance.now();
    const items = Array.from({ length: TEN }, (_, n) => ({
      ...{ kind: BENCH_KIND.name, idempotencyKey: crypto.randomUUID(), payload: { n } },
    }));
    await rig.managers.work.enqueueMany(small, items);
    await all.promise;
    return { ms: performance.now() - startMs, before: others - before };
  } finally {
    await worker.drain();
  }
}

type Open = (chains: typeof DRAINS[number]["chains"]) => Promise<FlatDatabase>;

async function drains(
  open: Open,
  { items, rounds, capacity }: FairOptions,
  say: (line: string) => void,
): Promise<string> {
  const rates: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++) {
    const found: Record<string, number> = {};
    for (const { name, order, chains } of rotated(DRAINS, round)) {
      const db = await open(chains);
      try {
        found[name] = await drain(db, order, { items, capacity });
        say(`  round ${round + 1}, ${name}: ${found[name].toFixed(0)}/s, claims ${told(db, "claim")}`);
      } finally {
        await db.close();
      }
    }
    for (const [name, rate] of Object.entries(found)) (rates[name] ??= []).push(rate);
  }
  const base = rates[DRAINS[0].name] ?? [];
  return table(
    [`${items.toLocaleString("en")} no-op items of 50 orgs`, "drained/s", "× due, within the round"],
    DRAINS.map(({ name }, i) => {
      const own = rates[name] ?? [];
      return [name, medianAndRange(own), i === 0 ? "" : ratioText(ratios(own, base))];
    }),
  );
}

function told(db: FlatDatabase, statement: string): string {
  const { calls, ms } = db.statements.of(statement);
  return `${calls} × ${(ms / Math.max(calls, 1)).toFixed(2)} ms`;
}

async function drain(
  db: FlatDatabase,
  order: ClaimOrder,
  { items, capacity }: { items: number; capacity: number },
): Promise<number> {
  const rig = await db.rig();
  await rig.fill(items);
  for (const name of ["work_items", "work_keys", "work_history"]) await db.sql(`vacuum analyze queue.${name}`);
  await db.sql("checkpoint");
  db.statements.reset();
  let ran = 0;
  const worker = rig.worker({ capacity, claimOrder: order, handle: () => void ran++ });
  const startMs = performance.now();
  worker.start();
  while (ran < items) await new Promise((again) => setTimeout(again, 2));
  for (let left = -1; left !== 0;) {
    const [row] = await db.sql("select count(*)::int as n from queue.work_items");
    left = Number(row?.n);
  }
  const rate = items / (performance.now() - startMs) * 1_000;
  await worker.drain();
  return rate;
}

function read(): FairOptions {
  const d = FAIR_DEFAULTS;
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      only: { type: "string", default: d.only.join() },
      backlog: { type: "string", default: String(d.backlog) },
      items: { type: "string", default: String(d.items) },
      rounds: { type: "string", default: String(d.rounds) },
      capacity: { type: "string", default: String(d.capacity) },
      orders: { type: "string", default: d.orders.join() },
    },
  });
  const options = {
    only: values.only.split(","),
    backlog: Number(values.backlog),
    items: Number(values.items),
    rounds: Number(values.rounds),
    capacity: Number(values.capacity),
    orders: values.orders.split(",").filter((order): order is ClaimOrder => order === "due" || order === "fair"),
  };
  const wrong = Object.entries(options).find(([, value]) => typeof value === "number" && !(value > 0));
  if (wrong === undefined) return options;
  console.error(`Cannot use ${wrong[0]}: a number above 0`);
  Deno.exit(2);
}

if (import.meta.main) console.log(`\n${await measureFair(read(), (line) => console.log(line))}`);
