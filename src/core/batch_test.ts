import assert from "node:assert/strict";
import fc from "fast-check";
import { Batcher, type BatchOutcome } from "./batch.ts";
import { settlePromises } from "./fake_clock.ts";

const answer = (inputs: readonly number[]): BatchOutcome<number>[] =>
  inputs.map((value) => value < 0 ? { ok: false, error: value } : { ok: true, value: value * 2 });

Deno.test("each caller gets its own outcome, whatever the sizes, the bounds and the order of answers", async () => {
  const inputs = fc.array(fc.integer({ min: -5, max: 1_000 }), { maxLength: 60 });
  const bounds = fc.record({ maxSize: fc.integer({ min: 1, max: 9 }), concurrency: fc.integer({ min: 1, max: 4 }) });
  await fc.assert(
    fc.asyncProperty(inputs, bounds, fc.scheduler(), async (values, { maxSize, concurrency }, scheduler) => {
      let inFlight = 0;
      const run = scheduler.scheduleFunction((batch: readonly number[]) => Promise.resolve(answer(batch)));
      const batcher = new Batcher<number, number>({
        maxSize,
        concurrency,
        run: async (batch) => {
          assert.ok(batch.length >= 1 && batch.length <= maxSize);
          assert.ok(++inFlight <= concurrency);
          return await run(batch).finally(() => inFlight--);
        },
      });
      const settled = Promise.allSettled(values.map((value) => batcher.add(value)));
      await scheduler.waitFor(settled);
      for (const [i, result] of (await settled).entries()) {
        const value = values[i] ?? NaN;
        if (value < 0) assert.ok(result.status === "rejected" && result.reason === value);
        else assert.ok(result.status === "fulfilled" && result.value === value * 2);
      }
      assert.equal(batcher.waiting, 0);
    }),
    { numRuns: 50 },
  );
});

Deno.test("calls of one turn leave together, and the next batch fills while one is in flight", async () => {
  const sizes: number[] = [];
  const gates: (() => void)[] = [];
  const batcher = new Batcher<number, number>({
    maxSize: 500,
    run: async (batch) => {
      sizes.push(batch.length);
      await new Promise<void>((resolve) => gates.push(resolve));
      return answer(batch);
    },
  });
  const first = [1, 2, 3].map((n) => batcher.add(n));
  await settlePromises();
  assert.deepEqual(sizes, [3]);
  const second = [4, 5].map((n) => batcher.add(n));
  await settlePromises();
  second.push(batcher.add(6));
  assert.deepEqual([sizes, batcher.waiting], [[3], 3]);
  gates[0]?.();
  await Promise.all(first);
  await settlePromises();
  gates[1]?.();
  await Promise.all(second);
  assert.deepEqual(sizes, [3, 3]);
});

Deno.test("a batch that throws, at once or later, or answers with too little fails its own callers and no other", async () => {
  let runs = 0;
  const batcher = new Batcher<number, number>({
    maxSize: 1,
    run: (batch) => {
      runs++;
      if (runs === 1) throw new Error("at once");
      if (runs === 2) return Promise.reject(new Error("later"));
      return Promise.resolve(runs === 3 ? [] : answer(batch));
    },
  });
  const results = await Promise.allSettled([1, 2, 3, 4].map((n) => batcher.add(n)));
  assert.deepEqual(results.map(({ status }) => status), ["rejected", "rejected", "rejected", "fulfilled"]);
});
