import assert from "node:assert/strict";
import fc from "fast-check";
import { FakeClock } from "../core/fake_clock.ts";
import { Deadlines } from "./deadlines.ts";

Deno.test("deadlines fire once, at their time and in no other order, unless they were taken back", async () => {
  const entry = fc.record({
    afterMs: fc.integer({ min: 0, max: 500 }),
    ms: fc.integer({ min: 0, max: 5_000 }),
    takenBack: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(entry, { maxLength: 8 }), async (entries) => {
      const clock = new FakeClock();
      const deadlines = new Deadlines(clock);
      const stop = new AbortController();
      const running = deadlines.run(stop.signal);
      const expected: number[] = [];
      const fired: number[] = [];
      for (const { afterMs, ms, takenBack } of entries) {
        await clock.tick(afterMs);
        const atMs = clock.monotonic() + ms;
        const deadline = deadlines.add(ms, () => {
          assert.equal(clock.monotonic(), atMs);
          fired.push(atMs);
        });
        if (takenBack) deadlines.remove(deadline);
        else expected.push(atMs);
      }
      await clock.tick(10_000);
      assert.deepEqual(fired, expected.sort((a, b) => a - b));
      stop.abort();
      await running;
      assert.equal(clock.sleeping, 0);
    }),
    { numRuns: 20 },
  );
});
