/**
 * What the database says was done. A figure is printed only when this agrees with it.
 *
 * @module
 */
import type { Store } from "../../src/storages.ts";
import type { ContenderFamily } from "./contenders.ts";

/** What a contender's tables hold. */
export interface Counts {
  /** Items that are not finished. */
  readonly left: number;
  /** Finished items that are kept. */
  readonly finished: number;
  /** Items that failed for good. */
  readonly failed: number;
}

/** Runs one statement and returns its rows. */
export type Query = (sql: string) => Promise<readonly Record<string, unknown>[]>;

const PEERS: Readonly<Record<Exclude<ContenderFamily, "laneway">, string>> = {
  graphile: `select count(*) filter (where attempts < max_attempts) as left, 0 as finished,
    count(*) filter (where attempts >= max_attempts) as failed from graphile_worker._private_jobs`,
  pgboss:
    `select count(*) filter (where state < 'completed') as left, count(*) filter (where state = 'completed') as finished,
    count(*) filter (where state > 'completed') as failed from pgboss.job where name = 'noop'`,
  bullmq: `select count(*) filter (where state not in ('completed', 'failed')) as left,
    count(*) filter (where state = 'completed') as finished, count(*) filter (where state = 'failed') as failed
    from bullmq.job`,
};

/** Counts what a contender's database holds. */
export async function countFinished(query: Query, family: ContenderFamily): Promise<Counts> {
  if (family !== "laneway") return asCounts((await query(PEERS[family]))[0]);
  // Finished items may have a table of their own.
  const [history] = await query("select to_regclass('queue.work_history') is not null as apart");
  const counts = asCounts((await query(lanewayCounts("queue.work_items")))[0]);
  if (history?.apart !== true) return counts;
  const apart = asCounts(
    (await query("select 0 as left, count(*) as finished, 0 as failed from queue.work_history"))[0],
  );
  return { ...counts, finished: counts.finished + apart.finished };
}

/** Counts Laneway's items that were never claimed. */
export async function countUnclaimed(query: Query): Promise<number> {
  const [row] = await query("select count(*) as n from queue.work_items where claims = 0");
  return Number(row?.n);
}

/** Counts what an embedded store holds. */
export async function countInStore(store: Store): Promise<Counts> {
  if (store.engine !== "sqlite") throw new Error("Cannot count here: a Postgres store is counted by the bench itself");
  return asCounts(await store.db.read((session) => session.get(lanewayCounts("queue_work_items"))));
}

function lanewayCounts(items: string): string {
  return `select count(*) filter (where status in ('queued', 'claimed')) as left,
    count(*) filter (where status = 'done') as finished, count(*) filter (where status = 'failed') as failed from ${items}`;
}

function asCounts(row: Record<string, unknown> | undefined): Counts {
  return { left: Number(row?.left), finished: Number(row?.finished), failed: Number(row?.failed) };
}
