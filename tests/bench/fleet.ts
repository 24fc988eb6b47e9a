/**
 * What an idle fleet costs its database: workers that wait, over many orgs, counted in transactions a minute.
 *
 * @module
 */
import { CONTENDERS } from "./contenders.ts";
import { type Bench, Stage } from "./stage.ts";

const WORKERS = 20;
const ORGS = 10_000;
const WATCH_MS = 30_000;
// The first pass of each sweep is at once; what is measured is what goes on for ever.
const SETTLE_MS = 12_000;

/** What an idle fleet costs. */
export interface FleetFigures {
  readonly workers: number;
  readonly orgs: number;
  readonly transactionsPerMinute: number;
  /** Processor time of the fleet's one process, in hundredths of a core for each worker. */
  readonly cpuPercent: number;
}

/** Starts an idle fleet at the default settings, all in one process, and watches it. */
export async function measureFleet(bench: Bench, scale: number): Promise<FleetFigures> {
  const contender = CONTENDERS.find(({ id }) => id === "laneway");
  if (contender === undefined) throw new Error("Cannot measure a fleet without Laneway");
  const watchMs = Math.max(Math.round(WATCH_MS * Math.min(scale, 1)), 5_000);
  const stage = await Stage.open(contender, bench);
  try {
    await stage.query(
      `insert into core.orgs (id, name, created_at)
       select gen_random_uuid(), 'idle ' || n, now() from generate_series(1, ${ORGS}) n`,
    );
    await stage.vacuum();
    const fleet = await stage.spawn();
    for (let i = 0; i < WORKERS; i++) await fleet.ask("work", { expected: 1, handlerMs: 0 });
    await new Promise((settled) => setTimeout(settled, SETTLE_MS));
    const [before, beforeUse] = [await commits(stage), fleet.use()];
    await new Promise((watched) => setTimeout(watched, watchMs));
    const [after, afterUse] = [await commits(stage), fleet.use()];
    return {
      workers: WORKERS,
      orgs: ORGS,
      transactionsPerMinute: (after - before) / watchMs * 60_000,
      cpuPercent: (afterUse.cpuMs - beforeUse.cpuMs) / watchMs / WORKERS * 100,
    };
  } finally {
    await stage.close();
  }
}

async function commits(stage: Stage): Promise<number> {
  // Sessions report within a second of going idle.
  await new Promise((reported) => setTimeout(reported, 1_500));
  const rows = await stage.query(
    "select xact_commit::float8 as n from pg_stat_database where datname = current_database()",
  );
  return Number(rows[0]?.n);
}
