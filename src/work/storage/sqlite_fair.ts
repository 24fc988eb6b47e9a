/**
 * Which rows a fair claim takes on SQLite. The same turns as on Postgres (`fair_sql.ts`), one small statement after the
 * other: nobody else claims meanwhile.
 *
 * @module
 */
import type { SqliteParam, SqliteSession } from "../../db/sqlite.ts";
import type { ClaimRequest } from "../storage.ts";
import { type FairTurns, MAX_ORGS } from "./fair_turns.ts";
import * as sql from "./sqlite_sql.ts";

/** A part of a claim: the orgs of one priority. */
interface Level {
  readonly lane: string;
  readonly kinds: readonly string[];
  readonly priority: number;
  /** The most rows. */
  readonly limit: number;
}

/** The rowids of due rows: priority by priority, of each org its share, and what is due first where shares leave room. */
export function pickFairly(s: SqliteSession, request: ClaimRequest, turns: FairTurns): SqliteParam[] {
  const picked = new Set<SqliteParam>();
  let priority = firstPriority(s, request, 0);
  while (priority !== null && picked.size < request.limit) {
    const level = { lane: request.lane, kinds: request.kinds, priority, limit: request.limit - picked.size };
    const more = pickShares(s, level, turns);
    for (const rowid of more.concat(pickRest(s, level, more))) picked.add(rowid);
    priority = firstPriority(s, request, priority + 1);
  }
  return [...picked];
}

/** The first rows of several lists in claim order, as rowids; each row is rowid, priority, due time and id. */
export function firstOf(heads: readonly SqliteParam[][][], limit: number): SqliteParam[] {
  const rows = heads.length === 1 ? heads[0] ?? [] : heads.flat().sort(byDueOrder).slice(0, limit);
  return rows.map(([rowid]) => rowid ?? null);
}

function byDueOrder([, priorityA, dueA, idA]: SqliteParam[], [, priorityB, dueB, idB]: SqliteParam[]): number {
  return Number(priorityA) - Number(priorityB) || Number(dueA) - Number(dueB) || (String(idA) < String(idB) ? -1 : 1);
}

function firstPriority(s: SqliteSession, { lane, kinds }: ClaimRequest, from: number): number | null {
  const found = kinds.flatMap((kind) => s.rows(sql.DUE_FROM_PRIORITY, lane, kind, from, s.nowMs));
  return found.length === 0 ? null : Math.min(...found.map(([priority]) => Number(priority)));
}

function pickShares(s: SqliteSession, level: Level, turns: FairTurns): SqliteParam[] {
  const { lane, kinds, priority, limit } = level;
  const orgs = orgsInTurn(s, level, turns.after(lane, priority));
  const share = Math.ceil(limit / Math.max(orgs.length, 1));
  const picked: SqliteParam[] = [];
  for (const orgId of orgs) {
    if (picked.length >= limit) break;
    const most = Math.min(share, limit - picked.length);
    const heads = kinds.map((kind) => s.rows(sql.DUE_OF_ORG, lane, kind, priority, orgId, s.nowMs, most));
    picked.push(...firstOf(heads, most));
    turns.served(lane, priority, orgId);
  }
  return picked;
}

/** Orgs with something due, beginning behind `after` and coming round once; no more than rows to pick, and `MAX_ORGS`. */
function orgsInTurn(s: SqliteSession, level: Level, after: string): string[] {
  const orgs: string[] = [];
  let round = false;
  for (let at = after; orgs.length < Math.min(level.limit, MAX_ORGS);) {
    const next = nextOrg(s, level, at);
    if (next !== null && (!round || next <= after)) orgs.push(at = next);
    else if (round) break;
    else [round, at] = [true, ""];
  }
  return orgs;
}

function nextOrg(s: SqliteSession, { lane, kinds, priority }: Level, after: string): string | null {
  const found = kinds.flatMap((kind) => s.rows(sql.NEXT_ORG, lane, kind, priority, after, s.nowMs));
  return found.map(([orgId]) => String(orgId)).sort()[0] ?? null;
}

/** What is due first at the priority and is not picked yet. */
function pickRest(s: SqliteSession, level: Level, picked: readonly SqliteParam[]): SqliteParam[] {
  const { lane, kinds, priority, limit } = level;
  if (picked.length >= limit) return [];
  // Some of them, or all, are picked already; so many more are enough.
  const heads = kinds.map((kind) => s.rows(sql.DUE_OF_PRIORITY, lane, kind, priority, s.nowMs, limit));
  const known = new Set(picked);
  return firstOf(heads, limit * kinds.length).filter((rowid) => !known.has(rowid)).slice(0, limit - picked.length);
}
