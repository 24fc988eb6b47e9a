/**
 * What a host may claim at a moment: pure, told the row, the time and how much is in flight.
 *
 * The claim's filter and the row policy of the database (`migrations/queue`) repeat what stands in the row; what only this
 * function knows are the windows and the cap.
 *
 * @module
 */
import type { ClaimAllowance, ClaimRefusal, HostRow, HostWindow } from "./types.ts";
import { describeWindow, openWindow } from "./windows.ts";

/** What is known when a claim is asked for. */
export interface PolicyFacts {
  /** The host's name, for the words. */
  readonly host: string;
  /** Its row; null when there is none. */
  readonly row: HostRow | null;
  /** Database time, epoch milliseconds. */
  readonly atMs: number;
  /** The kinds this runner has a command for. */
  readonly kinds: readonly string[];
  /** The lane this runner works on. */
  readonly lane: string;
  /** Items the host holds now, all its runners together; null when they were not counted: the cap is then not looked at. */
  readonly inFlight: number | null;
  /** The most items the runner has room for. */
  readonly limit: number;
}

/** Whether something may be claimed. */
export function isAllowance(answer: ClaimAllowance | ClaimRefusal): answer is ClaimAllowance {
  return "limit" in answer;
}

/** What may be claimed now, or why nothing may. Fails closed: what is missing, unknown or empty allows nothing. */
export function decideClaim(facts: PolicyFacts): ClaimAllowance | ClaimRefusal {
  const { host, row, atMs, inFlight } = facts;
  if (row === null) {
    return refuse(
      "no-row",
      `queue.hosts has no row ${host}, or this key may not see it: insert it, named as the key's host`,
    );
  }
  if (!row.enabled) return refuse("disabled", `host ${host} is switched off: set enabled in its row of queue.hosts`);
  if (row.windows.length === 0) {
    return refuse("no-window", `host ${host} has no windows: add one to its row, from 00:00 to 00:00 for always`);
  }
  const window = openWindow(row.windows, atMs);
  if (window === null) return refuse("window-closed", `no window of host ${host} holds now`);
  if (window.maxInFlight === 0) return refuse("window-closed", `window ${describeWindow(window)} allows nothing`);
  const allowed = allowedBy(row, window, facts);
  if (typeof allowed === "string") return refuse("nothing-allowed", allowed);
  if (inFlight !== null && inFlight >= window.maxInFlight) {
    return refuse("at-cap", `host ${host} holds ${inFlight} of ${window.maxInFlight} items that ${window.name} allows`);
  }
  const room = inFlight === null ? window.maxInFlight : window.maxInFlight - inFlight;
  return { ...allowed, limit: Math.min(facts.limit, room), host };
}

/** The window's cap when it is exceeded: how many items above it the host holds. 0 when nothing is known to hold. */
export function excessOf(row: HostRow | null, atMs: number, inFlight: number): number {
  const cap = row === null ? null : openWindow(row.windows, atMs)?.maxInFlight ?? null;
  return cap === null ? 0 : Math.max(0, inFlight - cap);
}

/** The row's lists as far as this runner and the window share them, or what is empty of them. */
function allowedBy(
  row: HostRow,
  window: HostWindow,
  { host, kinds, lane }: PolicyFacts,
): Omit<ClaimAllowance, "limit" | "host"> | string {
  if (row.lane !== lane) {
    return `host ${host} serves lane ${row.lane} and this runner works on ${lane}: start it with --lane ${row.lane}`;
  }
  if (row.orgIds.length === 0) return `host ${host} serves no org: add their ids to org_ids in its row`;
  const shared = kinds.filter((kind) => row.kinds.includes(kind));
  if (shared.length === 0) {
    return `none of the kinds of host ${host} (${row.kinds.join(", ") || "none"}) has a command here ` +
      `(${kinds.join(", ") || "none"}): add it to kinds in its row, or a command to the config`;
  }
  // A window narrows what the host may take and never widens it: the database holds to the row's weights alone.
  const weights = row.weights.filter((weight) => window.weights?.includes(weight) ?? true);
  if (weights.length === 0) return `window ${window.name} and host ${host} share no weight: look at weights of both`;
  return { orgIds: row.orgIds, kinds: shared, weights, priorityFloor: row.priorityFloor };
}

function refuse(reason: ClaimRefusal["reason"], said: string): ClaimRefusal {
  return { reason, said };
}
