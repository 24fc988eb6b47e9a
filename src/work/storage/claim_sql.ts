/**
 * The claim, and what brings items into its index.
 *
 * @module
 */
import { CLAIMED_COLUMNS, EMPTY, FEW } from "./columns.ts";

/** Where to look, piece by piece in claim order (see `claim_floors.ts`): `$2`. */
const RANGES = `jsonb_to_recordset($2::text::jsonb) as r(kind text, low smallint, from_at timestamptz, high smallint)`;

/** One range of the claim's index: one kind by equality, in claim order; nothing is sorted and nothing else is read. */
const inRange = (now: string, besides: string) =>
  `where w.ready and w.lane = $1 and w.kind = r.kind
          and (w.priority, w.available_at) >= (r.low, r.from_at) and w.priority <= r.high and w.available_at <= ${now} ${besides}
        order by w.priority, w.available_at, w.id`;

/** What is due of what: `claim`'s by default. */
export interface Due {
  /** A list `r` of kinds and where to look, in claim order. */
  readonly ranges: string;
  /** How many rows at most. */
  readonly limit: string;
  /** A condition on `w`, with its `and`. */
  readonly besides: string;
}

const CLAIM: Due = { ranges: RANGES, limit: "$3::int", besides: "" };

/**
 * One kind: its ranges are in claim order, so are the rows. The limit outside stops the loop, so that no more rows are
 * locked than are claimed; the one inside keeps the planner from sorting.
 */
export function dueOfOneKind(now: string, { ranges, limit, besides } = CLAIM): string {
  return `select due.place, 1 as few from ${ranges} cross join lateral (
        select w.ctid as place from queue.work_items w
        ${inRange(now, besides)} limit ${limit} for update skip locked
      ) due limit ${limit}`;
}

/**
 * Several kinds: the heads of each kind by the same index, merged. `kind = any(...)` would lose the index's order (2 s
 * at a million rows), and one index without the kind would scan the backlog for an absent one (209 ms). The heads reach
 * a little past the limit so that rows other claimers hold at this moment do not make the claim come back short.
 */
export function dueOfKinds(now: string, { ranges, limit, besides } = CLAIM): string {
  const heads = `${limit} + 50`;
  return `with head as materialized (
        select h.*, 1 as few from ${ranges} cross join lateral (
          select w.ctid as place, w.id, w.priority, w.available_at from queue.work_items w
          ${inRange(now, besides)} limit ${heads}
        ) h
        order by h.priority, h.available_at, h.id limit ${heads}
      )
      select w.ctid as place, 1 as few from head join queue.work_items w on w.ctid = head.place and ${FEW("head")}
      where w.ready and w.available_at <= ${now}
      order by head.priority, head.available_at, head.id limit ${limit}
      for update of w skip locked`;
}

/**
 * Stamps the claim on what is due, and returns it in the order of `due`: the update is a loop over its places
 * (`tests/integration/plans_test.ts` holds it to that). Sorting them once more cost a copy of each row.
 */
export function claim(now: string, due: string): string {
  return `with due as materialized (${due})
    ${stamp(now, CLAIMED_COLUMNS)}`;
}

/** The write of a claim, to the rows of `due`. `ready` leaves the index, and with it every later claim's sight. */
export function stamp(now: string, returning: string): string {
  return `update queue.work_items w set status = 'claimed', ready = false, claimed_by = $4, claim_token = $5::uuid,
        lease_expires_at = ${now} + $6::float8 * interval '1 millisecond', attempts = w.attempts + 1,
        claims = w.claims + 1, updated_at = ${now}, updated_by = ${EMPTY}
      from due where w.ctid = due.place and ${FEW("due")} and w.ready
      returning ${returning}`;
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
