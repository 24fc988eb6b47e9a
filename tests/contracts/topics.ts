/**
 * What every `Topics` holds. Delivery is at most once and may fail, so the cases publish until a hint arrives where it
 * must, and use a marker message where it must not.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { TopicEvent, Topics } from "../../src/infra/topics.ts";
import { waitFor } from "../support/wait_for.ts";

/** Two ends of the same topics: for a process-local implementation both are one object. */
export interface TopicsPair {
  /** Where messages are published. */
  readonly publisher: Topics;
  /** Where they are heard; another process's, as far as the implementation knows. */
  readonly subscriber: Topics;
  /** Releases everything. */
  close(): Promise<void>;
}

type Seen = TopicEvent<"WORK_AVAILABLE">;

async function deliveredTo(seen: readonly Seen[], pair: TopicsPair, lane: string): Promise<void> {
  await waitFor(`the hint for ${lane}`, async () => {
    await pair.publisher.publish("WORK_AVAILABLE", { lane });
    await new Promise((resolve) => setTimeout(resolve, 0));
    return seen.some((event) => event.type === "message" && event.payload.lane === lane);
  });
}

/** Runs the contract. `make` gives a fresh pair for each case. */
export function testTopics(name: string, make: () => Promise<TopicsPair>): void {
  const check = (what: string, body: (pair: TopicsPair) => Promise<void>) =>
    Deno.test(`${name}: ${what}`, async () => {
      const pair = await make();
      try {
        await body(pair);
      } finally {
        await pair.close();
      }
    });

  check("subscribe() gets what is published, payload whole", async (pair) => {
    const seen: Seen[] = [];
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => seen.push(event));
    const lane = `bahnhöfe "12" 🚚 '\\`;
    await deliveredTo(seen, pair, lane);
  });

  check("subscribe() gets its own topic only", async (pair) => {
    const work: Seen[] = [];
    const outbox: unknown[] = [];
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => work.push(event));
    pair.subscriber.subscribe("OUTBOX_PENDING", (event) => event.type === "message" && outbox.push(event));
    await deliveredTo(work, pair, "marker");
    assert.deepEqual(outbox, []);
  });

  check("every subscriber gets the hint, also beside one that throws", async (pair) => {
    const first: Seen[] = [];
    const second: Seen[] = [];
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => first.push(event));
    pair.subscriber.subscribe("WORK_AVAILABLE", () => {
      throw new Error("a subscriber's own trouble");
    });
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => second.push(event));
    await deliveredTo(first, pair, "all");
    await deliveredTo(second, pair, "all");
  });

  check("the function subscribe() returned ends the delivery", async (pair) => {
    const ended: Seen[] = [];
    const going: Seen[] = [];
    const unsubscribe = pair.subscriber.subscribe("WORK_AVAILABLE", (event) => ended.push(event));
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => going.push(event));
    await deliveredTo(ended, pair, "before");
    unsubscribe();
    const count = ended.length;
    await deliveredTo(going, pair, "after");
    assert.equal(ended.length, count);
    unsubscribe();
  });

  check("publish() does not run subscribers before it returns", async (pair) => {
    const seen: Seen[] = [];
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => seen.push(event));
    await deliveredTo(seen, pair, "ready");
    const before = seen.length;
    const published = pair.publisher.publish("WORK_AVAILABLE", { lane: "later" });
    assert.equal(seen.length, before);
    await published;
  });

  check("publish() never rejects: without subscribers, with a payload too long, after close()", async (pair) => {
    await pair.publisher.publish("OUTBOX_PENDING", {});
    await pair.publisher.publish("WORK_AVAILABLE", { lane: "x".repeat(20_000) });
    await pair.publisher.close();
    await pair.publisher.publish("OUTBOX_PENDING", {});
  });

  check("close() ends delivery; closing twice is one closing", async (pair) => {
    const seen: Seen[] = [];
    pair.subscriber.subscribe("WORK_AVAILABLE", (event) => seen.push(event));
    await deliveredTo(seen, pair, "before");
    await pair.subscriber.close();
    const count = seen.length;
    await pair.publisher.publish("WORK_AVAILABLE", { lane: "after" });
    await pair.subscriber.close();
    assert.equal(seen.length, count);
  });
}
