/**
 * Topics: hints between parts of the system. A topic delivers at most once and may lose everything; whatever must
 * happen rides an outbox row or an item instead.
 *
 * @module
 */

/** The topics and what each carries. Payloads are small JSON objects. */
export interface TopicPayloads {
  /** An item became claimable in a lane; null when whoever knows of it does not know its lane. */
  WORK_AVAILABLE: { readonly lane: string | null };
  /** Outbox rows were written and wait for the relay. */
  OUTBOX_PENDING: Record<never, never>;
  /** An entity of an org changed; `seq` is its event's place in the org's history. */
  ENTITY_CHANGED: { readonly orgId: string; readonly entity: string; readonly entityId: string; readonly seq: number };
}

/** A topic's name. */
export type TopicName = keyof TopicPayloads;

/** What a subscriber is called with; `"resubscribed"` after a gap in which messages may have been lost: poll once. */
export type TopicEvent<T extends TopicName> = { readonly type: "message"; readonly payload: TopicPayloads[T] } | {
  readonly type: "resubscribed";
};

/** A hint on its way with somebody's transaction. */
export interface CarriedHint {
  /** What the transaction gives `pg_notify` on `HINT_CHANNEL`. */
  readonly text: string;
  /** To be called when the transaction has ended, however it did. */
  ended(): void;
}

/** Publishes and subscribes. Every implementation passes `testTopics`. */
export interface Topics {
  /** Sends a hint. Never rejects: a failed publish is logged and counted by the implementation. */
  publish<T extends TopicName>(topic: T, payload: TopicPayloads[T]): Promise<void>;
  /**
   * Asks to send a hint with a transaction of one's own, which saves a round trip; counted as sent. Null when it is to be
   * published as any other, once there is something to tell of: an equal one left a moment ago or is being carried, or
   * topics of this kind cannot. Absent is never.
   */
  carry?<T extends TopicName>(topic: T, payload: TopicPayloads[T]): CarriedHint | null;
  /** Calls `listener` for each message until the returned function is called. Listener errors are logged, not thrown. */
  subscribe<T extends TopicName>(topic: T, listener: (event: TopicEvent<T>) => void): () => void;
  /**
   * Whether hints of every process on the database are known to arrive at this moment; absent is no. Whoever subscribes
   * may poll less while it holds, and is told `resubscribed` each time it begins.
   */
  readonly listening?: boolean;
  /** Stops delivery and releases connections. */
  close(): Promise<void>;
}

/** The one NOTIFY channel hints travel on. */
export const HINT_CHANNEL = "laneway";

/** A hint as it travels: what `NOTIFY laneway, '…'` carries, for whoever publishes from within a transaction. */
export function encodeHint<T extends TopicName>(topic: T, payload: TopicPayloads[T]): string {
  return JSON.stringify({ topic, payload });
}
