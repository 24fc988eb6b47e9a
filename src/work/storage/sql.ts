/**
 * The statements of `PostgresWorkStorage`, named as its methods. `now` is the SQL expression of database time: `now()`,
 * or in tests one that can be shifted.
 *
 * Batches travel as one JSON text parameter, cast through text (`$1::text::jsonb`) so that the driver does not encode it
 * a second time. Every batch locks its rows in key order, so two of them can never wait for each other in a circle.
 *
 * Rows that were found and locked are written by their place (`ctid`): a join on the key is planned from statistics, and
 * a queue's are always wrong (taken when nothing was claimed, or before the table filled), which made it scan the whole
 * table or all claims for each row: 4,700 items a second against 12,000. Where another write came between the
 * statement's snapshot and its lock, the place is not found; `settle` and `extendLeases` then say `HELD` and are run
 * again for that row, the others leave it to the next pass. `FEW` keeps such a join a loop over places.
 *
 * @module
 */

/** Gauges count up to this many rows: a count of millions is no news and costs a scan (River #746). */
export const GAUGE_LIMIT = 10_000;

/** How many (lane, kind, priority) groups the oldest-age gauge visits. */
const GAUGE_GROUPS = 1_000;

/** How many keys one purge looks at; the next one carries on behind them. */
export const KEYS_LOOKED_AT = 10_000;

/**
 * Always true of rows that select `1 as few`. The planner takes it for one row in 200, and so joins by place row by row,
 * whatever it believes of the table. Without it a plan made while the table was small (they are cached), and one for a
 * limit it does not know, read the whole table for each batch: a hash join over a sequential scan.
 */
const FEW = (rows: string) => `${rows}.few = 1`;

const COLUMNS = `org_id, id, created_at, updated_at, created_by, updated_by, kind, target_id, idempotency_key, payload,
  lane, status, priority, weight, host_preference, available_at, claimed_by, claim_token, lease_expires_at, attempts,
  max_attempts, claims, expiries, last_error, note, audit_id, request_id, traceparent`;

const ITEM_COLUMNS = COLUMNS.split(",").map((column) => `w.${column.trim()}`).join(", ");

const EMPTY = "'00000000-0000-0000-0000-000000000000'::uuid";

/** The statements, over the given expression of database time. */
export interface WorkSql {
  readonly createItems: string;
  readonly readItem: string;
  readonly readItemByKey: string;
  readonly claimOneKind: string;
  readonly claimKinds: string;
  readonly readClaimed: string;
  readonly settle: string;
  readonly extendLeases: string;
  readonly readClaims: string;
  readonly promote: string;
  readonly requeueStale: string;
  readonly orgsWithStale: string;
  readonly failStaleOf: string;
  readonly readUnaudited: string;
  readonly clearAudit: string;
  readonly purgeItems: string;
  readonly purgeKeys: string;
  readonly readGauges: string;
  readonly takeSweepSteps: string;
}

/** Builds the statements. */
export function workSql(now: string): WorkSql {
  return {
    createItems: createItems(now),
    // Tenant statements repeat the setting: on a connection that lost its unit they see nothing.
    readItem: `select ${ITEM_COLUMNS} from queue.work_items w
      where w.org_id = $1::uuid and w.id = $2::uuid and current_setting('laneway.org_id', true) = $1::text`,
    readItemByKey: `select k.item_id as holder_id, ${ITEM_COLUMNS} from queue.work_keys k
      left join queue.work_items w on w.org_id = k.org_id and w.id = k.item_id
      where k.org_id = $1::uuid and k.key = $2 and current_setting('laneway.org_id', true) = $1::text`,
    claimOneKind: claim(now, dueOfOneKind(now)),
    claimKinds: claim(now, dueOfKinds(now)),
    readClaimed: `select ${ITEM_COLUMNS} from queue.work_items w where w.status = 'claimed' and w.claim_token = $1::uuid
      order by w.priority, w.available_at, w.id`,
    settle: settle(now),
    extendLeases: extendLeases(now),
    readClaims:
      `select w.org_id, w.id, w.status, w.claim_token, coalesce(w.lease_expires_at > ${now}, false) as lease_live
      from jsonb_to_recordset($1::text::jsonb) as r(org_id uuid, id uuid) cross join lateral (
        select * from queue.work_items i where i.org_id = r.org_id and i.id = r.id offset 0
      ) w`,
    promote: promote(now),
    requeueStale: requeueStale(now),
    orgsWithStale: `select distinct org_id from (
        select org_id from queue.work_items where status = 'claimed' and lease_expires_at <= ${now}
        order by lease_expires_at limit 10000) stale
      limit $1::int`,
    failStaleOf: failStaleOf(now),
    readUnaudited: `select org_id, id, audit_id, kind, attempts, last_error, request_id from queue.work_items
      where audit_id is not null order by updated_at limit $1::int`,
    clearAudit: `with r as materialized (
        select * from jsonb_to_recordset($1::text::jsonb) as r(org_id uuid, id uuid, audit_id uuid)
      ), held as materialized (
        select h.place, r.audit_id, 1 as few from (select * from r order by org_id, id) r cross join lateral (
          select w.ctid as place from queue.work_items w
          where w.org_id = r.org_id and w.id = r.id and w.audit_id = r.audit_id for update
        ) h
      )
      update queue.work_items w set audit_id = null from held
      where w.ctid = held.place and ${FEW("held")} and w.audit_id = held.audit_id`,
    purgeItems: purgeItems(now),
    purgeKeys: purgeKeys(now),
    readGauges: readGauges(now),
    takeSweepSteps: takeSweepSteps(now),
  };
}

/**
 * Keys first, in key order: `on conflict do nothing` waits for a concurrent holder to commit or roll back, so nobody is
 * told "exists" of a row that never was. An id that exists takes no key. Two inserts of one id racing under different
 * keys violate the primary key; the statement is rolled back whole and run again.
 */
function createItems(now: string): string {
  return `with input as materialized (
      select r.*, greatest(coalesce(r.not_before, ${now} + coalesce(r.delay_ms, 0) * interval '1 millisecond'), ${now})
        as available_at
      from jsonb_to_recordset($2::text::jsonb) as r(n int, id uuid, created_at timestamptz, updated_at timestamptz,
        created_by uuid, updated_by uuid, kind text, target_id uuid, idempotency_key text, payload jsonb, lane text,
        priority smallint, weight text, host_preference text, max_attempts integer, request_id uuid, traceparent text,
        delay_ms float8, not_before timestamptz)
      where current_setting('laneway.org_id', true) = $1::text
    ), fresh as materialized (
      select * from input i
      where not exists (select 1 from queue.work_items w where w.org_id = $1::uuid and w.id = i.id)
    ), keys as (
      insert into queue.work_keys (org_id, key, item_id, created_at)
      select $1::uuid, f.idempotency_key, f.id, ${now} from fresh f order by f.idempotency_key, f.n
      on conflict do nothing returning item_id
    ), inserted as (
      insert into queue.work_items (org_id, id, created_at, updated_at, created_by, updated_by, kind, target_id,
        idempotency_key, payload, lane, ready, priority, weight, host_preference, available_at, max_attempts, request_id,
        traceparent)
      select $1::uuid, f.id, f.created_at, f.updated_at, f.created_by, f.updated_by, f.kind, f.target_id,
        f.idempotency_key, f.payload, f.lane, f.available_at <= ${now}, f.priority, f.weight, f.host_preference,
        f.available_at, f.max_attempts, f.request_id, f.traceparent
      from fresh f join keys k on k.item_id = f.id
      returning id
    )
    select i.id, case when n.id is not null then 'INSERTED' when f.id is null then 'ID_EXISTS' else 'KEY_EXISTS' end
      as outcome
    from input i left join fresh f on f.id = i.id left join inserted n on n.id = i.id`;
}

/** The claim's index serves one kind by equality in claim order: nothing is sorted and nothing else is read. */
function dueOfOneKind(now: string): string {
  return `select w.ctid as place, 1 as few from queue.work_items w
      where w.status = 'queued' and w.ready and w.lane = $1 and w.kind = $2 and w.available_at <= ${now}
      order by w.priority, w.available_at, w.id limit $3::int
      for update skip locked`;
}

/**
 * Several kinds: the heads of each kind by the same index, merged. `kind = any(...)` would lose the index's order (2 s
 * at a million rows), and one index without the kind would scan the backlog for an absent one (209 ms). The heads reach
 * past the limit so that rows other claimers hold at this moment do not make the claim come back short.
 */
function dueOfKinds(now: string): string {
  return `select w.ctid as place, 1 as few from (
        select h.org_id, h.id, h.priority, h.available_at
        from unnest($2::text[]) as k(kind) cross join lateral (
          select q.org_id, q.id, q.priority, q.available_at from queue.work_items q
          where q.status = 'queued' and q.ready and q.lane = $1 and q.kind = k.kind and q.available_at <= ${now}
          order by q.priority, q.available_at, q.id limit $3::int * 2 + 50
        ) h
        order by h.priority, h.available_at, h.id limit $3::int * 2 + 50
      ) head join queue.work_items w on w.org_id = head.org_id and w.id = head.id
      where w.status = 'queued' and w.ready and w.available_at <= ${now}
      order by head.priority, head.available_at, head.id limit $3::int
      for update of w skip locked`;
}

function claim(now: string, due: string): string {
  return `with due as materialized (${due}), claimed as (
      update queue.work_items w set status = 'claimed', claimed_by = $4, claim_token = $5::uuid,
        lease_expires_at = ${now} + $6::float8 * interval '1 millisecond', attempts = w.attempts + 1,
        claims = w.claims + 1, updated_at = ${now}, updated_by = ${EMPTY}
      from due where w.ctid = due.place and ${FEW("due")} and w.status = 'queued'
      returning ${ITEM_COLUMNS}
    )
    select * from claimed order by priority, available_at, id`;
}

/**
 * The fence of every write after a claim: org, id, token, and a lease that has not passed. Only claimed rows have a lease
 * (the table checks it), so the status is not asked for: naming it would let the planner take the index of claimed rows,
 * which its statistics call empty, in place of the primary key. Locked in key order.
 */
function held(now: string): string {
  return `select r.*, h.place, 1 as few from (select * from r order by org_id, id) r cross join lateral (
        select w.ctid as place from queue.work_items w
        where w.org_id = r.org_id and w.id = r.id and w.claim_token = r.token and w.lease_expires_at > ${now}
        for update
      ) h`;
}

/**
 * Complete, dead-letter, retry and hand back in one statement. What was not held is looked at once more in the same
 * statement: a row finished in just this way under just this token is a repeat whose first answer was lost.
 */
function settle(now: string): string {
  return `with r as materialized (
      select * from jsonb_to_recordset($1::text::jsonb) as r(n int, org_id uuid, id uuid, token uuid, to_status text,
        delay_ms float8, refund int, error text, note text, audit_id uuid, ran boolean)
    ), held as materialized (${held(now)}), written as (
      update queue.work_items w set
        status = r.to_status,
        ready = r.to_status = 'queued' and r.delay_ms <= 0,
        available_at = case when r.to_status = 'queued' then ${now} + r.delay_ms * interval '1 millisecond'
          else w.available_at end,
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
      from held r where w.ctid = r.place and ${FEW("r")} and w.claim_token = r.token and w.lease_expires_at > ${now}
      returning r.n
    )
    select r.n, case when written.n is not null then 'WRITTEN' when held.n is not null then 'HELD'
      when (select w.status = r.to_status and w.claim_token = r.token and w.status in ('done', 'failed')
        from queue.work_items w where w.org_id = r.org_id and w.id = r.id) then 'ALREADY'
      else 'REFUSED' end as outcome
    from r left join held on held.n = r.n left join written on written.n = r.n`;
}

function extendLeases(now: string): string {
  return `with r as materialized (
      select * from jsonb_to_recordset($1::text::jsonb) as r(n int, org_id uuid, id uuid, token uuid)
    ), held as materialized (${held(now)}), written as (
      update queue.work_items w set lease_expires_at = ${now} + $2::float8 * interval '1 millisecond',
        updated_at = ${now}, updated_by = ${EMPTY}
      from held r where w.ctid = r.place and ${FEW("r")} and w.claim_token = r.token and w.lease_expires_at > ${now}
      returning r.n
    )
    select r.n, case when written.n is not null then 'WRITTEN' when held.n is not null then 'HELD' else 'REFUSED' end
      as outcome
    from r left join held on held.n = r.n left join written on written.n = r.n`;
}

/** Bounded; skips what another worker promotes at this moment. The next due time is read before the move. */
function promote(now: string): string {
  return `with due as materialized (
      select ctid as place, 1 as few from queue.work_items
      where status = 'queued' and not ready and available_at <= ${now}
      order by available_at limit $1::int for update skip locked
    ), moved as (
      update queue.work_items w set ready = true from due
      where w.ctid = due.place and ${FEW("due")} and w.status = 'queued' returning 1
    )
    select (select count(*) from moved)::int as promoted,
      (select extract(epoch from min(available_at) - ${now}) * 1000 from queue.work_items
        where status = 'queued' and not ready and available_at > ${now})::float8 as next_due_in_ms`;
}

/**
 * Repeats three rules of rules.ts: `isStale`, `isExhausted` and `retryDelay` (held to them by contract cases). Rows that
 * a late settle or another sweep holds at this moment are skipped, so a sweep never waits for a claim.
 */
function requeueStale(now: string): string {
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
        available_at = case when s.exhausted then w.available_at
          else ${now} + s.delay_ms * interval '1 millisecond' end,
        audit_id = case when s.exhausted then gen_random_uuid() end,
        last_error = 'the lease of attempt ' || w.attempts || ' expired',
        claimed_by = null, claim_token = null, lease_expires_at = null,
        expiries = w.expiries + 1, updated_at = ${now}, updated_by = ${EMPTY}
      from stale s where w.ctid = s.place and ${FEW("s")} and w.claim_token = s.claim_token
      returning s.exhausted
    )
    select count(*) filter (where not exhausted)::int as requeued,
      count(*) filter (where exhausted)::int as dead_lettered from moved`;
}

function failStaleOf(now: string): string {
  return `with stale as materialized (
      select w.ctid as place, 1 as few, w.claim_token from queue.work_items w
      where w.status = 'claimed' and w.lease_expires_at <= ${now}
        and w.org_id in (select value::uuid from jsonb_array_elements_text($1::text::jsonb))
      order by w.lease_expires_at limit $3::int for update skip locked
    ), moved as (
      update queue.work_items w set status = 'failed', claimed_by = null, claim_token = null, lease_expires_at = null,
        last_error = $2, updated_at = ${now}, updated_by = ${EMPTY}
      from stale s where w.ctid = s.place and ${FEW("s")} and w.claim_token = s.claim_token returning 1
    )
    select count(*)::int as failed from moved`;
}

/** By age of the last write, oldest first; a row that still waits for its audit entry is spared. */
function purgeItems(now: string): string {
  const old = (status: string) =>
    `(select ctid as place, 1 as few from queue.work_items
      where status = '${status}' and updated_at <= ${now} - $1::float8 * interval '1 millisecond' and audit_id is null
      order by updated_at limit $2::int for update skip locked)`;
  return `with done as materialized ${old("done")}, failed as materialized ${old("failed")}, gone as (
      delete from queue.work_items w
      using (select * from (select * from done union all select * from failed) both_of limit $2::int) old
      where w.ctid = old.place and ${FEW("old")} and w.status in ('done', 'failed') and w.audit_id is null returning 1
    )
    select count(*)::int as purged from gone`;
}

/**
 * A key stays while its item does, whatever its age. Each pass looks at a bounded piece of the old keys, in order, and
 * says where it ended: behind a backlog of items that outlive the retention of their keys, one that looks from the oldest
 * on would read all of it each time (0.7 s at 640,000). The item is asked for key by key: an anti-join is planned as a
 * scan of both tables.
 */
function purgeKeys(now: string): string {
  return `with old as materialized (
      select k.ctid as place, k.created_at, k.org_id, k.item_id from queue.work_keys k
      where k.created_at <= ${now} - $1::float8 * interval '1 millisecond' and k.created_at >= $3::text::timestamptz
      order by k.created_at limit ${KEYS_LOOKED_AT}
    ), free as materialized (
      select place, created_at from old
      where (select 1 from queue.work_items w where w.org_id = old.org_id and w.id = old.item_id) is null
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
function readGauges(now: string): string {
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
function takeSweepSteps(now: string): string {
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
