import assert from "node:assert/strict";
import { z } from "zod";
import type { OpContext } from "../core/context.ts";
import { systemClock } from "../core/clock.ts";
import { newId } from "../core/ids.ts";
import { noMetrics } from "../core/metrics.ts";
import { MemoryTopics } from "../infra/memory_topics.ts";
import { Enqueuer } from "./enqueuer.ts";
import { defineKind } from "./kinds.ts";
import type { ItemInsert, WorkStorage } from "./storage.ts";

const KIND = defineKind("A_KIND", { schema: z.object({}) });

/** How many items each statement of a call of `count` holds, and how many of them were on their way at once. */
async function statementsOf(count: number): Promise<{ sizes: number[]; atOnce: number }> {
  const sizes: number[] = [];
  let running = 0;
  let atOnce = 0;
  const createItems = async (_orgId: string, inserts: readonly ItemInsert[]) => {
    sizes.push(inserts.length);
    atOnce = Math.max(atOnce, ++running);
    await Promise.resolve();
    running--;
    return inserts.map(() => "INSERTED" as const);
  };
  const topics = new MemoryTopics();
  const enqueuer = new Enqueuer({
    storage: { createItems } as unknown as WorkStorage,
    kinds: new Map([[KIND.name, KIND]]),
    topics,
    clock: systemClock,
    metrics: noMetrics,
    payloadLimitBytes: 1_000,
  });
  const ctx = { orgId: newId(), user: { id: newId() }, request: {} } as unknown as OpContext;
  const items = Array.from({ length: count }, (_, n) => ({ kind: KIND.name, idempotencyKey: `k${n}`, payload: {} }));
  assert.equal((await enqueuer.enqueueMany(ctx, items)).length, count);
  await topics.close();
  return { sizes, atOnce };
}

Deno.test("a call of many is as many statements as may be on their way, of no more than a thousand items", async () => {
  assert.deepEqual(await statementsOf(250), { sizes: [250], atOnce: 1 });
  assert.deepEqual(await statementsOf(1_000), { sizes: [334, 334, 332], atOnce: 3 });
  assert.deepEqual((await statementsOf(5_500)).sizes, [1_000, 1_000, 1_000, 1_000, 1_000, 500]);
});
