/**
 * The items of the mixed drain: in groups, each with those who may take it. Who may is written here by hand, and not worked
 * out by the code under test.
 *
 * @module
 */
import { newId } from "../../src/core/ids.ts";
import type { HostRow } from "../../src/host/types.ts";
import type { ItemInsert } from "../../src/work/storage.ts";
import type { WorkItem } from "../../src/work/types.ts";
import { insertOf } from "./breach_world.ts";

/** Who takes items: the worker with a database, and two hosts. */
export type Taker = "sql" | "host-a" | "host-b";
/** The hosts. */
export type HostName = Exclude<Taker, "sql">;

/**
 * What a run does: ends at once, after a moment, after its first lease, after a moment and leaving processes behind, one of
 * which has left its group, fails at its first attempt, at each, or for good.
 */
export type Mode = "quick" | "slow" | "long" | "escape" | "once" | "fail" | "final";

/** An org of the drain, in words; `four` is on no host's list. */
export const ORGS = ["one", "two", "three", "four"] as const;
/** One of them. */
export type Org = (typeof ORGS)[number];

/** Items that are alike. */
export interface Group {
  readonly name: string;
  readonly count: number;
  readonly takers: readonly Taker[];
  readonly fields: Partial<WorkItem>;
  readonly org: Org;
  readonly mode: Mode;
  readonly ends: "done" | "failed";
  readonly delayMs: number;
}

/** Kinds that every machine has a command for; which of them it may run is for its row to say. */
export const KINDS = ["SHARED", "HOSTED", "ONLY_A", "ONLY_B", "ONLY_SQL"] as const;
/** Those the worker with a database has a handler for. */
export const SQL_KINDS = ["SHARED", "ONLY_SQL"] as const;

const TOTAL = 5_000;
const ALL: readonly Taker[] = ["sql", "host-a", "host-b"];
const SQL: readonly Taker[] = ["sql"];
const A: readonly Taker[] = ["host-a"];
const B: readonly Taker[] = ["host-b"];
const [SQL_A, SQL_B, A_B] = [[...SQL, ...A], [...SQL, ...B], [...A, ...B]];
/** While the drain is in full swing. */
const LATER_MS = 12_000;

const always = { name: "always", timeZone: "UTC", days: [], from: "00:00", to: "00:00" };

/** What each host may take. They share kind, weight, priority and org in part. */
export const POLICIES: Readonly<
  Record<HostName, Partial<Omit<HostRow, "orgIds">> & { readonly orgs: readonly Org[] }>
> = {
  "host-a": {
    kinds: ["SHARED", "HOSTED", "ONLY_A"],
    weights: ["super-light", "light"],
    priorityFloor: 5,
    orgs: ["one", "two"],
    windows: [{ ...always, maxInFlight: 8, weights: null }],
  },
  "host-b": {
    kinds: ["SHARED", "HOSTED", "ONLY_B"],
    // Heavy ones are for another time of the day.
    weights: ["light", "medium", "heavy"],
    priorityFloor: 8,
    orgs: ["one", "three"],
    windows: [{ ...always, maxInFlight: 3, weights: ["light", "medium"] }],
  },
};

type Differs = Partial<Pick<Group, "org" | "mode" | "ends" | "delayMs">> & Partial<WorkItem>;

function group(name: string, count: number, takers: readonly Taker[], differs: Differs): Group {
  const { org = "one", mode = "quick", ends = "done", delayMs = 0, ...fields } = differs;
  return { name, count, takers, fields: { maxAttempts: 100, ...fields }, org, mode, ends, delayMs };
}

const SHARED = { kind: "SHARED" };
const HOSTED = { kind: "HOSTED" };
const FAILS = { mode: "fail", ends: "failed", maxAttempts: 2 } as const;

const MIXED: readonly Group[] = [
  group("anybody", 900, ALL, SHARED),
  group("anybody, sooner", 100, ALL, { ...SHARED, priority: 9 }),
  group("anybody, not yet due", 60, ALL, { ...SHARED, delayMs: LATER_MS }),
  group("anybody, failing once", 40, ALL, { ...SHARED, mode: "once", priority: 9 }),
  group("anybody, failing", 30, ALL, { ...SHARED, ...FAILS }),
  // Hosts never touch these. They stand before nearly all that hosts may take: one that looked away would take them first.
  group("emergency", 100, SQL, { ...SHARED, priority: 0 }),
  group("heavy", 100, SQL, { ...SHARED, weight: "heavy", priority: 8 }),
  group("preferring a third host", 100, SQL, { ...SHARED, hostPreference: "host-c", priority: 8 }),
  group("of an org no host serves", 100, SQL, { ...SHARED, org: "four", priority: 8 }),
  group("of no host's kinds, failing", 40, SQL, { kind: "ONLY_SQL", priority: 8, ...FAILS }),
  group("urgent", 30, SQL_A, { ...SHARED, priority: 5 }),
  group("super-light", 80, SQL_A, { ...SHARED, weight: "super-light" }),
  group("of org two", 60, SQL_A, { ...SHARED, org: "two" }),
  group("preferring A", 40, SQL_A, { ...SHARED, hostPreference: "host-a" }),
  group("medium", 80, SQL_B, { ...SHARED, weight: "medium" }),
  group("of org three", 60, SQL_B, { ...SHARED, org: "three" }),
  group("preferring B", 40, SQL_B, { ...SHARED, hostPreference: "host-b" }),
  group("any host", 120, A_B, HOSTED),
  group("any host, slow", 40, A_B, { ...HOSTED, mode: "slow" }),
  group("any host, failing", 20, A_B, { ...HOSTED, ...FAILS }),
  group("A's kind", 80, A, { kind: "ONLY_A" }),
  group("A's kind, slow", 160, A, { kind: "ONLY_A", mode: "slow" }),
  group("A's kind, leaving processes", 30, A, { kind: "ONLY_A", mode: "escape" }),
  group("A's kind, failing for good", 10, A, { kind: "ONLY_A", mode: "final", ends: "failed" }),
  group("hosted, urgent", 20, A, { ...HOSTED, priority: 6 }),
  group("hosted, super-light", 30, A, { ...HOSTED, weight: "super-light" }),
  group("hosted, of org two", 30, A, { ...HOSTED, org: "two" }),
  group("hosted, preferring A", 30, A, { ...HOSTED, hostPreference: "host-a" }),
  group("B's kind", 120, B, { kind: "ONLY_B" }),
  group("B's kind, slow", 40, B, { kind: "ONLY_B", mode: "slow" }),
  group("B's kind, beyond its lease", 3, B, { kind: "ONLY_B", mode: "long" }),
  group("hosted, medium", 30, B, { ...HOSTED, weight: "medium" }),
  group("hosted, medium, not yet due", 10, B, { ...HOSTED, weight: "medium", delayMs: LATER_MS }),
  group("hosted, of org three", 30, B, { ...HOSTED, org: "three" }),
  group("hosted, preferring B", 30, B, { ...HOSTED, hostPreference: "host-b" }),
];

/** All of them, 5,000 items together: the rest is of a kind no host has on its list. */
export const GROUPS: readonly Group[] = [
  ...MIXED,
  group("of no host's kinds", TOTAL - MIXED.reduce((sum, { count }) => sum + count, 0), SQL, { kind: "ONLY_SQL" }),
];

/** An item to insert, and its group. */
export interface DrainItem {
  readonly group: Group;
  readonly insert: ItemInsert;
}

/** Every item, in an order that mixes the groups: their ids and times of insertion follow it. */
export function mixedItems(): DrainItem[] {
  const placed = GROUPS.flatMap((group) =>
    Array.from({ length: group.count }, (_, n) => ({ group, place: (n + 0.5) / group.count }))
  );
  placed.sort((a, b) => a.place - b.place);
  return placed.map(({ group }) => {
    const { item } = insertOf({ id: newId(), payload: { mode: group.mode }, ...group.fields });
    return { group, insert: { item, start: group.delayMs === 0 ? null : { delayMs: group.delayMs } } };
  });
}
