/**
 * Whether cost stays flat: a claim over tables of every unfortunate shape against a claim over a table that holds only
 * the rows to claim; work at a steady rate under a pinned snapshot; a claim after long churn.
 *
 * `deno run -A tests/bench/flat.ts [--only waiting,future,finished,absent,inflight,pinned,churn] [--scale F]
 * [--reps N] [--seconds S] [--churn-seconds S] [--per-second N] [--capacity N]`
 *
 * @module
 */
import { parseArgs } from "node:util";
import { type ClaimCost, measureClaim } from "./flat_claim.ts";
import { type FlatDatabase, withFlatServer } from "./flat_database.ts";
import { holdRate, type Window } from "./flat_hold.ts";
import { loadRows, type RowsToLoad } from "./flat_rows.ts";
import { BENCH_KIND } from "./rig.ts";
import { table } from "./statistics.ts";

/** What is measured, and how much of it. */
export interface FlatOptions {
  readonly only: readonly string[];
  /** Of the row counts; 1 is the full size (5 million). */
  readonly scale: number;
  readonly reps: number;
  /** How long the snapshot is pinned. */
  readonly seconds: number;
  readonly churnSeconds: number;
  readonly perSecond: number;
  readonly capacity: number;
}

/** The defaults: the sizes of the targets, the times of a bench that is run by hand. */
export const FLAT_DEFAULTS: FlatOptions = {
  only: ["waiting", "future", "finished", "absent", "inflight", "pinned", "churn"],
  scale: 1,
  reps: 15,
  seconds: 600,
  churnSeconds: 3_600,
  perSecond: 1_000,
  capacity: 100,
};

interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly loads: readonly RowsToLoad[];
  /** Kinds the worker serves; default the bench's one. */
  readonly kinds?: readonly string[];
  /** Rows other workers hold. */
  readonly inFlight?: number;
}

// Enough for the claims of 100 that are measured; what is claimed is handed back.
const TO_CLAIM: RowsToLoad = { state: "waiting", count: 1_000 };
const KINDS = Array.from({ length: 20 }, (_, n) => `FLAT_KIND_${n}`);

function scenarios(scale: number): Scenario[] {
  const of = (count: number) => Math.max(Math.round(count * scale), 1);
  return [
    { name: "waiting", title: "waiting rows", loads: [{ state: "waiting", count: of(5_000_000) }] },
    {
      name: "future",
      title: "future rows of higher priority",
      loads: [{ state: "future", count: of(1_000_000), priority: 1 }, TO_CLAIM],
    },
    {
      name: "finished",
      title: "done rows and dead letters",
      loads: [{ state: "done", count: of(5_000_000) }, { state: "failed", count: of(100_000) }, TO_CLAIM],
    },
    {
      name: "absent",
      title: "waiting rows of 20 kinds, none of them served",
      loads: [{ state: "waiting", count: of(1_000_000), kindSql: `'FLAT_KIND_' || n % 20` }],
    },
    {
      name: "absent",
      title: "waiting rows of 19 kinds, 20 served, one absent",
      loads: [{ state: "waiting", count: of(1_000_000), kindSql: `'FLAT_KIND_' || n % 19` }],
      kinds: KINDS,
    },
    { name: "inflight", title: "rows in flight at the head", loads: [TO_CLAIM], inFlight: of(2_000) },
  ];
}

/** Runs what `only` names and returns the tables. Progress goes to `say`. */
export async function measureFlat(options: FlatOptions, say: (line: string) => void = () => {}): Promise<string> {
  return await withFlatServer(async (open) => {
    const parts = [];
    const wanted = scenarios(options.scale).filter(({ name }) => options.only.includes(name));
    if (wanted.length > 0) parts.push(await claimTable(open, wanted, { reps: options.reps, say }));
    if (options.only.includes("pinned")) parts.push(await pinnedTable(open, options, say));
    if (options.only.includes("churn")) parts.push(await churnTable(open, options, say));
    return parts.join("\n\n");
  });
}

type Open = () => Promise<FlatDatabase>;

interface Costs {
  readonly one: ClaimCost;
  readonly hundred: ClaimCost;
}

async function claimTable(
  open: Open,
  wanted: readonly Scenario[],
  { reps, say }: { reps: number; say: (line: string) => void },
): Promise<string> {
  const rows: string[][] = [];
  const bases = new Map<string, Costs>();
  for (const scenario of wanted) {
    const kinds = scenario.kinds ?? [BENCH_KIND.name];
    const key = kinds.join();
    const base = bases.get(key) ?? await costs(open, baseOf(scenario), reps);
    bases.set(key, base);
    const cost = await costs(open, scenario, reps);
    const sizes = [...scenario.loads.map(({ count }) => count), scenario.inFlight ?? 0].filter((n) => n > 0);
    rows.push([`${scenario.title} (${sizes.map((n) => n.toLocaleString("en")).join(" + ")})`, ...cells(cost, base)]);
    say(rows.at(-1)?.join(" | ") ?? "");
    say(`  plan: ${cost.hundred.nodes.join(" > ")}`);
  }
  return table(["claim over", "1 row, ms (× bare)", "buffers", "100 rows, ms (× bare)", "buffers"], rows);
}

/** The same kinds over a table that holds just rows to claim. */
function baseOf({ kinds }: Scenario): Scenario {
  const load = kinds === undefined ? TO_CLAIM : { ...TO_CLAIM, kindSql: `'FLAT_KIND_' || n % 20` };
  return { name: "base", title: "base", loads: [load], ...(kinds === undefined ? {} : { kinds }) };
}

async function costs(open: Open, scenario: Scenario, reps: number): Promise<Costs> {
  const db = await open();
  try {
    const rig = await db.rig();
    if (scenario.inFlight !== undefined) await holdInFlight(db, scenario.inFlight);
    await loadRows(db, scenario.loads);
    void rig;
    const kinds = scenario.kinds ?? [BENCH_KIND.name];
    return {
      one: await measureClaim(db.systemUrl, { limit: 1, kinds, reps }),
      hundred: await measureClaim(db.systemUrl, { limit: 100, kinds, reps }),
    };
  } finally {
    await db.close();
  }
}

/** Rows enqueued first and claimed by the storage itself, so that they stand wherever it leaves them. */
async function holdInFlight(db: FlatDatabase, count: number): Promise<void> {
  const rig = await db.rig();
  await loadRows(db, [{ state: "waiting", count, priority: 1 }]);
  const rctx = rig.managers.tenancy.requestContext({ type: "WORKER", version: "bench@0" });
  for (let held = 0; held < count;) {
    const claimed = await rig.managers.work.claim(rctx, {
      lane: "default",
      kinds: [BENCH_KIND.name],
      worker: "other",
      leaseMs: 3_600_000,
      limit: Math.min(count - held, 100),
    });
    if (claimed.length === 0) throw new Error(`${held} of ${count} rows could be claimed: the figure is void`);
    held += claimed.length;
  }
}

function cells(cost: Costs, base: Costs): string[] {
  return ([cost.one, cost.hundred] as const).flatMap((c, i) => {
    const b = i === 0 ? base.one : base.hundred;
    const short = c.rows === b.rows ? "" : `, ${c.rows} rows`;
    return [`${c.ms.toFixed(2)} (${(c.ms / b.ms).toFixed(2)} ×${short})`, `${c.buffers} (${b.buffers} bare)`];
  });
}

async function pinnedTable(open: Open, options: FlatOptions, say: (line: string) => void): Promise<string> {
  const { seconds, perSecond, capacity } = options;
  const run = async (pinned: boolean, runSeconds: number) => {
    const db = await open();
    try {
      say(pinned ? "a snapshot is pinned" : "no snapshot is pinned");
      const shape = { perSecond, capacity, seconds: runSeconds, windowS: 10, pinned };
      return await holdRate(db, shape, (w) => say(`  ${windowCells(w).join(" | ")}`));
    } finally {
      await db.close();
    }
  };
  const free = (await run(false, Math.min(30, seconds))).map((w) => ["no", ...windowCells(w)]);
  const pinned = (await run(true, seconds)).map((w) => ["yes", ...windowCells(w)]);
  return table(["snapshot pinned", ...WINDOW_HEAD], [...free, ...pinned]);
}

const WINDOW_HEAD = ["at, s", "produced/s", "consumed/s", "backlog", "claims", "claim, ms", "settle, ms"];

function windowCells(w: Window): string[] {
  return [
    String(w.atS),
    w.producedPerS.toFixed(0),
    w.consumedPerS.toFixed(0),
    String(w.backlog),
    String(w.claims),
    w.claimMs.toFixed(2),
    w.settleMs.toFixed(2),
  ];
}

async function churnTable(open: Open, options: FlatOptions, say: (line: string) => void): Promise<string> {
  const { reps, churnSeconds, perSecond, capacity } = options;
  const db = await open();
  try {
    const shape = { perSecond, capacity, seconds: churnSeconds, windowS: 60, pinned: false };
    const windows = await holdRate(db, shape, (w) => say(`  ${windowCells(w).join(" | ")}`));
    // No vacuum by hand here: what a claim meets after churn is what autovacuum has left.
    await loadRows(db, [TO_CLAIM], { vacuum: false });
    const kinds = [BENCH_KIND.name];
    const cost: Costs = {
      one: await measureClaim(db.systemUrl, { limit: 1, kinds, reps }),
      hundred: await measureClaim(db.systemUrl, { limit: 100, kinds, reps }),
    };
    const base = await costs(open, baseOf({ name: "", title: "", loads: [] }), reps);
    const items = windows.reduce((sum, w) => sum + w.consumedPerS * shape.windowS, 0);
    const title = `after ${Math.round(churnSeconds / 60)} min of churn (${
      Math.round(items).toLocaleString("en")
    } items)`;
    return table(["claim over", "1 row, ms (× bare)", "buffers", "100 rows, ms (× bare)", "buffers"], [
      [title, ...cells(cost, base)],
    ]);
  } finally {
    await db.close();
  }
}

function read(): FlatOptions {
  const d = FLAT_DEFAULTS;
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      only: { type: "string", default: d.only.join() },
      scale: { type: "string", default: String(d.scale) },
      reps: { type: "string", default: String(d.reps) },
      seconds: { type: "string", default: String(d.seconds) },
      "churn-seconds": { type: "string", default: String(d.churnSeconds) },
      "per-second": { type: "string", default: String(d.perSecond) },
      capacity: { type: "string", default: String(d.capacity) },
    },
  });
  const options = {
    only: values.only.split(","),
    scale: Number(values.scale),
    reps: Number(values.reps),
    seconds: Number(values.seconds),
    churnSeconds: Number(values["churn-seconds"]),
    perSecond: Number(values["per-second"]),
    capacity: Number(values.capacity),
  };
  const wrong = Object.entries(options).find(([, value]) => typeof value === "number" && !(value > 0));
  if (wrong === undefined) return options;
  console.error(`Cannot use ${wrong[0]}: a number above 0`);
  Deno.exit(2);
}

if (import.meta.main) console.log(`\n${await measureFlat(read(), (line) => console.log(line))}`);
