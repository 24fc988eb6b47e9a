/**
 * Rows for the flat bench by the million: written past the managers, by SQL, as the storage would have left them. What
 * the tables look like is known in this file alone.
 *
 * @module
 */
import type { FlatDatabase } from "./flat_database.ts";

/** Rows to load: as if enqueued, and maybe finished, some time ago. */
export interface RowsToLoad {
  /** What has become of them. `future`: not due for a day. */
  readonly state: "waiting" | "future" | "done" | "failed";
  readonly count: number;
  /** Default 10; lower comes first. */
  readonly priority?: number;
  /** Over how many of the orgs, the first by id; default all. */
  readonly orgs?: number;
  /** The kind of the n-th row, SQL over `n` (from 1). Default the kind the bench's worker serves. */
  readonly kindSql?: string;
}

/** The table items wait in, and the one they are kept in once they are done. */
const WAITING = "queue.work_items";
const DONE = "queue.work_history";

/** Column → SQL over `n`, for each state. Every column without a default, and what differs from the default. */
function columns({ state, priority, kindSql, orgs }: RowsToLoad): Record<string, string> {
  const age = "now() - interval '1 hour' + n * interval '1 microsecond'";
  const empty = "'00000000-0000-0000-0000-000000000000'";
  const common = {
    org_id: `orgs[1 + n % ${orgs ?? "array_length(orgs, 1)"}]`,
    id: "gen_random_uuid()",
    created_at: age,
    created_by: empty,
    kind: kindSql ?? "'BENCH_NOOP'",
    idempotency_key: "'flat-' || gen_random_uuid()",
    payload: `'{"n": 1}'::jsonb`,
    lane: "'default'",
    priority: String(priority ?? 10),
    available_at: state === "future" ? `now() + interval '1 day' + n * interval '1 microsecond'` : age,
  };
  const claimed = { claim_token: "gen_random_uuid()", attempts: "1", claims: "1" };
  if (state === "done") return { ...common, ...claimed, finished_at: age, max_attempts: "3", weight: "'light'" };
  return {
    ...common,
    updated_at: age,
    updated_by: empty,
    status: state === "failed" ? "'failed'" : "'queued'",
    ready: String(state === "waiting"),
    ...(state === "failed" ? { ...claimed, last_error: "'broke'" } : {}),
  };
}

/**
 * Loads rows over the orgs that exist. Indexes are taken down meanwhile and built again, as for any large load; then the
 * tables are vacuumed and analyzed.
 */
export async function loadRows(
  db: FlatDatabase,
  loads: readonly RowsToLoad[],
  { vacuum = true }: { vacuum?: boolean } = {},
): Promise<void> {
  const many = loads.reduce((sum, load) => sum + load.count, 0) > 50_000;
  const indexes = many ? await takeIndexesDown(db) : [];
  for (const load of loads) {
    const given = columns(load);
    await db.sql(
      `with o as (select array_agg(id order by id) as orgs from core.orgs)
       insert into ${load.state === "done" ? DONE : WAITING} (${Object.keys(given).join(", ")})
       select ${Object.values(given).join(", ")} from o, generate_series(1, ${load.count}) n`,
    );
  }
  for (const index of indexes) await db.sql(index);
  if (!vacuum) return;
  for (const table of new Set([WAITING, DONE])) await db.sql(`vacuum analyze ${table}`);
}

async function takeIndexesDown(db: FlatDatabase): Promise<string[]> {
  const rows = await db.sql(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid
     where c.oid is null and i.indrelid in ('${WAITING}'::regclass, '${DONE}'::regclass)`,
  );
  for (const row of rows) await db.sql(`drop index ${row.name}`);
  return rows.map((row) => String(row.definition));
}
