/**
 * The chaos in short: what `deno task chaos` does at full size, with a few workers.
 */
import assert from "node:assert/strict";
import { buildTestWorkerIfCan } from "../support/test_worker.ts";
import { findFakeTime } from "./fake_time.ts";
import { RESUME_MS, wrongs } from "./report.ts";
import { runChaos } from "./run.ts";

Deno.test("killed, frozen, cut off, restarted and failed over, a fleet loses no item and ends none twice", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-chaos-test-" });
  try {
    const binary = await buildTestWorkerIfCan(folder, { name: "chaos-worker", source: "tests/chaos/worker.ts" });
    if (binary === null) return;
    const fakeTime = await findFakeTime();
    if (fakeTime === null) console.log("NOT RUN: wrong clocks, which need libfaketime (Debian's package libfaketime)");
    const said: string[] = [];
    const report = await runChaos({
      ...{ binary, fakeTime, items: 8_000, workers: 4, poisonEvery: 1_000 },
      ...{ leaseMs: 3_000, sweepMs: 500, killEveryMs: 1_500, freezeEveryMs: 5_000 },
      say: (line) => void said.push(line),
    });
    assert.deepEqual(wrongs(report), [], said.join("\n"));
    assert.equal(report.dead, 8);
    assert.ok(report.kills >= 5 && report.freezes >= 1, `${report.kills} killed, ${report.freezes} frozen`);
    for (const [what, times] of Object.entries(report.resumedMs)) {
      for (const ms of times) assert.ok(ms < RESUME_MS, `after ${what} claims resumed after ${ms} ms`);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
