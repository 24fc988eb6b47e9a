/**
 * What the sweep does to items: takes back, fails, purges, counts.
 *
 * @module
 */
import { EMPTY, FEW, KEPT_COLUMNS, KEPT_OF_ITEM } from "./columns.ts";

/** Gauges count up to this many rows: a count of millions is no news and costs a scan (River #746). */
export const GAUGE_LIMIT = 10_000;

/** How many (lane, kind, priority) groups the oldest-age gauge visits. */
export const GAUGE_GROUPS = 1_000;

/** How many keys one purge looks at; the next one carries on behind them. */
export const KEYS_LOOKED_AT = 10_000;

/**
 * Repeats three rules of rules.ts: `isStale`, `isExhausted` and `retryDelay` (held to them by contract cases). Rows that
 * a late settle or another sweep holds at this moment are skipped, so a sweep never waits for a claim. At once means in its
 * own place: behind a backlog it would wait for all that came after it.
 */
export function requeueStale(now: string): string {
  const ceiling =
    `greatest(least($4::float8, $3::float8 * power(2::float8, least(greatest(w.attempts - 1, 0), 40))), $5::float8)`;
  return `with stale as materialized (
      select w.ctid as place, 1 as few, w.claim_token, w.attempts >= w.max_attempts as exhausted,
        case when w.attempts >= w.max_attempts or w.expiries = 0 then 0
          else round($5::float8 + (${ceiling} - $5::float8) * random()) end as delay_ms
      from queue.work_items w
      where w.status = 'claimed' and w.org_id = $1::uuid and w.lease_expires_at <= ${now}
        and current_setting('laneway.org_id', true) = $1::text
      order by w.lease_expires_at limit $2::int for update skip locked
    ), moved as (
      update queue.work_items w set
        status = case when s.exhausted then 'failed' else 'queued' end,
        ready = not s.exhausted and s.delay_ms = 0,
        available_at = case when s.exhausted or s.delay_ms = 0 then w.available_at
          else ${now} + s.delay_ms * interval '1 millisecond' end,
        audit_id = case when s.exhausted then gen_random_uuid() end,
        last_error = 'the lease of attempt ' || w.attempts || ' expired',
        claimed_by = null, claim_token = null, lease_expires_at = null,
        expiries = w.expiries + 1, updated_at = ${now}, updated_by = ${EMPTY}, host = null
      from stale s where w.ctid = s.place and ${FEW("s")} and w.claim_token = s.claim_token
      returning s.exhausted
    )
    select count(*) filter (where not exhausted)::int as requeued,
      count(*) filter (where exhausted)::int as dead_lettered from moved`;
}

export function failStaleOf(now: string): string {
  return `with stale as materialized (
      select w.ctid as place, 1 as few, w.claim_token from queue.work_items w
      where w.status = 'claimed' and w.lease_expires_at <= ${now}
        and w.org_id in (select value::uuid from jsonb_array_elements_text($1::text::jsonb))
      order by w.lease_expires_at limit $3::int for update skip locked
    ), moved as (
      update queue.work_items w set status = 'failed', claimed_by = null, claim_token = null, lease_expires_at = null,
        last_error = $2, updated_at = ${now}, updated_by = ${EMPTY}, host = null
      from stale s where w.ctid = s.place and ${FEW("s")} and w.claim_token = s.claim_token returning 1
    )
    select count(*)::int as failed from moved`;
}

/**
 * Finishes what hosts completed, oldest first, as `complete` does. Not before its age: the host may still be reading back
 * what became of a completion whose answer was lost, and it does not see the history.
 */
export function archiveDone(now: string): string {
  return `with done as materialized (
      select ctid as place, 1 as few from queue.work_items
      where status = 'done' and updated_at <= ${now} - $1::float8 * interval '1 millisecond'
      order by updated_at limit $2::int for update skip locked
    ), gone as (
      delete from queue.work_items w using done
      where w.ctid = done.place and ${FEW("done")} and w.status = 'done' returning ${KEPT_OF_ITEM}, w.updated_at
    ), kept as (
      insert into queue.work_history (${KEPT_COLUMNS}, finished_at) select ${KEPT_COLUMNS}, updated_at from gone where $3
    )
    select count(*)::int as archived from gone`;
}

/** By age of the last write, oldest first; a row that still waits for its audit entry is spared. */
export function purgeItems(now: string): string {
  const before = `${now} - $1::float8 * interval '1 millisecond'`;
  return `with done as materialized (
      select ctid as place, 1 as few from queue.work_history where finished_at <= ${before}
      order by finished_at limit $2::int for update skip locked
    ), failed as materialized (
      select ctid as place, 1 as few from queue.work_items
      where status = 'failed' and updated_at <= ${before} and audit_id is null
      order by updated_at limit greatest($2::int - (select count(*) from done), 0) for update skip locked
    ), gone_done as (
      delete from queue.work_history h using done where h.ctid = done.place and ${FEW("done")} returning 1
    ), gone_failed as (
      delete from queue.work_items w using failed
      where w.ctid = failed.place and ${FEW("failed")} and w.status = 'failed' and w.audit_id is null returning 1
    )
    select ((select count(*) from gone_done) + (select count(*) from gone_failed))::int as purged`;
}

/** By when they were stored, oldest first. */
export function purgeAttempts(now: string): string {
  return `with old as materialized (
      select ctid as place, 1 as few from queue.attempts where created_at <= ${now} - $1::float8 * interval '1 millisecond'
      order by created_at limit $2::int for update skip locked
    ), gone as (
      delete from queue.attempts a using old where a.ctid = old.place and ${FEW("old")} returning 1
    )
    select count(*)::int as purged from gone`;
}

/** Hosts are few, so their lists are read whole. */
export function dropHostOrgs(now: string): string {
  return `with ended as materialized (select value::uuid as id from jsonb_array_elements_text($1::text::jsonb)), moved as (
      update queue.hosts h set updated_at = ${now}, org_ids = array(
        select o.id from unnest(h.org_ids) with ordinality as o(id, n) where o.id not in (select id from ended) order by o.n)
      where h.org_ids && array(select id from ended) returning 1
    )
    select count(*)::int as changed from moved`;
}

/** Heartbeat and count of what each host holds, by the index of leases. */
export function readHosts(now: string): string {
  return `select h.name, h.enabled, extract(epoch from ${now} - h.last_heartbeat_at)::float8 as heartbeat_age_seconds,
      coalesce(c.in_flight, 0)::int as in_flight
    from queue.hosts h left join (
      select w.host, count(*) as in_flight from queue.work_items w
      where w.status = 'claimed' and w.lease_expires_at > ${now} and w.host is not null group by w.host
    ) c on c.host = h.name
    order by h.name limit $1::int`;
}

/**
 * A key stays while its item does, whatever its age. Each pass looks at a bounded piece of the old keys, in order, and
 * says where it ended: behind a backlog of items that outlive the retention of their keys, one that looks from the oldest
 * on would read all of it each time (0.7 s at 640,000). The item is asked for key by key: an anti-join is planned as a
 * scan of both tables.
 */
export function purgeKeys(now: string): string {
  return `with old as materialized (
      select k.ctid as place, k.created_at, k.org_id, k.item_id from queue.work_keys k
      where k.created_at <= ${now} - $1::float8 * interval '1 millisecond' and k.created_at >= $3::text::timestamptz
      order by k.created_at limit ${KEYS_LOOKED_AT}
    ), free as materialized (
      select place, created_at from old
      where (select 1 from queue.work_items w where w.org_id = old.org_id and w.id = old.item_id) is null
        and (select 1 from queue.work_history h where h.org_id = old.org_id and h.id = old.item_id) is null
      order by created_at limit $2::int
    ), held as materialized (
      select l.place, 1 as few from free cross join lateral (
        select k.ctid as place from queue.work_keys k where k.ctid = free.place for update skip locked
      ) l
    ), gone as (
      delete from queue.work_keys k using held where k.ctid = held.place and ${FEW("held")} returning 1
    )
    select (select count(*) from gone)::int as purged,
      case when (select count(*) from free) >= $2::int then (select max(created_at) from free)::text
        when (select count(*) from old) >= ${KEYS_LOOKED_AT} then (select max(created_at) from old)::text
        else '-infinity' end as looked_until`;
}

/**
 * The oldest due item without a scan of the backlog: hops over the claim's index from one (lane, kind, priority) to the
 * next, whose first entry is its oldest. Counts go in index order: without one the planner scans the table for them.
 */
export function readGauges(now: string): string {
  const due = "from queue.work_items where status = 'queued' and ready";
  const order = "order by lane, kind, priority, available_at limit 1";
  return `with recursive heads as (
      (select lane, kind, priority, available_at, 1 as n ${due} ${order})
      union all
      select next.*, heads.n + 1 from heads cross join lateral (
        select lane, kind, priority, available_at ${due}
          and (lane, kind, priority) > (heads.lane, heads.kind, heads.priority) ${order}
      ) next where heads.n < ${GAUGE_GROUPS}
    )
    select (select count(*) from (
        select 1 ${due} order by lane, kind, priority, available_at, id limit ${GAUGE_LIMIT}) q)::int as queued,
      (select count(*) from (
        select 1 from queue.work_items where status = 'failed' order by updated_at limit ${GAUGE_LIMIT}) f)::int as failed,
      coalesce(greatest(extract(epoch from ${now} - (select min(available_at) from heads)), 0), 0)::float8
        as oldest_age_seconds`;
}

/**
 * Compare-and-set: one caller an interval moves a step's time on; a time from before the server's clock was set back does
 * not count. What is not to be taken is left out before the insert, so that a fleet that looks writes nothing; in name
 * order, so that two takers never wait for each other in a circle.
 */
export function takeSweepSteps(now: string): string {
  const free = (alias: string) =>
    `(${alias}.last_run_at <= ${now} - $2::float8 * interval '1 millisecond'
      or ${alias}.last_run_at > ${now} + $2::float8 * interval '1 millisecond')`;
  return `insert into queue.sweep_steps as s (step, last_run_at)
    select asked.step, ${now} from jsonb_array_elements_text($1::text::jsonb) as asked(step)
    where not exists (select 1 from queue.sweep_steps t where t.step = asked.step and not ${free("t")})
    order by asked.step
    on conflict (step) do update set last_run_at = excluded.last_run_at where ${free("s")}
    returning step`;
}
