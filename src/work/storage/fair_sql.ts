/**
 * The claim that takes turns of orgs: one statement for the best priority that has something due (`level`).
 *
 * It hops from org to org over the index of the chain `fair`, beginning behind the org that was served last and coming
 * round once, to at most as many orgs as it may take items, and `MAX_ORGS` (`hop`). Each gives an equal share, what is due first
 * (`taken`). What shares leave over is filled up at the same priority in the order of the other claim (`rest`), so a claim
 * that comes back short has met the end of its priority; `more` says whether another one has something.
 *
 * The index holds the org in an expression (`ORG`), and so do the statements here: no other index can serve them, so no
 * plan, made of whatever statistics, reads another org's backlog. With the plain column the planner took the primary key
 * or the index of the other claim; and a comparison of whole rows, which only one index can serve, reads on to its end, as
 * the engine stops at the first column of such a comparison alone.
 *
 * @module
 */
import { type Due, dueOfKinds, dueOfOneKind, stamp } from "./claim_sql.ts";
import { CLAIMED_COLUMNS, FEW } from "./columns.ts";
import { MAX_ORGS } from "./fair_turns.ts";

// The same parameters as the other claim but for `$2`, the kinds' names; then `$7` the turns by priority, `$8` the lowest
// priority to look at.
const KINDS = "jsonb_array_elements_text($2::text::jsonb) as k(kind)";
const ONLY_KIND = "($2::text::jsonb ->> 0)";
const LAST_ORG = "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid";

/** The org of an item that is ready, as the index holds it. */
const ORG = "(case when w.ready then w.org_id end)";

/** Whether one kind is claimed or several: these are merged, kind by kind of the same index. */
export type Kinds = "one" | "several";

/** Due rows of one kind in the index's order: of the orgs that `orgs` says, at a priority. */
const byOrg = (now: string, { orgs, priority, kind = "k.kind" }: { orgs: string; priority: string; kind?: string }) =>
  `where w.lane = $1 and w.kind = ${kind} and w.priority = ${priority} and ${orgs} and w.available_at <= ${now}
          order by ${ORG}, w.available_at, w.id`;

/** The first org, of those that `orgs` says. */
function firstOrg(now: string, kinds: Kinds, orgs: string): string {
  const of = (kind: string) =>
    `select ${ORG} as org_id from queue.work_items w ${byOrg(now, { orgs, priority: "hop.priority", kind })} limit 1`;
  if (kinds === "one") return of(ONLY_KIND);
  return `select f.org_id from ${KINDS} cross join lateral (${of("k.kind")}) f order by f.org_id limit 1`;
}

/** The best priority, of those that `which` says. */
function firstPriority(now: string, kinds: Kinds, which: string): string {
  const of = (kind: string) =>
    `select w.priority from queue.work_items w
        where w.lane = $1 and w.kind = ${kind} and w.priority ${which} and ${ORG} is not null and w.available_at <= ${now}
        order by w.priority, ${ORG}, w.available_at, w.id limit 1`;
  if (kinds === "one") return of(ONLY_KIND);
  return `select f.priority from ${KINDS} cross join lateral (${of("k.kind")}) f order by f.priority limit 1`;
}

function hop(now: string, kinds: Kinds): string {
  const next = `${ORG} > hop.org_id and ${ORG} <= case when hop.round then l.after else ${LAST_ORG} end`;
  return `select 0 as n, l.priority, l.after as org_id, false as round from level l
      union all
      select hop.n + 1, hop.priority, o.org_id, o.round from hop cross join level l cross join lateral (
        (select b.org_id, hop.round as round from (${firstOrg(now, kinds, next)}) b)
        union all
        (select b.org_id, true from (${firstOrg(now, kinds, `${ORG} <= l.after`)}) b where not hop.round)
        limit 1
      ) o where hop.n < least($3::int, ${MAX_ORGS})`;
}

const SHARE = "(($3::int + o.orgs - 1) / o.orgs)::int";
const OF_ORG = { orgs: `${ORG} = o.org_id`, priority: "o.priority" };

function shareOfOneKind(now: string): string {
  return `select w.ctid as place from queue.work_items w
          ${byOrg(now, { ...OF_ORG, kind: ONLY_KIND })} limit ${SHARE} for update skip locked`;
}

// The heads reach past the share, for rows that other claimers hold at this moment.
function shareOfKinds(now: string): string {
  return `with head as materialized (
          select h.*, 1 as few from ${KINDS} cross join lateral (
            select w.ctid as place, w.available_at, w.id from queue.work_items w ${
    byOrg(now, OF_ORG)
  } limit ${SHARE} * 2
          ) h order by h.available_at, h.id limit ${SHARE} * 2
        )
        select w.ctid as place from head join queue.work_items w on w.ctid = head.place and ${FEW("head")}
        where w.ready and w.available_at <= ${now}
        order by head.available_at, head.id limit ${SHARE} for update of w skip locked`;
}

/** The claim of one priority. At least one row: without a claimed one it tells what was looked at alone. */
export function claimFairly(now: string, kinds: Kinds): string {
  const [share, rest] = kinds === "one" ? [shareOfOneKind, dueOfOneKind] : [shareOfKinds, dueOfKinds];
  const left: Due = {
    ranges: `(select k.kind, l.priority as low, '-infinity'::timestamptz as from_at, l.priority as high
        from ${KINDS} cross join level l) r`,
    limit: "(select $3::int - count(*)::int from taken)",
    besides: "and w.ctid not in (select t.place from taken t)",
  };
  const due = `select place, turn, 1 as few from (
      select place, turn from taken union all select place, null from rest
    ) d`;
  return `with recursive best as materialized (${firstPriority(now, kinds, ">= $8::int")}), level as materialized (
      select b.priority, coalesce(t.turns ->> b.priority::text, t.turns ->> 'start')::uuid as after,
        exists (${firstPriority(now, kinds, "> b.priority")}) as more
      from best b, (select $7::text::jsonb as turns) t
    ), hop as (${hop(now, kinds)}), taken as materialized (
      select s.place, o.n as turn from (
        select n, priority, org_id, count(*) over () as orgs from hop where n > 0 order by n
      ) o cross join lateral (${share(now)}) s limit $3::int
    ), rest as materialized (${rest(now, left)}), due as materialized (${due}),
    claimed as (${stamp(now, `${CLAIMED_COLUMNS}, due.turn`)})
    select c.*, l.priority as level, l.more from (select) one left join level l on true left join claimed c on true
    order by c.priority, c.available_at, c.id`;
}
