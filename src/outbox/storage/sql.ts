/**
 * The Postgres statements of the outbox, named as the methods of `OutboxStorage`. Rows are written by the statements of
 * the core writes they belong to: see `rows.ts`.
 *
 * @module
 */

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

    // Locked in key order first: two relayers marking the same rows wait for each other instead of deadlocking.
    markDone: `
      with locked as (
        select o.org_id, o.id
        from core.outbox o
        join jsonb_to_recordset($1::text::jsonb) as r (org_id uuid, id uuid) on o.org_id = r.org_id and o.id = r.id
        where o.done_at is null
        order by o.org_id, o.id
        for update of o
      )
      update core.outbox o set done_at = ${now}
      from locked
      where o.org_id = locked.org_id and o.id = locked.id`,

    // SKIP LOCKED: two purges at once take different rows.
    purgeDone: `
      with old as (
        select org_id, id from core.outbox
        where done_at is not null and done_at < ${now} - $1::float8 * interval '1 millisecond'
        order by done_at
        limit $2::int
        for update skip locked
      )
      delete from core.outbox o using old
      where o.org_id = old.org_id and o.id = old.id
      returning o.id`,

    readLag: `
      select count(*)::int as pending,
        coalesce(greatest(extract(epoch from ${now} - min(created_at)), 0), 0)::float8 as oldest_age_seconds
      from core.outbox
      where done_at is null`,
  };
}
