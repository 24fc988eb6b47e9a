/**
 * The claim, and what brings items into its index.
 *
 * @module
 */
import { CLAIMED_COLUMNS, EMPTY, FEW } from "./columns.ts";

/** Where to look, piece by piece in claim order (see `claim_floors.ts`): `$2`. */
const RANGES = `jsonb_to_recordset($2::text::jsonb) as r(kind text, low smallint, from_at timestamptz, high smallint)`;

/** One range of the claim's index: one kind by equality, in claim order; nothing is sorted and nothing else is read. */
const inRange = (now: string) =>
  `where w.ready and w.lane = $1 and w.kind = r.kind
          and (w.priority, w.available_at) >= (r.low, r.from_at) and w.priority <= r.high and w.available_at <= ${now}
        order by w.priority, w.available_at, w.id`;

/**
 * One kind: its ranges are in claim order, so are the rows. The limit outside stops the loop, so that no more rows are
 * locked than are claimed; the one inside keeps the planner from sorting.
 */
export function dueOfOneKind(now: string): string {
  return `select due.place, 1 as few from ${RANGES} cross join lateral (
        select w.ctid as place from queue.work_items w
        ${inRange(now)} limit $3::int for update skip locked
      ) due limit $3::int`;
}

/**
 * Several kinds: the heads of each kind by the same index, merged. `kind = any(...)` would lose the index's order (2 s
 * at a million rows), and one index without the kind would scan the backlog for an absent one (209 ms). The heads reach
 * a little past the limit so that rows other claimers hold at this moment do not make the claim come back short.
 */
export function dueOfKinds(now: string): string {
  return `with head as materialized (
        select h.*, 1 as few from ${RANGES} cross join lateral (
          select w.ctid as place, w.id, w.priority, w.available_at from queue.work_items w
          ${inRange(now)} limit $3::int + 50
        ) h
        order by h.priority, h.available_at, h.id limit $3::int + 50
      )
      select w.ctid as place, 1 as few from head join queue.work_items w on w.ctid = head.place and ${FEW("head")}
      where w.ready and w.available_at <= ${now}
      order by head.priority, head.available_at, head.id limit $3::int
      for update of w skip locked`;
}

/** Stamps the claim on what is due. `ready` leaves the index, and with it every later claim's sight. */
export function claim(now: string, due: string): string {
  return `with due as materialized (${due}), claimed as (
      update queue.work_items w set status = 'claimed', ready = false, claimed_by = $4, claim_token = $5::uuid,
        lease_expires_at = ${now} + $6::float8 * interval '1 millisecond', attempts = w.attempts + 1,
        claims = w.claims + 1, updated_at = ${now}, updated_by = ${EMPTY}
      from due where w.ctid = due.place and ${FEW("due")} and w.ready
      returning ${CLAIMED_COLUMNS}
    )
    select * from claimed order by priority, available_at, id`;
}

/** Bounded; skips what another worker promotes at this moment. The next due time is read before the move. */
export function promote(now: string): string {
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
