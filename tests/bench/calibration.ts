/**
 * What the server itself can do in this round, by pgbench: the same for every contender, and what a rate is told against.
 *
 * @module
 */
import type { BenchServer } from "./server.ts";

/** Calibration of one round. */
export interface CalibrationFigures {
  /** `select 1`, 10 clients. */
  readonly selectsPerSecond: number;
  /** One-row claim and one-row completion, two commits an item, 10 clients: items a second. */
  readonly oneRowPerSecond: number;
}

const ROWS = 60_000;

const TABLE = `create table items (
    id bigint primary key, status text not null default 'queued', priority smallint not null default 10,
    available_at timestamptz not null default now(), token uuid, lease timestamptz, payload jsonb not null default '{"n":1}');
  insert into items (id) select generate_series(1, ${ROWS});
  create index on items (priority, available_at, id) where status = 'queued'`;

const ONE_ROW = `with c as materialized (select id from items where status = 'queued'
    order by priority, available_at, id limit 1 for update skip locked)
  update items i set status = 'claimed', token = gen_random_uuid(), lease = now() + interval '30 s' from c
    where i.id = c.id returning i.id, i.token \\gset
update items set status = 'done', lease = null where id = :id and token = :token;
`;

/** Where pgbench is: on the PATH, or where Debian keeps it; null when it is nowhere. */
export async function findPgbench(): Promise<string | null> {
  const folders = [
    ...(Deno.env.get("PATH") ?? "").split(":"),
    ...[18, 17, 16, 15].map((n) => `/usr/lib/postgresql/${n}/bin`),
  ];
  for (const folder of folders) {
    const path = `${folder}/pgbench`;
    if (await Deno.stat(path).then((file) => file.isFile, () => false)) return path;
  }
  return null;
}

/** Runs pgbench twice, `seconds` each. */
export async function calibrate(pgbench: string, server: BenchServer, seconds: number): Promise<CalibrationFigures> {
  const database = await server.createDatabase({ family: "graphile" });
  const script = await Deno.makeTempFile({ prefix: "laneway-bench-", suffix: ".sql" });
  try {
    for (const statement of TABLE.split(";")) await database.query(statement);
    await database.vacuum();
    await Deno.writeTextFile(script, "select 1;\n");
    const selectsPerSecond = await run(pgbench, database.url, script, seconds);
    await Deno.writeTextFile(script, ONE_ROW);
    return { selectsPerSecond, oneRowPerSecond: await run(pgbench, database.url, script, seconds) };
  } finally {
    await Deno.remove(script);
    await database.drop();
  }
}

async function run(pgbench: string, url: string, script: string, seconds: number): Promise<number> {
  const { success, stdout, stderr } = await new Deno.Command(pgbench, {
    args: ["-n", "-c", "10", "-j", "1", "-M", "prepared", "-T", String(seconds), "-f", script, url],
    stdin: "null",
  }).output();
  const said = new TextDecoder().decode(stdout);
  const rate = /tps = ([\d.]+)/.exec(said)?.[1];
  if (!success || rate === undefined) {
    throw new Error(`pgbench failed: ${new TextDecoder().decode(stderr).trim().split("\n")[0]}`);
  }
  return Number(rate);
}
