/**
 * Topics within one process.
 *
 * @module
 */
import type { TopicEvent, TopicName, TopicPayloads, Topics } from "./topics.ts";

type Listener = (event: TopicEvent<TopicName>) => void;

/** Delivers within the process, in a later microtask, so that a publisher never runs its subscribers' code. */
export class MemoryTopics implements Topics {
  readonly #listeners = new Map<TopicName, Set<Listener>>();

  /** Hands a message to every subscriber of this process. */
  publish<T extends TopicName>(topic: T, payload: TopicPayloads[T]): Promise<void> {
    const listeners = this.#listeners.get(topic);
    if (listeners === undefined) return Promise.resolve();
    queueMicrotask(() => {
      for (const listener of [...listeners]) {
        try {
          listener({ type: "message", payload } as TopicEvent<TopicName>);
        } catch {
          // A hint's listener that throws loses the hint and nothing else.
        }
      }
    });
    return Promise.resolve();
  }

  /** Listens until the function it returns is called. */
  subscribe<T extends TopicName>(topic: T, listener: (event: TopicEvent<T>) => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set<Listener>();
    this.#listeners.set(topic, listeners);
    const added = listener as Listener;
    listeners.add(added);
    return () => listeners.delete(added);
  }

  /** Drops every subscriber. */
  close(): Promise<void> {
    this.#listeners.clear();
    return Promise.resolve();
  }
}
