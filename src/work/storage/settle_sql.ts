/**
 * The writes of a claim's holder. Each carries the fence: org, id, token, and a lease that has not passed.
 *
 * @module
 */
import { EMPTY, FEW, KEPT_COLUMNS, KEPT_OF_ITEM } from "./columns.ts";

/**
 * Finds what the fence lets through, by its place, in order of ids. Only claimed rows have a lease (the table checks it), so
 * the status is not asked for: naming it would let the planner take the index of claimed rows, which its statistics call
 * empty, in place of the primary key. Rows are not locked here but by the write itself, which spares a record of the log
 * and repeats the fence on the row it locks; in this order all the same, as the loop over places is.
 */
function held(now: string): string {
  return `select r.*, h.place, 1 as few from (select * from r order by id, org_id) r cross join lateral (
        select w.ctid as place from queue.work_items w
        where w.org_id = r.org_id and w.id = r.id and w.claim_token = r.token and w.lease_expires_at > ${now}
        offset 0
      ) h`;
}

const fence = (now: string) =>
  `w.ctid = r.place and ${FEW("r")} and w.claim_token = r.token and w.lease_expires_at > ${now}`;

/** What completion deleted, into the history. */
const kept = (now: string) =>
  `kept as (
      insert into queue.work_history (${KEPT_COLUMNS}, finished_at) select ${KEPT_COLUMNS}, ${now} from written
    )`;

/** What was not written, and why; the rows that were are not told, as they are nearly all. */
const exceptions = (refused: string) =>
  `select r.n, case when held.n is not null then 'HELD' ${refused} else 'REFUSED' end as outcome
    from r left join held on held.n = r.n left join written on written.n = r.n where written.n is null`;

// Not `exists`, which is planned as a hash of the whole history.
const doneBefore = `when (select h.claim_token = r.token from queue.work_history h
        where h.org_id = r.org_id and h.id = r.id) then 'ALREADY'`;

/**
 * Completes: the rows leave `queue.work_items`, in the same statement for `queue.work_history`, or for good. What was not
 * held is looked for there: completed under just this token, it is a repeat whose first answer was lost. Arrays in place
 * of JSON, as this is what happens to nearly every item.
 */
export function complete(now: string, keep: boolean): string {
  return `with r as materialized (
      select * from unnest($1::text::uuid[], $2::text::uuid[], $3::text::uuid[])
        with ordinality as r(org_id, id, token, n)
    ), held as materialized (${held(now)}), written as (
      delete from queue.work_items w using held r where ${fence(now)} returning r.n${keep ? `, ${KEPT_OF_ITEM}` : ""}
    )${keep ? `, ${kept(now)}` : ""}
    ${exceptions(doneBefore)}`;
}

/**
 * The same for rows whose places are known (`$4`), in the order of the arrays. The whole fence is on the row that lies
 * there; tells only the numbers of what it did not write, which is then completed by key. Counting spares the join that
 * looks for them, nearly always in vain.
 */
export function completePlaced(now: string, keep: boolean): string {
  return `with r as materialized (
      select *, 1 as few from unnest($1::text::uuid[], $2::text::uuid[], $3::text::uuid[], $4::text::tid[])
        with ordinality as r(org_id, id, token, place, n)
    ), written as (
      delete from queue.work_items w using r
      where ${fence(now)} and w.org_id = r.org_id and w.id = r.id returning r.n${keep ? `, ${KEPT_OF_ITEM}` : ""}
    )${keep ? `, ${kept(now)}` : ""}
    select r.n from r
    where (select count(*) from written) < (select count(*) from r) and r.n not in (select n from written)`;
}

/** Dead-letters, retries and hands back; what is handed back at once, as it never ran to an end, keeps its place. A row dead-lettered under just this token is a repeat, as in `complete`. */
export function settle(now: string): string {
  const failedBefore = `when (select w.status = 'failed' and r.to_status = 'failed' and w.claim_token = r.token
        from queue.work_items w where w.org_id = r.org_id and w.id = r.id) then 'ALREADY'`;
  return `with r as materialized (
      select * from jsonb_to_recordset($1::text::jsonb) as r(n int, org_id uuid, id uuid, token uuid, to_status text,
        delay_ms float8, refund int, error text, note text, audit_id uuid, ran boolean)
    ), held as materialized (${held(now)}), written as (
      update queue.work_items w set
        status = r.to_status,
        ready = r.to_status = 'queued' and r.delay_ms <= 0,
        available_at = case when r.to_status = 'queued' and (r.ran or r.delay_ms > 0)
          then ${now} + r.delay_ms * interval '1 millisecond' else w.available_at end,
        claimed_by = null,
        lease_expires_at = null,
        claim_token = case when r.to_status = 'queued' then null else w.claim_token end,
        attempts = w.attempts - r.refund,
        expiries = case when r.ran then 0 else w.expiries end,
        last_error = coalesce(r.error, w.last_error),
        note = coalesce(r.note, w.note),
        audit_id = r.audit_id,
        updated_at = ${now},
        updated_by = ${EMPTY}
      from held r where ${fence(now)}
      returning r.n
    )
    ${exceptions(failedBefore)}`;
}

/** Sets leases to `$2` milliseconds from now. */
export function extendLeases(now: string): string {
  return `with r as materialized (
      select * from jsonb_to_recordset($1::text::jsonb) as r(n int, org_id uuid, id uuid, token uuid)
    ), held as materialized (${held(now)}), written as (
      update queue.work_items w set lease_expires_at = ${now} + $2::float8 * interval '1 millisecond',
        updated_at = ${now}, updated_by = ${EMPTY}
      from held r where ${fence(now)}
      returning r.n
    )
    ${exceptions("")}`;
}
