/**
 * The activity area: audit entries (what was done, by whom) and events (what changed, in order, for each org).
 *
 * @module
 */
import type { OpContext, RequestContext } from "../core/context.ts";
import type { Json } from "../core/json.ts";

/** One audit entry. Its id is minted by whoever causes it, so writing it twice is writing it once. */
export interface AuditEntry {
  /** Names the entry for ever. */
  readonly id: string;
  /** The org it is of. */
  readonly orgId: string;
  /** The acting user; `EMPTY_UUID` for bookkeeping. */
  readonly actorId: string;
  /** What was done, in upper snake case, for example `WORK_DEAD_LETTERED`. */
  readonly action: string;
  /** The noun acted on, for example `work_item`. */
  readonly subjectType: string;
  /** The id of what was acted on. */
  readonly subjectId: string;
  /** The request it was done in, when there was one. */
  readonly requestId: string | null;
  /** `<program>@<release>`. */
  readonly app: string;
  /** What else is worth knowing, as JSON; never a secret. */
  readonly detail: Json;
  /** When it was done. */
  readonly createdAt: Date;
}

/** One event of an org's history. `seq` is gapless within the org and starts at 1. */
export interface ActivityEvent {
  /** Names the event for ever: the id of the outbox row it came from. */
  readonly id: string;
  /** The org whose history it belongs to. */
  readonly orgId: string;
  /** Its place in that history. */
  readonly seq: number;
  /** For example `shipments.shipment.created`. */
  readonly kind: string;
  /** The acting user; `EMPTY_UUID` for bookkeeping. */
  readonly actorId: string;
  /** The request that caused it, when there was one. */
  readonly requestId: string | null;
  /** What the change says of itself; an entity change holds its entity's `id`. */
  readonly payload: Json;
  /** Database time of the append. */
  readonly createdAt: Date;
}

/** An event before it has its place. */
export type NewEvent = Omit<ActivityEvent, "seq" | "createdAt">;

/** What became of an append: the event's seq, and whether this call gave it. */
export interface AppendOutcome {
  /** The place the event has. */
  readonly seq: number;
  /** False when an earlier call had appended it. */
  readonly inserted: boolean;
}

/** Operations on the activity area. */
export interface AuditManager {
  /** Writes entries across orgs; an entry whose id exists is left as it stands. Bookkeeping: no principal. */
  appendEntries(rctx: RequestContext, entries: readonly AuditEntry[]): Promise<void>;
  /** Appends one event under the next seq of its org. The same id again returns the seq it has. */
  appendEvent(event: NewEvent): Promise<AppendOutcome>;
  /** Entries of the org, newest first. */
  readEntries(ctx: OpContext, options: { limit: number }): Promise<AuditEntry[]>;
  /** Events of the org after `afterSeq`, in order. */
  readEvents(ctx: OpContext, options: { afterSeq: number; limit: number }): Promise<ActivityEvent[]>;
}

/** Storage of the activity area. */
export interface AuditStorage {
  /** One statement for entries of many orgs, existing ids left alone. Tenant-less: dead letters of a batch span orgs. */
  createEntries(entries: readonly AuditEntry[]): Promise<void>;
  /**
   * Takes the org's next seq from its cursor row and inserts the event, in one statement under the org's tenant. A
   * duplicate id violates the key and so rolls the cursor back (an `ON CONFLICT` after the bump would leave a gap); the
   * seq already given is then read back.
   */
  appendEvent(event: NewEvent): Promise<AppendOutcome>;
  /** Entries of one org, newest first. */
  readEntries(orgId: string, limit: number): Promise<AuditEntry[]>;
  /** Events of one org after `afterSeq`, in order. */
  readEvents(orgId: string, afterSeq: number, limit: number): Promise<ActivityEvent[]>;
}
