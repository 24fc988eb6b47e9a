/**
 * The statements of `PostgresWorkStorage`, named as its methods. `now` is the SQL expression of database time: `now()`,
 * or in tests one that can be shifted.
 *
 * Batches travel as one JSON text parameter, cast through text (`$1::text::jsonb`) so that the driver does not encode it
 * a second time. Every batch meets its rows in order of their ids, so two of them can never wait for each other in a circle.
 *
 * Rows that were found are written by their place (`ctid`): a join on the key is planned from statistics, and a queue's
 * are always wrong (taken when nothing was claimed, or before the table filled), which made it scan the whole table or
 * all claims for each row: 4,700 items a second against 12,000. Where another write came between the statement's snapshot
 * and its lock, the place is not found; the holder's writes then say `HELD` and are run again for that row, the others
 * leave it to the next pass. `FEW` keeps such a join a loop over places. What else was tried is in README.md beside this.
 *
 * @module
 */
import { claim, dueOfKinds, dueOfMerged, dueOfOneKind, promote } from "./claim_sql.ts";
import { claimFairly } from "./fair_sql.ts";
import { DONE_COLUMNS, FEW, LIVE_COLUMNS } from "./columns.ts";
import { complete, completePlaced, extendLeases, settle } from "./settle_sql.ts";
import * as sweep from "./sweep_sql.ts";

/** The statements, over the given expression of database time. */
export interface WorkSql {
  readonly createItems: string;
  readonly readItem: string;
  readonly readItemByKey: string;
  readonly claimOneKind: string;
  readonly claimKinds: string;
  /** Of several kinds in so many ranges, up to `MAX_MERGED`. */
  readonly claimMerged: (ranges: number) => string;
  readonly claimFairlyOneKind: string;
  readonly claimFairlyKinds: string;
  readonly readClaimed: string;
  readonly complete: string;
  readonly completeAndDrop: string;
  readonly completePlaced: string;
  readonly completePlacedAndDrop: string;
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
  readonly archiveDone: string;
  readonly purgeAttempts: string;
  readonly hostOrgs: string;
  readonly dropHostOrgs: string;
  readonly readHosts: string;
}

/** Builds the statements. */
export function workSql(now: string): WorkSql {
  const merged: string[] = [];
  return {
    createItems: createItems(now),
    // Tenant statements repeat the setting: on a connection that lost its unit they see nothing.
    readItem: `select ${LIVE_COLUMNS} from queue.work_items w
      where w.org_id = $1::uuid and w.id = $2::uuid and current_setting('laneway.org_id', true) = $1::text
      union all select ${DONE_COLUMNS} from queue.work_history h
      where h.org_id = $1::uuid and h.id = $2::uuid and current_setting('laneway.org_id', true) = $1::text`,
    readItemByKey: `select k.item_id as holder_id, i.* from queue.work_keys k left join lateral (
        select ${LIVE_COLUMNS} from queue.work_items w where w.org_id = k.org_id and w.id = k.item_id
        union all
        select ${DONE_COLUMNS} from queue.work_history h where h.org_id = k.org_id and h.id = k.item_id
      ) i on true
      where k.org_id = $1::uuid and k.key = $2 and current_setting('laneway.org_id', true) = $1::text`,
    claimOneKind: claim(now, dueOfOneKind(now)),
    claimKinds: claim(now, dueOfKinds(now)),
    claimMerged: (ranges) => merged[ranges] ??= claim(now, dueOfMerged(now, ranges)),
    claimFairlyOneKind: claimFairly(now, "one"),
    claimFairlyKinds: claimFairly(now, "several"),
    readClaimed: `select ${LIVE_COLUMNS} from queue.work_items w where w.status = 'claimed' and w.claim_token = $1::uuid
      order by w.priority, w.available_at, w.id`,
    complete: complete(now, true),
    completeAndDrop: complete(now, false),
    completePlaced: completePlaced(now, true),
    completePlacedAndDrop: completePlaced(now, false),
    settle: settle(now),
    extendLeases: extendLeases(now),
    readClaims: `select i.* from jsonb_to_recordset($1::text::jsonb) as r(org_id uuid, id uuid) cross join lateral (
        select w.org_id, w.id, w.status, w.claim_token, coalesce(w.lease_expires_at > ${now}, false) as lease_live
        from queue.work_items w where w.org_id = r.org_id and w.id = r.id
        union all
        select h.org_id, h.id, 'done', h.claim_token, false from queue.work_history h
        where h.org_id = r.org_id and h.id = r.id
      ) i`,
    promote: promote(now),
    requeueStale: sweep.requeueStale(now),
    orgsWithStale: `select distinct org_id from (
        select org_id from queue.work_items where status = 'claimed' and lease_expires_at <= ${now}
        order by lease_expires_at limit 10000) stale
      limit $1::int`,
    failStaleOf: sweep.failStaleOf(now),
    readUnaudited: `select org_id, id, audit_id, kind, attempts, last_error, request_id from queue.work_items
      where audit_id is not null order by updated_at limit $1::int`,
    clearAudit: `with r as materialized (
        select * from jsonb_to_recordset($1::text::jsonb) as r(org_id uuid, id uuid, audit_id uuid)
      ), held as materialized (
        select h.place, r.audit_id, 1 as few from (select * from r order by id, org_id) r cross join lateral (
          select w.ctid as place from queue.work_items w
          where w.org_id = r.org_id and w.id = r.id and w.audit_id = r.audit_id for update
        ) h
      )
      update queue.work_items w set audit_id = null from held
      where w.ctid = held.place and ${FEW("held")} and w.audit_id = held.audit_id`,
    purgeItems: sweep.purgeItems(now),
    purgeKeys: sweep.purgeKeys(now),
    readGauges: sweep.readGauges(now),
    takeSweepSteps: sweep.takeSweepSteps(now),
    archiveDone: sweep.archiveDone(now),
    purgeAttempts: sweep.purgeAttempts(now),
    hostOrgs: `select distinct o.id as org_id from queue.hosts h cross join lateral unnest(h.org_ids) as o(id)
      where $1::uuid is null or o.id > $1::uuid order by 1 limit $2::int`,
    dropHostOrgs: sweep.dropHostOrgs(now),
    readHosts: sweep.readHosts(now),
  };
}

/** What the rows of an insert may share; see `encodeInserts`. */
const SHARED = [
  ...["created_at", "updated_at", "created_by", "updated_by", "kind", "target_id", "lane", "priority", "weight"],
  ...["host_preference", "max_attempts", "request_id", "traceparent"],
];
const FIELDS =
  `created_at timestamptz, updated_at timestamptz, created_by uuid, updated_by uuid, kind text, target_id uuid,
        lane text, priority smallint, weight text, host_preference text, max_attempts integer, request_id uuid,
        traceparent text, delay_ms float8, not_before timestamptz`;

/**
 * Keys first, in key order: `on conflict do nothing` waits for a concurrent holder to commit or roll back, so nobody is
 * told "exists" of a row that never was. Ids are asked for one by one: `not exists` is planned as a hash of all the org
 * has; and into a column: as a condition they are taken to leave one row, and a thousand rows are joined in a double loop.
 * Only what was not inserted is told, and by a row of nulls that a hint was sent. An id that exists takes no key. Two
 * inserts of one id racing under different keys violate the primary key; the statement is rolled back whole and run again.
 */
function createItems(now: string): string {
  return `with input as materialized (
      select r.n, r.id, r.idempotency_key, r.payload, ${
    SHARED.map((f) => `coalesce(r.${f}, s.${f}) as ${f}`).join(", ")
  },
        greatest(coalesce(r.not_before, s.not_before,
          ${now} + coalesce(r.delay_ms, s.delay_ms, 0) * interval '1 millisecond'), ${now}) as available_at
      from jsonb_to_recordset($2::text::jsonb) as r(n int, id uuid, idempotency_key text, payload jsonb, ${FIELDS})
        cross join jsonb_to_record($3::text::jsonb) as s(${FIELDS})
      where current_setting('laneway.org_id', true) = $1::text
    ), looked_up as materialized (
      select i.*, (select 1 from queue.work_items w where w.org_id = $1::uuid and w.id = i.id) is null
        and (select 1 from queue.work_history h where h.org_id = $1::uuid and h.id = i.id) is null as is_new
      from input i
    ), fresh as materialized (
      select * from looked_up where is_new
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
    select i.id, case when f.id is null then 'ID_EXISTS' else 'KEY_EXISTS' end as outcome
    from input i left join fresh f on f.id = i.id left join inserted n on n.id = i.id where n.id is null
    union all select null, pg_notify($4::text, $5::text)::text
    from (select 1 from inserted limit 1) won where $5::text is not null`;
}
