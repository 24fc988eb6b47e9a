/**
 * The Postgres statements of the outbox, named as the methods of `OutboxStorage`. Rows are written by the statements of
 * the core writes they belong to: see `rows.ts`.
 *
 * @module
 */

/** The lag counts up to this many rows: a count of millions is no news and costs a scan. */
export const LAG_LIMIT = 10_000;

/** The statements, on a given expression of database time. */
export interface OutboxSql {
  readonly readPending: string;
  readonly markDone: string;
  readonly purgeDone: string;
  readonly readLag: string;
}

/** Builds the statements; `now` is the SQL expression of database time. */
export function outboxSql(now: string): OutboxSql {
  return {
    // Plain reading, no lock: two relayers may take the same row, and handing it on twice is handing it on once. A lock
    // would have to outlive the statement, in a transaction nobody opens here.
    readPending: `
      select org_id, id, kind, payload, actor_id, request_id, traceparent, created_at,
        greatest(extract(epoch from ${now} - created_at), 0)::float8 as age_seconds
      from core.outbox
      where done_at is null
        and id not in (select e.value::uuid from jsonb_array_elements_text($2::text::jsonb) as e)
      order by created_at, id
      limit $1::int`,

    // Locked in key order first: two relayers marking the same rows wait for each other instead of deadlocking. Looked up
    // key by key and written by place, `few` keeping the join a loop (see work's statements): a plan from the time when
    // the table was small would read all of what is pending. So it would with `done_at is null` in the look-up.
    markDone: `
      with r as materialized (
        select * from jsonb_to_recordset($1::text::jsonb) as r (org_id uuid, id uuid)
      ), held as materialized (
        select h.*, 1 as few from (select * from r order by org_id, id) r cross join lateral (
          select o.ctid as place, o.done_at from core.outbox o where o.org_id = r.org_id and o.id = r.id
          for update
        ) h
      )
      update core.outbox o set done_at = ${now}
      from held where o.ctid = held.place and held.few = 1 and held.done_at is null`,

    // SKIP LOCKED: two purges at once take different rows.
    purgeDone: `
      with old as materialized (
        select ctid as place, 1 as few from core.outbox
        where done_at is not null and done_at < ${now} - $1::float8 * interval '1 millisecond'
        order by done_at
        limit $2::int
        for update skip locked
      )
      delete from core.outbox o using old where o.ctid = old.place and old.few = 1
      returning o.id`,

    // The oldest by the index's first entry; the count is bounded, and in index order lest it be a scan.
    readLag: `
      select (select count(*) from (
          select 1 from core.outbox where done_at is null order by created_at, id limit ${LAG_LIMIT}
        ) p)::int as pending,
        coalesce(greatest(extract(epoch from ${now} - (
          select created_at from core.outbox where done_at is null order by created_at, id limit 1
        )), 0), 0)::float8 as oldest_age_seconds`,
  };
}
