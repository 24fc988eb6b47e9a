/**
 * What an idle fleet costs its database: workers that wait, over many orgs, counted in statements a minute.
 *
 * @module
 */
import { makeRig } from "./rig.ts";
import { table } from "./statistics.ts";
import type { BenchStores } from "./stores.ts";

/** How large a fleet, and how long it is watched. */
export interface FleetOptions {
  /** How many workers. */
  readonly workers: number;
  /** How many live orgs, none with work. */
  readonly orgs: number;
  /** How long, milliseconds. */
  readonly watchMs: number;
}

/** Starts an idle fleet on Postgres and counts what it commits, read from the server's own statistics. */
export async function measureFleet(stores: BenchStores, options: FleetOptions): Promise<string> {
  const open = await stores.open("postgres");
  try {
    const rig = await makeRig(open.store, open.topics);
    await open.sql(
      `insert into core.orgs (id, name, created_at)
       select gen_random_uuid(), 'idle ' || n, now() from generate_series(1, ${options.orgs}) n`,
    );
    await open.settle();
    const workers = Array.from({ length: options.workers }, () => rig.worker({ capacity: 10 }));
    for (const worker of workers) worker.start();
    // The first pass of each sweep is at once; what is measured is what goes on for ever.
    await new Promise((settled) => setTimeout(settled, 12_000));
    const before = await commits(open.sql);
    await new Promise((watched) => setTimeout(watched, options.watchMs));
    const aMinute = (await commits(open.sql) - before) / options.watchMs * 60_000;
    await Promise.all(workers.map((worker) => worker.drain()));
    return table(["idle fleet on Postgres, defaults", "transactions a minute", "for each worker"], [[
      `${options.workers} workers, ${options.orgs.toLocaleString("en")} orgs`,
      Math.round(aMinute).toLocaleString("en"),
      (aMinute / options.workers).toFixed(1),
    ]]);
  } finally {
    await open.close();
  }
}

async function commits(sql: (text: string) => Promise<Record<string, unknown>[]>): Promise<number> {
  // Sessions report within a second of going idle.
  await new Promise((reported) => setTimeout(reported, 1_500));
  const [row] = await sql("select xact_commit::float8 as n from pg_stat_database where datname = current_database()");
  return Number(row?.n);
}
