/**
 * Storage of work items. Two implementations, one contract (`tests/contracts/work_storage.ts`).
 *
 * @module
 */
import type { RetryPolicy } from "./rules.ts";
import type { ClaimOrder, InsertOutcome, WorkItem, WorkStatus } from "./types.ts";

/** One insert: the item as the manager stamped it, and when it may first be claimed on database time. */
export interface ItemInsert {
  /** The row to insert. */
  readonly item: WorkItem;
  /** Milliseconds from the database's now, or a point in time (the past means now). Default now. */
  readonly start: { readonly delayMs: number } | { readonly notBefore: Date } | null;
}

/** The row that holds an item's id or key. `item` is null where only the key is left. */
export interface KeyHolder {
  /** The id of the item that took the key. */
  readonly id: string;
  /** The item; null where only its key is left. */
  readonly item: WorkItem | null;
}

/** What a claim asks for. */
export interface ClaimRequest {
  /** The lane to take from. */
  readonly lane: string;
  /** At least one. */
  readonly kinds: readonly string[];
  /** Recorded in `claimed_by`, for people. Never a fence. */
  readonly worker: string;
  /** How long the claim holds unrenewed, milliseconds. */
  readonly leaseMs: number;
  /** The most items to take. */
  readonly limit: number;
  /** Fresh for this call: with the item's id it names one claim. */
  readonly token: string;
  /** Default `due`. Without the index of the chain `fair` a fair claim may read the whole backlog, or fail. */
  readonly order?: ClaimOrder;
}

/** A row with its tenant beside it. */
export interface OwnedItem {
  /** The org the item is of. */
  readonly orgId: string;
  /** The row. */
  readonly item: WorkItem;
}

/** Names one claim of one item. Every write after the claim matches on all three. */
export interface ClaimRef {
  /** The org the item is of. */
  readonly orgId: string;
  /** The item. */
  readonly id: string;
  /** The token its claim was stamped with. */
  readonly token: string;
}

/** What a claim's holder asks to become of the item. */
export type Settlement =
  /** `keep` false: the item leaves no row, only its key stays taken, and a repeat is told `REFUSED`. Default true. */
  | (ClaimRef & { readonly to: "done"; readonly keep?: boolean })
  /** Dead letter; `auditId` is minted here and stays on the row until its audit entry is written. */
  | (ClaimRef & { readonly to: "failed"; readonly error: string; readonly auditId: string })
  /** The handler ran and failed; its attempt stays spent. */
  | (ClaimRef & { readonly to: "retry"; readonly delayMs: number; readonly error: string })
  /**
   * Handed back uncharged, by the handler's wish or because it never ran to an end (`ran` false). The latter, at once, keeps
   * its place among what is due: behind a backlog it would wait for all that came after it.
   */
  | (ClaimRef & { readonly to: "back"; readonly delayMs: number; readonly note: string | null; readonly ran: boolean });

/**
 * What a guarded write met. `ALREADY`: the row is finished in just this way under just this token, so an earlier answer
 * was lost. `REFUSED`: another claim, the sweep, or nobody holds it; nothing was changed.
 */
export type WriteOutcome = "WRITTEN" | "ALREADY" | "REFUSED";

/** Where a claimed item stands, for reading back. Absent rows are left out. */
export interface ClaimState {
  /** The org the item is of. */
  readonly orgId: string;
  /** The item. */
  readonly id: string;
  /** Its status now. */
  readonly status: WorkStatus;
  /** The token on the row; null when nobody holds it. */
  readonly token: string | null;
  /** Whether the lease has not passed, on database time. */
  readonly leaseLive: boolean;
}

/** What `requeueStale` did. */
export interface RequeueCounts {
  /** Items taken back to wait again. */
  readonly requeued: number;
  /** Items whose attempts were exhausted. */
  readonly deadLettered: number;
}

/** A dead letter whose audit entry is still to be written. */
export interface Unaudited {
  /** The org the item is of. */
  readonly orgId: string;
  /** The item. */
  readonly id: string;
  /** The id its audit entry is written under. */
  readonly auditId: string;
  /** Its kind. */
  readonly kind: string;
  /** The attempts it spent. */
  readonly attempts: number;
  /** What it failed of last. */
  readonly lastError: string | null;
  /** The request that enqueued it, when there was one. */
  readonly requestId: string | null;
}

/** The queue's gauges. */
export interface QueueGauges {
  /** Items due and waiting. */
  readonly queued: number;
  /** Age of the oldest of them since it was due, 0 when there is none. */
  readonly oldestAgeSeconds: number;
  /** Dead letters kept. */
  readonly failed: number;
}

/** What `promote` did, and when the next item becomes due. */
export interface Promotion {
  /** How many items became claimable. */
  readonly promoted: number;
  /** Milliseconds until the earliest item that is not yet due, on database time; null when there is none. */
  readonly nextDueInMs: number | null;
}

/** How a host stands, for the gauges. */
export interface HostGauge {
  /** Its name. */
  readonly name: string;
  /** Whether it is switched on. */
  readonly enabled: boolean;
  /** Seconds since its last heartbeat, on database time; null when there was none. */
  readonly heartbeatAgeSeconds: number | null;
  /** Items it holds by leases that have not passed. */
  readonly inFlight: number;
}

/** A caller's own open transaction, structurally: our code opens none. */
export interface CallerTransaction {
  /** Runs one statement in that transaction. */
  query(text: string, params: readonly unknown[]): Promise<unknown>;
}

/** Storage of work items. Every number is checked above; storage trusts its caller. */
export interface WorkStorage {
  /** The storage's own name, `sqlite` or `postgres`. */
  readonly engine: "sqlite" | "postgres";
  /** Whether `createItems` sends the hint it is given. Absent is no. */
  readonly carriesHints?: boolean;
  /**
   * Inserts items of one org in one statement, keys in key order; an id that comes again begins another. On a collision
   * nothing of that row changes; where id and key collide, `ID_EXISTS` is told. One outcome an insert, in order.
   *
   * @param hint Sent with the commit when anything was inserted, as `Topics.carry` told its text; where `carriesHints`.
   */
  createItems(orgId: string, inserts: readonly ItemInsert[], hint?: string | null): Promise<InsertOutcome[]>;
  /** `createItems` for one item inside a caller's own transaction. Postgres only; SQLite throws `ValidationError`. */
  createItemIn(tx: CallerTransaction, orgId: string, insert: ItemInsert): Promise<InsertOutcome>;
  /** Null when the org has none of this id. */
  readItem(orgId: string, id: string): Promise<WorkItem | null>;
  /** The holder of a key; null when the key is free. */
  readItemByKey(orgId: string, idempotencyKey: string): Promise<KeyHolder | null>;
  /**
   * Claims up to `limit` due items of the lane and kinds in order of priority, `available_at`, id: one statement that
   * stamps token, lease, attempt and `claims`. Tenant-less: a worker serves every org; the tenant comes back beside
   * each row.
   */
  claim(request: ClaimRequest): Promise<OwnedItem[]>;
  /**
   * Rows still held under a claim's token, for a claim whose answer was lost. Tenant-less as `claim`.
   */
  readClaimed(token: string): Promise<OwnedItem[]>;
  /** Settles claims of many orgs in one statement. Tenant-less: each row carries its org. One outcome a row, in order. */
  settle(settlements: readonly Settlement[]): Promise<WriteOutcome[]>;
  /** Sets leases to database now + `leaseMs`. Tenant-less as `settle`. `ALREADY` is never told. */
  extendLeases(refs: readonly ClaimRef[], leaseMs: number): Promise<WriteOutcome[]>;
  /** Where the given items stand. Tenant-less as `settle`. */
  readClaims(refs: readonly { orgId: string; id: string }[]): Promise<ClaimState[]>;
  /** Fails items whose org is gone, guarded by token, without an audit id: no tenant is left to hold one. Tenant-less. */
  failOrphaned(refs: readonly ClaimRef[], error: string): Promise<WriteOutcome[]>;
  /** Moves up to `limit` items that have become due into the claim's index. Tenant-less: serves every org. */
  promote(limit: number): Promise<Promotion>;
  /**
   * Takes back up to `limit` expired claims of one org: requeued at once after a first expiry, after `retryDelay` on a
   * later one, dead-lettered with an `audit_id` when exhausted. Clears token and holder.
   */
  requeueStale(orgId: string, limit: number, policy: RetryPolicy): Promise<RequeueCounts>;
  /** Orgs that hold expired claims. Tenant-less: tells the sweep whom to visit. */
  orgsWithStale(limit: number): Promise<string[]>;
  /** Fails up to `limit` expired claims of the named orgs, which have ended. Tenant-less: no context can be minted. */
  failStaleOf(orgIds: readonly string[], error: string, limit: number): Promise<number>;
  /** Dead letters whose audit entry is not written, oldest first. Tenant-less: the sweep serves every org. */
  readUnaudited(limit: number): Promise<Unaudited[]>;
  /** Clears `audit_id` where it is still the one given. Tenant-less as `settle`. */
  clearAudit(rows: readonly { orgId: string; id: string; auditId: string }[]): Promise<void>;
  /** Deletes done and failed items last written more than `olderThanMs` ago, sparing unaudited ones. Tenant-less. */
  purgeItems(olderThanMs: number, limit: number): Promise<number>;
  /**
   * Frees keys taken more than `olderThanMs` ago whose item is gone, at most `limit`. One call looks at a bounded piece of
   * the old keys and the next carries on behind it, so 0 does not say that none is left. Tenant-less.
   */
  purgeKeys(olderThanMs: number, limit: number): Promise<number>;
  /** Tenant-less: gauges are of the whole queue. */
  readGauges(): Promise<QueueGauges>;
  /**
   * Takes sweep steps for this pass: of those asked for, the ones nobody took within `intervalMs`, each by one caller, by
   * compare-and-set on `queue.sweep_steps`. One statement, which writes nothing when there is nothing to take.
   * Tenant-less: a step is the fleet's.
   */
  takeSweepSteps(steps: readonly string[], intervalMs: number): Promise<string[]>;
  /**
   * Moves up to `limit` items that hosts completed more than `olderThanMs` ago to where completions go; without `keep` they
   * leave no row. 0 where no host is served. Tenant-less: a host's completions are of several orgs.
   */
  archiveDone(olderThanMs: number, options: { readonly limit: number; readonly keep: boolean }): Promise<number>;
  /** Deletes up to `limit` rows of `queue.attempts` stored more than `olderThanMs` ago. Tenant-less as `purgeItems`. */
  purgeAttempts(olderThanMs: number, limit: number): Promise<number>;
  /** Orgs that stand on hosts' lists, in id order after `afterOrgId`. Tenant-less: a host belongs to no org. */
  hostOrgs(afterOrgId: string | null, limit: number): Promise<string[]>;
  /** Takes orgs off every host's list; how many hosts that changed. Tenant-less: the orgs named have ended. */
  dropHostOrgs(orgIds: readonly string[]): Promise<number>;
  /** Hosts in order of their names, for the gauges. Tenant-less: a host belongs to no org. */
  readHosts(limit: number): Promise<HostGauge[]>;
}
