/**
 * The outbox: rows written with a core write in one storage call, handed on afterwards by the relay.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import type { Json } from "../core/json.ts";

/** One outbox row. Its id is the identity of whatever it becomes: the event's id, or the item's id and key. */
export interface OutboxRow {
  /** Names the row, and whatever it becomes. */
  readonly id: string;
  /** The org it is of. */
  readonly orgId: string;
  /** `work.<kind in lower case>` becomes an item; anything else is an entity change, `<room>.<entity>.<what>`. */
  readonly kind: string;
  /** What it says; an entity change holds its entity's `id`. */
  readonly payload: { readonly [key: string]: Json };
  /** Who made the write. */
  readonly actorId: string;
  /** The request the write was made in, when there was one. */
  readonly requestId: string | null;
  /** W3C trace context of that request, when it had one. */
  readonly traceparent: string | null;
  /** Database time of the write. */
  readonly createdAt: Date;
}

/** The port through which `work.*` rows leave the outbox; work satisfies it (rooms import leftwards only). */
export interface RelaySink {
  /**
   * Enqueues the item a row stands for: the row's id is the item's id and key, actor, request and trace come from the
   * row. Safe to repeat.
   *
   * @returns `UNKNOWN_KIND` when this build does not know the kind: the row stays pending.
   */
  enqueueRelayed(orgId: string, row: OutboxRow): Promise<"ENQUEUED" | "EXISTS" | "UNKNOWN_KIND">;
}

/** What one relay pass did. */
export interface RelayCounts {
  /** Rows handed on. */
  readonly relayed: number;
  /** Rows left pending because this build does not know their kind. */
  readonly unknownKind: number;
  /** Rows left pending because handing them on failed; the sweep comes back to them. */
  readonly failed: number;
  /** Rows older than the key retention: never relayed blindly, alarmed instead. */
  readonly tooOld: number;
}

/** How far the relay is behind. */
export interface OutboxLag {
  /** Pending rows, counted up to 10,000. */
  readonly pending: number;
  /** Age of the oldest pending row, 0 when there is none. */
  readonly oldestAgeSeconds: number;
}

/** Hands outbox rows on. Every operation is idempotent. */
export interface OutboxRelay {
  /** Relays rows just written, right after their core write committed. Never throws: the sweep takes what is left. */
  relay(rows: readonly OutboxRow[]): Promise<RelayCounts>;
  /** Relays up to `limit` pending rows, oldest first, whoever wrote them. */
  relayPending(rctx: RequestContext, limit: number): Promise<RelayCounts>;
  /** Removes rows handed on longer ago than the outbox retention; at most one batch. Returns how many. */
  purgeDone(rctx: RequestContext): Promise<number>;
  /** How far the relay is behind, over all orgs. */
  readLag(rctx: RequestContext): Promise<OutboxLag>;
}

/** Storage of the outbox. Rows are inserted by the storages whose writes they belong to, in the same statement. */
export interface OutboxStorage {
  /** Pending rows, oldest first, up to `limit`, skipping ids in `excluding`. Tenant-less: the relay serves all orgs. */
  readPending(limit: number, excluding?: readonly string[]): Promise<(OutboxRow & { readonly ageSeconds: number })[]>;
  /** Marks rows handed on, on database time. Rows done already stay as they are. Tenant-less. */
  markDone(rows: readonly { orgId: string; id: string }[]): Promise<void>;
  /** Deletes rows done more than `olderThanMs` ago, at most `limit`. Tenant-less. */
  purgeDone(olderThanMs: number, limit: number): Promise<number>;
  /** Tenant-less. */
  readLag(): Promise<OutboxLag>;
}
