/**
 * What an idle worker costs: a real worker process on Postgres, its processor time read from `/proc` and its statements
 * from `pg_stat_statements`, over a minute in which nothing happens.
 *
 * `deno run -A tests/bench/idle.ts [--workers 1,5] [--seconds 60] [--orgs 10000] [--statements]`
 *
 * @module
 */
import { parseArgs } from "node:util";
import { CHAINS } from "../../src/migrations.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { createTestDatabase, startPrivateServer, type TestDatabase } from "../support/postgres.ts";
import { medianAndRange, table } from "./statistics.ts";

/** How idleness is measured. */
export interface IdleOptions {
  /** How many worker processes share the database. */
  readonly workers: number;
  /** How many live orgs, none with work. */
  readonly orgs: number;
  /** How long it is watched. */
  readonly seconds: number;
}

/** What one watch saw. */
export interface IdleFigures {
  /** Of one core, percent, for each worker. */
  readonly cpu: number;
  /** For each worker and minute; transaction control not counted. */
  readonly statements: number;
  /** Resident, MiB, of the first worker. */
  readonly memory: number;
  /** Statements for each worker and minute, by text, most first. */
  readonly by: readonly { readonly text: string; readonly aMinute: number }[];
}

const BINARY = "dist/shipment-notifier";
const SOURCE = "workers/shipment-notifier/main.ts";
const ARGS = ["--http-port", "0", "--log-format", "json", "--lane", "idle"];
// The poll has slowed down to its end by then, and what runs at the start has run.
const SETTLE_MS = 45_000;
const TICKS_A_SECOND = 100;

/** Measures one idle worker, `rounds` times a minute, and returns the table. */
export async function measureIdle(rounds: number): Promise<string> {
  const figures: IdleFigures[] = [];
  for (let round = 0; round < rounds; round++) {
    figures.push(await watchIdle({ workers: 1, orgs: 10_000, seconds: 60 }));
  }
  return idleTable("one idle worker, 10,000 orgs", figures);
}

/** Starts workers on a server of their own, lets them settle, and watches them do nothing. */
export async function watchIdle(options: IdleOptions): Promise<IdleFigures> {
  const settings = { shared_preload_libraries: "pg_stat_statements", max_connections: "400" };
  const server = await startPrivateServer({ fsync: true, settings });
  try {
    const database = await createTestDatabase([...CHAINS, SHIPMENTS_CHAIN], { adminUrl: server.url() });
    try {
      return await watch(database, options);
    } finally {
      await database.drop();
    }
  } finally {
    await server.remove();
  }
}

async function watch(database: TestDatabase, { workers, orgs, seconds }: IdleOptions): Promise<IdleFigures> {
  await database.adminSql("create extension pg_stat_statements");
  await database.adminSql(
    `insert into core.orgs (id, name, created_at)
     select gen_random_uuid(), 'idle ' || n, now() from generate_series(1, ${orgs}) n`,
  );
  await database.adminSql("vacuum analyze");
  const children = await Promise.all(Array.from({ length: workers }, () => start(database)));
  try {
    await new Promise((settled) => setTimeout(settled, SETTLE_MS));
    await database.adminSql("select pg_stat_statements_reset()");
    const before = await Promise.all(children.map(cpuTicks));
    await new Promise((watched) => setTimeout(watched, seconds * 1_000));
    const after = await Promise.all(children.map(cpuTicks));
    const rows = await database.adminSql(
      `select query, sum(calls)::float8 as calls from pg_stat_statements s join pg_roles r on r.oid = s.userid
       where r.rolname like 'laneway%' and query !~* '^(begin|commit|rollback|select set_config)'
       group by query order by calls desc`,
    );
    const share = 60 / seconds / workers;
    const by = rows.map((row) => ({
      text: String(row.query).replaceAll(/\s+/g, " ").slice(0, 110),
      aMinute: Number(row.calls) * share,
    }));
    const ticks = after.reduce((sum, n, i) => sum + n - (before[i] ?? 0), 0);
    return {
      cpu: ticks / TICKS_A_SECOND / seconds / workers * 100,
      statements: by.reduce((sum, { aMinute }) => sum + aMinute, 0),
      memory: await residentMiB(children[0]),
      by,
    };
  } finally {
    for (const child of children) child.kill("SIGTERM");
    await Promise.all(children.map((child) => child.status));
  }
}

async function start(database: TestDatabase): Promise<Deno.ChildProcess> {
  const compiled = await Deno.stat(BINARY).then(() => true, () => false);
  const options = {
    env: {
      LANEWAY_DATABASE_URL: database.url("runtime"),
      LANEWAY_SYSTEM_DATABASE_URL: database.url("system"),
    },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  } as const;
  return compiled
    ? new Deno.Command(BINARY, { args: ARGS, ...options }).spawn()
    : new Deno.Command(Deno.execPath(), { args: ["run", "-A", "--no-check", SOURCE, ...ARGS], ...options }).spawn();
}

async function cpuTicks({ pid }: Deno.ChildProcess): Promise<number> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  // The name in brackets may hold spaces; user and system time are the 14th and 15th field.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

async function residentMiB(child: Deno.ChildProcess | undefined): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${child?.pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

function idleTable(title: string, figures: readonly IdleFigures[]): string {
  return table([title, "of a core", "statements a minute", "resident memory"], [[
    "each worker",
    medianAndRange(figures.map(({ cpu }) => cpu), " %"),
    medianAndRange(figures.map(({ statements }) => statements)),
    medianAndRange(figures.map(({ memory }) => memory), " MiB"),
  ]]);
}

if (import.meta.main) {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      workers: { type: "string", default: "1" },
      seconds: { type: "string", default: "60" },
      orgs: { type: "string", default: "10000" },
      statements: { type: "boolean", default: false },
    },
  });
  for (const workers of values.workers.split(",").map(Number)) {
    const figures = await watchIdle({ workers, orgs: Number(values.orgs), seconds: Number(values.seconds) });
    console.log(idleTable(`${workers} idle workers, ${values.orgs} orgs`, [figures]));
    if (!values.statements) continue;
    for (const { text, aMinute } of figures.by) console.log(`${aMinute.toFixed(1).padStart(7)}  ${text}`);
  }
}
