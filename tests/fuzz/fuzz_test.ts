import assert from "node:assert/strict";
import { fuzz } from "./target.ts";
import { TARGETS } from "./targets.ts";

/** Of each target in CI; `deno task fuzz` runs more. */
const RUNS = 400;
const LIMIT_MS = 6_000;

for (const target of TARGETS) {
  Deno.test({
    name: target.behaviour,
    // Pools and servers live as long as the test.
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const report = await fuzz(target, { runs: RUNS, limitMs: LIMIT_MS });
      const { kept, runs, seconds, seed, failure } = report;
      console.log(`${target.name}: ${kept} kept, ${runs} inputs in ${seconds.toFixed(1)} s, seed ${seed}`);
      assert.equal(failure, null, `${failure?.text}\n${JSON.stringify(failure?.input)}`);
      assert.ok(runs >= 5, `only ${runs} inputs were tried`);
    },
  });
}
