/**
 * The claim, and what brings items into its index.
 *
 * @module
 */
import type { Param } from "../../db/database.ts";
import type { ClaimRange } from "./claim_floors.ts";
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
      ${lockedHead(now, limit)}`;
}

/** As many ranges at most are merged as they are read; with more the statement would be longer than it is worth. */
export const MAX_MERGED = 32;

/**
 * Several kinds, in `count` ranges: each is a branch of its own, and the branches are merged row by row as they are read,
 * so no more rows are met than are claimed, and a few for those that others hold. Merged after they were read, 100 items of
 * 20 kinds cost 3,000 rows. A lock cannot be taken below a union, so it is taken by place behind it.
 */
export function dueOfMerged(now: string, count: number): string {
  const branches = Array.from({ length: count }, (_, n) => {
    const [kind, low, fromAt, high] = rangeParams(n);
    return `(select w.ctid as place, w.priority, w.available_at, w.id from queue.work_items w
        where w.ready and w.lane = $1 and w.kind = $${kind}
          and (w.priority, w.available_at) >= ($${low}::smallint, $${fromAt}::timestamptz)
          and w.priority <= $${high}::smallint and w.available_at <= ${now}
        order by w.priority, w.available_at, w.id)`;
  });
  return `with head as materialized (
        select h.*, 1 as few from (${branches.join(" union all ")}) h
        order by h.priority, h.available_at, h.id limit $3::int + 50
      )
      ${lockedHead(now, "$3::int")}`;
}

/** Where `dueOfMerged` finds a range: a parameter each, as reading them out of one text took 2 ms. */
function rangeParams(n: number): readonly [kind: number, low: number, fromAt: number, high: number] {
  const first = 6 + 4 * n;
  return [n === 0 ? 2 : first, first + 1, first + 2, first + 3];
}

/** The parameters of a claim over `dueOfMerged`. `params`: those of the other claims, whose ranges these take the place of. */
export function mergedParams(params: readonly Param[], ranges: readonly ClaimRange[]): Param[] {
  const all = [...params];
  ranges.forEach((range, n) => {
    const places = rangeParams(n);
    [range.kind, range.low, range.from_at, range.high].forEach((value, i) => all[(places[i] ?? 0) - 1] = value);
  });
  return all;
}

/** The rows of `head` that nobody holds, locked, in its order. */
function lockedHead(now: string, limit: string): string {
  return `select w.ctid as place, 1 as few from head join queue.work_items w on w.ctid = head.place and ${FEW("head")}
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

/**
 * The write of a claim, to the rows of `due`. `ready` leaves the index, and with it every later claim's sight. Whatever
 * host held the row before must not be able to write this claim.
 */
export function stamp(now: string, returning: string): string {
  return `update queue.work_items w set status = 'claimed', ready = false, claimed_by = $4, claim_token = $5::uuid,
        lease_expires_at = ${now} + $6::float8 * interval '1 millisecond', attempts = w.attempts + 1,
        claims = w.claims + 1, updated_at = ${now}, updated_by = ${EMPTY}, host = null
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
