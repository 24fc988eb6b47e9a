/**
 * Whose turn it is, as the rule says: the better priority always goes first; within one each org has its turn, beginning
 * behind the org that was served last there and coming round once; each gets an equal share, what is due first of it; what
 * the shares leave over goes to what is due first.
 *
 * @module
 */
import type { ClaimRequest } from "../../src/work/storage.ts";
import type { ModelItem } from "./work_model.ts";

/** By lane and priority: the org that was served last. */
export type Turns = Map<string, string>;

/** Behind which org a first turn begins. Storages begin anywhere; those compared are all made to begin here. */
export const TURNS_BEGIN = "00000000-0000-4000-8000-000000000000";

/** What a fair claim takes of `due`, which is in claim order. Moves the turns on. */
export function claimedFairly(due: readonly ModelItem[], { lane, limit }: ClaimRequest, turns: Turns): ModelItem[] {
  const taken = new Set<ModelItem>();
  for (const priority of new Set(due.map(({ item }) => item.priority))) {
    const left = limit - taken.size;
    if (left === 0) break;
    const level = due.filter(({ item }) => item.priority === priority);
    const turn = `${lane} ${priority}`;
    const all = [...new Set(level.map(({ orgId }) => orgId))].sort();
    const last = turns.get(turn) ?? TURNS_BEGIN;
    const inTurn = [...all.filter((org) => org > last), ...all.filter((org) => org <= last)].slice(0, left);
    const share = Math.ceil(left / inTurn.length);
    for (const orgId of inTurn) {
      const mine = level.filter((one) => one.orgId === orgId).slice(0, Math.min(share, limit - taken.size));
      if (mine.length === 0) break;
      for (const one of mine) taken.add(one);
      turns.set(turn, orgId);
    }
    for (const one of level) if (taken.size < limit) taken.add(one);
  }
  return [...taken];
}
