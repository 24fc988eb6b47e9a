/**
 * The columns of an item in SQL, and the two ways every statement names them.
 *
 * @module
 */

/** The actor of bookkeeping writes. */
export const EMPTY = "'00000000-0000-0000-0000-000000000000'::uuid";

/** What `queue.work_history` takes over from `queue.work_items` as it stands. */
const KEPT = [
  ...["org_id", "id", "created_at", "created_by", "request_id", "target_id", "available_at", "claim_token", "claims"],
  ...["attempts", "max_attempts", "priority", "kind", "lane", "weight", "host_preference", "idempotency_key"],
  ...["traceparent", "payload", "last_error", "note"],
];

/** The kept columns, as a list. */
export const KEPT_COLUMNS: string = KEPT.join(", ");

/** The same, of `queue.work_items w`. */
export const KEPT_OF_ITEM: string = KEPT.map((column) => `w.${column}`).join(", ");

/** All of an item's columns, of `queue.work_items w`. */
export const LIVE_COLUMNS: string = [
  KEPT_OF_ITEM,
  ...["w.updated_at", "w.updated_by", "w.expiries", "w.status", "w.lease_expires_at", "w.claimed_by", "w.audit_id"],
].join(", ");

/** The same columns, of a completed item in `queue.work_history h`. */
export const DONE_COLUMNS: string = [
  ...KEPT.map((column) => `h.${column}`),
  ...["h.finished_at as updated_at", `${EMPTY} as updated_by`, "0 as expiries", "'done' as status"],
  ...["null::timestamptz as lease_expires_at", "null as claimed_by", "null::uuid as audit_id"],
].join(", ");

/**
 * What a claim returns of each row: what its caller cannot know. The rest is the same for all rows of one claim
 * (`PostgresWorkStorage.claim` fills it in), and each column costs the server and the client a conversion a row. Last the
 * place the row has now, for `ClaimPlaces`.
 */
export const CLAIMED_COLUMNS: string = [
  ...["org_id", "id", "created_at", "created_by", "request_id", "target_id", "available_at", "claims", "attempts"],
  ...["max_attempts", "priority", "kind", "weight", "host_preference", "idempotency_key", "traceparent", "payload"],
  ...["last_error", "note", "expiries", "updated_at", "ctid"],
].map((column) => `w.${column}`).join(", ");

/**
 * Always true of rows that select `1 as few`. The planner takes it for one row in 200, and so joins by place row by row,
 * whatever it believes of the table. Without it a plan made while the table was small (they are cached), and one for a
 * limit it does not know, read the whole table for each batch: a hash join over a sequential scan.
 */
export const FEW = (rows: string): string => `${rows}.few = 1`;
