/**
 * What every storage of work items must do, in the words of the design's rules and in nothing of the product's code: maps
 * and loops over them, one method an operation. Types alone are shared.
 *
 * What a storage may choose is left to whoever compares: ids minted inside are `MINTED`, and delays drawn at random are the
 * longest that the rules allow.
 *
 * @module
 */
import type {
  ClaimRef,
  ClaimRequest,
  ClaimState,
  ItemInsert,
  KeyHolder,
  OwnedItem,
  Promotion,
  QueueGauges,
  RequeueCounts,
  Settlement,
  Unaudited,
  WriteOutcome,
} from "../../src/work/storage.ts";
import type { RetryPolicy } from "../../src/work/rules.ts";
import type { InsertOutcome, WorkItem } from "../../src/work/types.ts";
import { claimedFairly, type Turns } from "./fair_model.ts";

/** Stands for an id that a storage mints. */
export const MINTED = "minted";
/** Signs what the house writes. */
const NOBODY = "00000000-0000-0000-0000-000000000000";
/** No retry is sooner. */
export const SOONEST_RETRY_MS = 100;

/** An item as the model holds it. */
export interface ModelItem {
  readonly orgId: string;
  /** Whether a claim may see it once it is due: true from the start, or by promotion. */
  inReach: boolean;
  item: Writable<WorkItem>;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The longest wait before the run after `attempt`. */
export function longestRetry(attempt: number, { baseMs, capMs }: RetryPolicy): number {
  return Math.max(Math.min(capMs, baseMs * 2 ** (attempt - 1)), SOONEST_RETRY_MS);
}

/** Items of all orgs, their keys, and the time. */
export class WorkModel {
  nowMs = Date.UTC(2026, 0, 1);
  readonly items = new Map<string, ModelItem>();
  readonly keys = new Map<string, { readonly orgId: string; readonly itemId: string; readonly takenMs: number }>();
  /** Every claim ever made of every item: what a holder, timely or late, may present. */
  readonly claims: ClaimRef[] = [];
  readonly steps = new Map<string, number>();
  readonly turns: Turns = new Map();

  /** Enqueue is a create: an id or a key that exists changes nothing; of both the id is told. */
  create(orgId: string, inserts: readonly ItemInsert[]): InsertOutcome[] {
    return inserts.map(({ item, start }) => {
      if (this.items.has(nameOf(orgId, item.id))) return "ID_EXISTS";
      const key = nameOf(orgId, item.idempotencyKey);
      if (this.keys.has(key)) return "KEY_EXISTS";
      const wantedMs = start === null
        ? this.nowMs
        : "delayMs" in start
        ? this.nowMs + start.delayMs
        : start.notBefore.getTime();
      const availableAt = new Date(Math.max(wantedMs, this.nowMs));
      this.keys.set(key, { orgId, itemId: item.id, takenMs: this.nowMs });
      this.items.set(nameOf(orgId, item.id), {
        orgId,
        inReach: availableAt.getTime() === this.nowMs,
        item: { ...item, status: "queued", availableAt },
      });
      return "INSERTED";
    });
  }

  readItem(orgId: string, id: string): WorkItem | null {
    const found = this.items.get(nameOf(orgId, id));
    return found === undefined ? null : { ...found.item };
  }

  readItemByKey(orgId: string, key: string): KeyHolder | null {
    const holder = this.keys.get(nameOf(orgId, key));
    return holder === undefined ? null : { id: holder.itemId, item: this.readItem(orgId, holder.itemId) };
  }

  /** What a claim may take: due, in reach, of its lane and kinds; best priority first, then longest due, then by id. */
  claimable(lane: string, kinds: readonly string[]): ModelItem[] {
    return this.#where(({ item, inReach }) =>
      item.status === "queued" && inReach && item.lane === lane && kinds.includes(item.kind) &&
      item.availableAt.getTime() <= this.nowMs
    ).sort(byClaimOrder);
  }

  claim(request: ClaimRequest): OwnedItem[] {
    const due = this.claimable(request.lane, request.kinds);
    const taken = request.order === "fair"
      ? claimedFairly(due, request, this.turns).sort(byClaimOrder)
      : due.slice(0, request.limit);
    return taken.map((one) => {
      Object.assign(one.item, {
        status: "claimed",
        claimedBy: request.worker,
        claimToken: request.token,
        leaseExpiresAt: new Date(this.nowMs + request.leaseMs),
        attempts: one.item.attempts + 1,
        claims: one.item.claims + 1,
      });
      this.#sign(one);
      this.claims.push({ orgId: one.orgId, id: one.item.id, token: request.token });
      return owned(one);
    });
  }

  readClaimed(token: string): OwnedItem[] {
    return this.#where(({ item }) => item.status === "claimed" && item.claimToken === token)
      .sort(byClaimOrder).map(owned);
  }

  settle(settlements: readonly Settlement[]): WriteOutcome[] {
    return settlements.map((settlement) => {
      const one = this.#held(settlement);
      if (one === undefined) return this.#repeated(settlement, settlement.to);
      switch (settlement.to) {
        case "done":
          if (settlement.keep === false) this.items.delete(nameOf(settlement.orgId, settlement.id));
          else this.#finish(one, { status: "done", expiries: 0 });
          break;
        case "failed":
          this.#finish(one, { status: "failed", lastError: settlement.error, auditId: settlement.auditId });
          break;
        case "retry":
          this.#handBack(one, settlement.delayMs, { lastError: settlement.error, expiries: 0 });
          break;
        case "back":
          // What never ran to an end, handed back at once, keeps its place.
          this.#handBack(one, settlement.ran || settlement.delayMs > 0 ? settlement.delayMs : "in its place", {
            attempts: one.item.attempts - 1,
            note: settlement.note ?? one.item.note,
            expiries: settlement.ran ? 0 : one.item.expiries,
          });
      }
      return "WRITTEN";
    });
  }

  failOrphaned(refs: readonly ClaimRef[], error: string): WriteOutcome[] {
    return refs.map((ref) => {
      const one = this.#held(ref);
      if (one === undefined) return this.#repeated(ref, "failed");
      this.#finish(one, { status: "failed", lastError: error, auditId: null });
      return "WRITTEN";
    });
  }

  extendLeases(refs: readonly ClaimRef[], leaseMs: number): WriteOutcome[] {
    return refs.map((ref) => {
      const one = this.#held(ref);
      if (one === undefined) return "REFUSED";
      one.item.leaseExpiresAt = new Date(this.nowMs + leaseMs);
      this.#sign(one);
      return "WRITTEN";
    });
  }

  readClaims(refs: readonly { orgId: string; id: string }[]): ClaimState[] {
    return refs.flatMap(({ orgId, id }) => {
      const item = this.readItem(orgId, id);
      if (item === null) return [];
      const leaseLive = item.leaseExpiresAt !== null && item.leaseExpiresAt.getTime() > this.nowMs;
      return [{ orgId, id, status: item.status, token: item.claimToken, leaseLive }];
    });
  }

  /** Items that are due and not in reach, those longest due first. */
  promotable(): ModelItem[] {
    return this.#where(({ item, inReach }) =>
      item.status === "queued" && !inReach && item.availableAt.getTime() <= this.nowMs
    ).sort((a, b) => a.item.availableAt.getTime() - b.item.availableAt.getTime());
  }

  promote(limit: number): Promotion {
    const due = this.promotable().slice(0, limit);
    for (const one of due) one.inReach = true;
    const ahead = this.#where(({ item, inReach }) =>
      item.status === "queued" && !inReach && item.availableAt.getTime() > this.nowMs
    );
    const nextMs = Math.min(...ahead.map(({ item }) => item.availableAt.getTime()));
    return { promoted: due.length, nextDueInMs: ahead.length === 0 ? null : nextMs - this.nowMs };
  }

  /** Claims whose lease has passed, those longest ago first. */
  stale(orgIds: readonly string[]): ModelItem[] {
    return this.#where(({ orgId, item }) =>
      orgIds.includes(orgId) && item.leaseExpiresAt !== null && item.leaseExpiresAt.getTime() <= this.nowMs
    ).sort((a, b) => leaseOf(a) - leaseOf(b));
  }

  requeueStale(orgId: string, limit: number, policy: RetryPolicy): RequeueCounts {
    const counts = { requeued: 0, deadLettered: 0 };
    for (const one of this.stale([orgId]).slice(0, limit)) {
      const { attempts, maxAttempts, expiries } = one.item;
      const lastError = `the lease of attempt ${attempts} expired`;
      if (attempts >= maxAttempts) {
        this.#finish(one, { status: "failed", claimToken: null, auditId: MINTED, lastError, expiries: expiries + 1 });
        counts.deadLettered++;
      } else {
        this.#handBack(one, expiries === 0 ? "in its place" : longestRetry(attempts, policy), {
          lastError,
          expiries: expiries + 1,
        });
        counts.requeued++;
      }
    }
    return counts;
  }

  orgsWithStale(): string[] {
    return [...new Set(this.stale(this.orgs()).map(({ orgId }) => orgId))];
  }

  failStaleOf(orgIds: readonly string[], error: string, limit: number): number {
    const all = this.stale(orgIds).slice(0, limit);
    for (const one of all) this.#finish(one, { status: "failed", claimToken: null, lastError: error });
    return all.length;
  }

  /** Dead letters without their audit entry, oldest first. */
  unaudited(): (Unaudited & { readonly atMs: number })[] {
    return this.#where(({ item }) => item.auditId !== null).map(({ orgId, item }) => ({
      orgId,
      id: item.id,
      auditId: item.auditId ?? "",
      kind: item.kind,
      attempts: item.attempts,
      lastError: item.lastError,
      requestId: item.requestId,
      atMs: item.updatedAt.getTime(),
    })).sort((a, b) => a.atMs - b.atMs);
  }

  clearAudit(orgId: string, id: string): void {
    const one = this.items.get(nameOf(orgId, id));
    if (one !== undefined) one.item.auditId = null;
  }

  /** What a purge removes: finished long ago and audited, done before failed, oldest first. */
  purgeable(olderThanMs: number): ModelItem[] {
    const old = (status: string) =>
      this.#where(({ item }) =>
        item.status === status && item.auditId === null && item.updatedAt.getTime() <= this.nowMs - olderThanMs
      ).sort((a, b) => a.item.updatedAt.getTime() - b.item.updatedAt.getTime());
    return [...old("done"), ...old("failed")];
  }

  purgeItems(olderThanMs: number, limit: number): number {
    const all = this.purgeable(olderThanMs).slice(0, limit);
    for (const { orgId, item } of all) this.items.delete(nameOf(orgId, item.id));
    return all.length;
  }

  /** Every key that was taken long ago and whose item is gone. */
  purgeKeys(olderThanMs: number): number {
    const free = [...this.keys].filter(([, { orgId, itemId, takenMs }]) =>
      takenMs <= this.nowMs - olderThanMs && !this.items.has(nameOf(orgId, itemId))
    );
    for (const [key] of free) this.keys.delete(key);
    return free.length;
  }

  readGauges(): QueueGauges {
    const due = this.#where(({ item, inReach }) => item.status === "queued" && inReach);
    const oldestMs = Math.min(this.nowMs, ...due.map(({ item }) => item.availableAt.getTime()));
    const failed = this.#where(({ item }) => item.status === "failed").length;
    return { queued: due.length, oldestAgeSeconds: (this.nowMs - oldestMs) / 1_000, failed };
  }

  takeSweepSteps(steps: readonly string[], intervalMs: number): string[] {
    const free = steps.filter((step) => {
      const takenMs = this.steps.get(step) ?? -Infinity;
      // A time from before the clock was set back does not count.
      return takenMs <= this.nowMs - intervalMs || takenMs > this.nowMs + intervalMs;
    });
    for (const step of free) this.steps.set(step, this.nowMs);
    return free;
  }

  orgs(): string[] {
    return [...new Set([...this.items.values()].map(({ orgId }) => orgId))];
  }

  #where(condition: (one: ModelItem) => boolean): ModelItem[] {
    return [...this.items.values()].filter(condition);
  }

  /** The fence: org, id, token, and a lease that has not passed. */
  #held({ orgId, id, token }: ClaimRef): ModelItem | undefined {
    const one = this.items.get(nameOf(orgId, id));
    const live = one?.item.status === "claimed" && one.item.claimToken === token && leaseOf(one) > this.nowMs;
    return live ? one : undefined;
  }

  /** A finished row keeps its token, so that a repeat is told from a stale holder. */
  #repeated({ orgId, id, token }: ClaimRef, to: string): WriteOutcome {
    const item = this.readItem(orgId, id);
    const finished = to === "done" || to === "failed";
    return finished && item?.status === to && item.claimToken === token ? "ALREADY" : "REFUSED";
  }

  #finish(one: ModelItem, fields: Partial<WorkItem>): void {
    Object.assign(one.item, { claimedBy: null, leaseExpiresAt: null, ...fields });
    this.#sign(one);
  }

  #handBack(one: ModelItem, delay: number | "in its place", fields: Partial<WorkItem>): void {
    const availableAt = delay === "in its place" ? one.item.availableAt : new Date(this.nowMs + delay);
    one.inReach = delay === "in its place" || delay === 0;
    this.#finish(one, { status: "queued", claimToken: null, availableAt, ...fields });
  }

  #sign({ item }: ModelItem): void {
    item.updatedAt = new Date(this.nowMs);
    item.updatedBy = NOBODY;
  }
}

function byClaimOrder({ item: a }: ModelItem, { item: b }: ModelItem): number {
  return a.priority - b.priority || a.availableAt.getTime() - b.availableAt.getTime() || (a.id < b.id ? -1 : 1);
}

function leaseOf({ item }: ModelItem): number {
  return item.leaseExpiresAt?.getTime() ?? Infinity;
}

function owned({ orgId, item }: ModelItem): OwnedItem {
  return { orgId, item: { ...item } };
}

function nameOf(orgId: string, name: string): string {
  return `${orgId} ${name}`;
}
