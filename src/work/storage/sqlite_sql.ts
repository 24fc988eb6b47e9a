/**
 * The statements of `SqliteWorkStorage`, named as its methods. `GUARD` is the fence every write after a claim carries.
 *
 * @module
 */

// Limits are written `? + 0`: a bare parameter there makes the engine compile the statement anew at each run, 7 µs more.

// Parameters: org, id, token, now. The lease must not have passed; `claimed_by` is never a fence.
const GUARD = "where org_id = ? and id = ? and claim_token = ? and status = 'claimed' and lease_expires_at > ?";
// A settled row is held by nobody; the token stays on finished rows only (see `repeated`).
const LET_GO = "claimed_by = null, lease_expires_at = null";

// A whole row, org first, in the order that `toOwned` reads.
const ITEM_COLUMNS = `org_id, id, created_at, updated_at, created_by, updated_by, kind, target_id, idempotency_key,
    payload, lane, status, priority, weight, host_preference, available_at, claimed_by, claim_token, lease_expires_at,
    attempts, max_attempts, claims, expiries, last_error, note, audit_id, request_id, traceparent`;

export const HAS_ITEM = "select 1 from queue_work_items where org_id = ? and id = ?";
export const INSERT_KEY =
  "insert into queue_work_keys (org_id, key, item_id, created_at) values (?, ?, ?, ?) on conflict do nothing";
export const INSERT_ITEM = `
  insert into queue_work_items (org_id, id, created_at, updated_at, created_by, updated_by, kind, target_id,
    idempotency_key, payload, lane, status, ready, priority, weight, host_preference, available_at, max_attempts,
    request_id, traceparent)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?)`;
export const READ_ITEM = `select ${ITEM_COLUMNS} from queue_work_items where org_id = ? and id = ?`;
export const READ_KEY = "select item_id from queue_work_keys where org_id = ? and key = ?";
export const READ_STATE =
  "select rowid, status, claim_token, lease_expires_at from queue_work_items where org_id = ? and id = ?";
export const READ_CLAIMED = `
  select ${ITEM_COLUMNS} from queue_work_items where status = 'claimed' and claim_token = ?
  order by priority, available_at, id`;

export const DUE_OF_KIND = `
  select rowid, priority, available_at, id from queue_work_items
  where status = 'queued' and ready = 1 and lane = ? and kind = ? and available_at <= ?
  order by priority, available_at, id limit ? + 0`;
// Fair claims: only the index of the chain `fair` holds orgs in order, so without it these fail.
const DUE_BY_ORG = `from queue_work_items indexed by queue_work_items_fair
  where status = 'queued' and ready = 1 and lane = ? and kind = ? and priority = ?`;
export const NEXT_ORG = `
  select org_id ${DUE_BY_ORG} and org_id > ? and available_at <= ? order by org_id limit 1`;
export const DUE_OF_ORG = `
  select rowid, priority, available_at, id ${DUE_BY_ORG} and org_id = ? and available_at <= ?
  order by available_at, id limit ? + 0`;
export const DUE_FROM_PRIORITY = `
  select priority from queue_work_items
  where status = 'queued' and ready = 1 and lane = ? and kind = ? and priority >= ? and available_at <= ?
  order by priority, available_at, id limit 1`;
export const DUE_OF_PRIORITY = `
  select rowid, priority, available_at, id from queue_work_items
  where status = 'queued' and ready = 1 and lane = ? and kind = ? and priority = ? and available_at <= ?
  order by available_at, id limit ? + 0`;
// All of a batch at once: a statement a row takes 17 µs an item, this one 7.
export const CLAIM_ROWS = `
  update queue_work_items set status = 'claimed', claimed_by = ?, claim_token = ?, lease_expires_at = ?,
    attempts = attempts + 1, claims = claims + 1, updated_at = ?, updated_by = ?
  where rowid in (select value from json_each(?)) returning ${ITEM_COLUMNS}`;

// For a list of [org, id, token]: 4 µs a row, where a statement a row takes 7.
export const SETTLE_DONE = `
  update queue_work_items set status = 'done', ${LET_GO}, expiries = 0, updated_at = ?, updated_by = ?
  where rowid in (
    select w.rowid from json_each(?) r cross join queue_work_items w
    where w.org_id = r.value ->> 0 and w.id = r.value ->> 1 and w.claim_token = r.value ->> 2
      and w.status = 'claimed' and w.lease_expires_at > ?)
  returning rowid`;
export const SETTLE_DROP = `delete from queue_work_items ${GUARD}`;
export const SETTLE_FAILED = `
  update queue_work_items set status = 'failed', ${LET_GO}, last_error = ?, audit_id = ?, updated_at = ?,
    updated_by = ? ${GUARD}`;
export const SETTLE_RETRY = `
  update queue_work_items set status = 'queued', ${LET_GO}, claim_token = null, available_at = ?, ready = ?,
    last_error = ?, expiries = 0, updated_at = ?, updated_by = ? ${GUARD}`;
// Uncharged; a run cut short says nothing of whether the item kills its process, so its expiries stay; and handed back at
// once (null) it keeps its place.
export const SETTLE_BACK = `
  update queue_work_items set status = 'queued', ${LET_GO}, claim_token = null, available_at = coalesce(?, available_at), ready = ?,
    note = coalesce(?, note), attempts = attempts - 1, expiries = iif(?, 0, expiries), updated_at = ?, updated_by = ? ${GUARD}`;
export const EXTEND_LEASE = `
  update queue_work_items set lease_expires_at = ?, updated_at = ?, updated_by = ? ${GUARD}`;

export const PROMOTE = `
  update queue_work_items set ready = 1 where rowid in (
    select rowid from queue_work_items where status = 'queued' and ready = 0 and available_at <= ?
    order by available_at limit ? + 0)`;
export const NEXT_DUE = `
  select available_at from queue_work_items where status = 'queued' and ready = 0 and available_at > ?
  order by available_at limit 1`;

// The plus keeps the primary key out of it: by that the org's whole history would be read and sorted.
export const STALE_OF_ORG = `
  select rowid, attempts, max_attempts, expiries, available_at from queue_work_items
  where status = 'claimed' and lease_expires_at <= ? and +org_id = ? order by lease_expires_at limit ? + 0`;
export const REQUEUE_ROW = `
  update queue_work_items set status = ?, ready = ?, available_at = ?, audit_id = ?, last_error = ?, ${LET_GO},
    claim_token = null, expiries = expiries + 1, updated_at = ?, updated_by = ?
  where rowid = ?`;
export const ORGS_WITH_STALE = `
  select distinct org_id from queue_work_items where status = 'claimed' and lease_expires_at <= ? limit ? + 0`;
export const FAIL_STALE_OF = `
  update queue_work_items set status = 'failed', ${LET_GO}, claim_token = null, last_error = ?, updated_at = ?,
    updated_by = ?
  where rowid in (
    select rowid from queue_work_items where status = 'claimed' and lease_expires_at <= ?
      and +org_id in (select value from json_each(?)) order by lease_expires_at limit ? + 0)`;

export const READ_UNAUDITED = `
  select org_id, id, audit_id, kind, attempts, last_error, request_id from queue_work_items
  where audit_id is not null order by updated_at limit ? + 0`;
export const CLEAR_AUDIT = "update queue_work_items set audit_id = null where org_id = ? and id = ? and audit_id = ?";

const purge = (status: string) => `
  delete from queue_work_items where rowid in (
    select rowid from queue_work_items
    where status = '${status}' and updated_at <= ? and audit_id is null order by updated_at limit ? + 0)`;
export const PURGE_DONE = purge("done");
export const PURGE_FAILED = purge("failed");
// A bounded piece of the old keys, from where the last pass ended; see sql.ts.
export const OLD_KEYS = `
  select k.org_id, k.key, k.created_at,
    exists (select 1 from queue_work_items w where w.org_id = k.org_id and w.id = k.item_id) as held
  from queue_work_keys k
  where k.created_at <= ? and k.created_at >= ? order by k.created_at limit ? + 0`;
export const FREE_KEY = "delete from queue_work_keys where org_id = ? and key = ?";

export const COUNT_QUEUED = `
  select count(*) as n from (select 1 from queue_work_items where status = 'queued' and ready = 1 limit ? + 0)`;
export const COUNT_FAILED =
  "select count(*) as n from (select 1 from queue_work_items where status = 'failed' limit ? + 0)";
const DUE_GROUP = `
  select lane, kind, priority, available_at from queue_work_items where status = 'queued' and ready = 1`;
const GROUP_ORDER = "order by lane, kind, priority, available_at limit 1";
export const FIRST_DUE_GROUP = `${DUE_GROUP} ${GROUP_ORDER}`;
export const NEXT_DUE_GROUP = `${DUE_GROUP} and (lane, kind, priority) > (?, ?, ?) ${GROUP_ORDER}`;

// Compare-and-set: one caller an interval moves the time on; a time from before the clock was set back does not count.
export const TAKE_SWEEP_STEP = `
  insert into queue_sweep_steps (step, last_run_at) values (?, ?)
  on conflict (step) do update set last_run_at = excluded.last_run_at where last_run_at <= ? or last_run_at > ?`;
