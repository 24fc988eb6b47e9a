/**
 * What a seed makes of a world: its size, its clocks, and which faults it knows. Each seed turns whole classes of faults
 * on or off (swarm testing): what hides behind constant crashes shows where nothing but a late answer happens.
 *
 * @module
 */
import type { Random } from "./random.ts";
import type { Fate } from "./truth.ts";

/** How a world is made. */
export interface Plan {
  readonly workers: number;
  readonly producers: number;
  readonly orgs: number;
  readonly batches: number;
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly sweepMs: number;
  readonly capacity: number;
  readonly drainGraceMs: number;
  readonly claimAheadMs: number;
  readonly timeoutMs: number;
  readonly itemRetentionMs: number;
  readonly keyRetentionMs: number;
  readonly listening: boolean;
  readonly hintLoss: number;
  readonly latencyMs: number;
  readonly skewMs: number;
  readonly drift: number;
  /** Share of calls by what becomes of them; the rest is `ok`. */
  readonly fates: Readonly<Partial<Record<Fate, number>>>;
  /** The one method that fates strike; null is all. */
  readonly strikes: string | null;
  /** Mean milliseconds between two of each; absent is never. */
  readonly actions: Readonly<Partial<Record<ActionName, number>>>;
  /** Weights of what handlers do. */
  readonly handlers: readonly (readonly [number, Behaviour])[];
  /** Shares of items with a fate of their own. */
  readonly poison: number;
  readonly doomed: number;
}

/** What a handler may do. */
export type Behaviour =
  | "quick"
  | "slow"
  | "throw"
  | "final"
  | "defer"
  | "hang"
  | "deaf"
  | "own-done"
  | "own-done-throw"
  | "own-back"
  | "parent";

/** What may happen to processes and the world. */
export type ActionName =
  | "crash"
  | "freeze"
  | "suspend"
  | "jump"
  | "drain"
  | "outage"
  | "end-org"
  | "end-member"
  | "operator";

/** How all kinds of a world retry. */
export const RETRY = { baseMs: 300, capMs: 3_000 };

const ALL_FATES: readonly Fate[] = ["refused", "lost", "hung", "late", "slow", "delayed", "vanished"];
const ACTIONS: readonly (readonly [ActionName, number])[] = [
  ["crash", 9_000],
  ["freeze", 12_000],
  ["suspend", 14_000],
  ["jump", 8_000],
  ["drain", 15_000],
  ["outage", 15_000],
  ["end-org", 20_000],
  ["end-member", 30_000],
];
const TEMPERS: readonly (readonly [Behaviour, number])[] = [
  ["throw", 2],
  ["final", 0.5],
  ["defer", 1],
  ["hang", 1],
  ["deaf", 1],
  ["own-done", 0.7],
  ["own-done-throw", 0.5],
  ["own-back", 0.7],
  ["parent", 2],
];

/** Worlds in which nothing but one kind of call is struck, and hard: seed modulo eight, the method, its fates. */
const STRIKES: readonly (readonly [number, string, Readonly<Partial<Record<Fate, number>>>])[] = [
  [1, "claim", { lost: 0.15 }],
  [2, "settle", { late: 0.2, slow: 0.1, hung: 0.1 }],
  [3, "extendLeases", { late: 0.35, vanished: 0.15, hung: 0.1, refused: 0.1 }],
];

/**
 * Draws a plan. Of eight seeds one is calm: nothing goes wrong but handlers, and nothing may be lost or repeated. In three
 * only claims' answers are lost, only settlements are slow (so that many wait and leave together), only renewals fail.
 */
export function drawPlan(seed: number, random: Random): Plan {
  const calm = seed % 8 === 0;
  const [, strikes = null, hard = {}] = STRIKES.find(([n]) => n === seed % 8) ?? [];
  const on = (share: number) => !calm && random.chance(share);
  const leaseMs = random.pick([2_000, 4_000, 6_000, 9_000]);
  const fates = strikes === null && !calm ? drawFates(random) : hard;
  const actions: Partial<Record<ActionName, number>> = {};
  for (const [name, everyMs] of ACTIONS) {
    const wanted = strikes === null && on(0.4);
    if (wanted && !(name === "jump" && actions.suspend !== undefined)) {
      actions[name] = everyMs * random.between(0.5, 1.5);
    }
  }
  if (seed % 8 >= 4) actions.outage = random.between(2_000, 6_000);
  if (strikes === "claim") actions.drain = 6_000;
  if (calm) actions["end-member"] = 30_000;
  if (calm && random.chance(0.5)) actions.drain = 12_000;
  const tempers = TEMPERS.filter(() => random.chance(strikes === "settle" ? 0.9 : 0.5)).map(([b, w]) =>
    [w, b] as const
  );
  const shortKeys = random.chance(0.15);
  return {
    ...{ leaseMs, fates, strikes, actions },
    workers: random.whole(2, 4),
    producers: shortKeys ? 1 : random.whole(1, 2),
    orgs: random.whole(2, 3),
    batches: random.whole(10, 20),
    pollMs: random.pick([300, 700, 1_000]),
    sweepMs: random.pick([1_000, 2_000, 4_000]),
    capacity: random.pick(strikes === "claim" ? [1, 2] : strikes === "settle" ? [4, 12] : [1, 2, 4, 12]),
    drainGraceMs: random.pick([0, 1_000, 5_000]),
    claimAheadMs: strikes === "claim" ? 500 : random.pick([0, 50, 500]),
    timeoutMs: random.pick([3_000, 8_000, 15_000]),
    itemRetentionMs: random.pick([0, 15_000, 3_600_000, 3_600_000]),
    keyRetentionMs: shortKeys ? 20_000 : 7_200_000,
    listening: random.chance(0.3),
    hintLoss: random.pick([0, 0.2, 1]),
    // Round trips are short beside a lease: longer ones are a fault, and are drawn as such.
    latencyMs: random.pick([1, 5, leaseMs / 100]),
    skewMs: on(0.7) ? random.between(-600_000, 600_000) : 0,
    drift: on(0.5) ? 0.02 : 0,
    handlers: [[4, "quick"], [2, "slow"], ...tempers],
    poison: on(0.3) ? 0.05 : 0,
    doomed: random.chance(0.5) ? 0.06 : 0,
  };
}

function drawFates(random: Random): Partial<Record<Fate, number>> {
  const fates: Partial<Record<Fate, number>> = {};
  const severity = random.pick([0.01, 0.03, 0.08]);
  for (const fate of ALL_FATES) if (random.chance(0.5)) fates[fate] = severity * random.between(0.3, 1);
  return fates;
}
