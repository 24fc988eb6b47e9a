import assert from "node:assert/strict";
import { runModel } from "./run.ts";
import { STORES } from "./stores.ts";

// Bounded by time too: a slow machine runs fewer, and says how many.
Deno.test({
  name: "random sequences of operations come to the same on every storage as in the model, results and errors alike",
  // The pools of the store live as long as the test.
  sanitizeResources: false,
  sanitizeOps: false,
  async fn() {
    const report = await runModel({ stores: STORES, runs: 500, limitMs: 30_000 });
    console.log(
      `${report.runs} sequences, ${report.commands} commands in ${report.seconds.toFixed(1)} s, seed ${report.seed}`,
    );
    assert.equal(report.failure, null, report.failure ?? "");
    assert.ok(report.runs >= 20, `only ${report.runs} sequences ran`);
  },
});

Deno.test("many more sequences come to the same on the embedded store, which is quick", async () => {
  const { failure, runs, seed } = await runModel({ stores: ["memory"], runs: 3_000, limitMs: 12_000 });
  console.log(`${runs} sequences, seed ${seed}`);
  assert.equal(failure, null, failure ?? "");
});

Deno.test("what a seed fails at is shown with what runs it again, and it fails there again", async () => {
  const stores = ["memory"] as const;
  const broken = { stores, runs: 200, seed: 1, tamper: true };
  const first = await runModel(broken);
  assert.match(
    first.failure ?? "",
    /seed 1, path [\d:]+.*Run it again: deno task model --store memory --seed=1 --path/s,
  );
  const [, path = "", replayPath = ""] = /--path (\S+) --replay "([^"]*)"/.exec(first.failure ?? "") ?? [];
  const again = await runModel({ ...broken, path, replayPath });
  assert.ok(again.failure !== null && again.runs === 1, "the failure alone was run");
});
