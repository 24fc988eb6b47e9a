/**
 * Some hundreds of seeds at each run of the suite; `deno task simulate --seeds N` runs as many as one likes.
 */
import assert from "node:assert/strict";
import { MUTATIONS } from "./mutations.ts";
import { DEFAULT_STEPS, describeFailure, runSeeds } from "./seeds.ts";
import { runSeed } from "./world.ts";

/** Kept small enough for two minutes on two slow cores; how long it took is told and never judged. */
const SEEDS = 200;
const ROOT = new URL("../../", import.meta.url);

Deno.test(`${SEEDS} simulated worlds keep every promise, and all that was begun in them ends`, async () => {
  const summary = await runSeeds({ from: 1, count: SEEDS, steps: DEFAULT_STEPS });
  assert.equal(summary.failed, null, summary.failed === null ? "" : describeFailure(summary.failed, DEFAULT_STEPS));
  console.log(summary.text);
  // A world in which nothing goes wrong proves nothing.
  const wanted = [
    ...["runs", "expired", "crashes", "drains", "settled done", "settled failed", "settled retry", "settled back"],
    ...[
      "aborted LEASE_LOST",
      "aborted TIMED_OUT",
      "aborted DRAINED",
      "log work.claim_recovered",
      "log work.handler_deaf",
    ],
    ...["fate refused", "fate lost", "fate hung", "fate late", "fate delayed", "fate vanished"],
    ...["action crash", "action freeze", "action suspend", "action jump", "action drain", "action outage"],
    ...["action end-org", "action end-member"],
  ];
  assert.deepEqual(wanted.filter((what) => (summary.seen.get(what) ?? 0) === 0), []);
});

Deno.test("the same seed is the same world, twice in one process and in another process", async () => {
  for (const seed of [3, 8, 21]) {
    const first = await runSeed(seed, 1_500);
    const second = await runSeed(seed, 1_500);
    assert.equal(second.hash, first.hash);
    assert.deepEqual(second.last, first.last);
    assert.notEqual((await runSeed(seed + 1, 1_500)).hash, first.hash);
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "tests/simulation/simulate.ts", `--seed=${seed}`, "--steps=1500"],
      cwd: ROOT,
      stdin: "null",
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
    assert.match(new TextDecoder().decode(stdout), new RegExp(`^trace ${first.hash}$`, "m"));
  }
});

Deno.test("a world gives time and chance back to its process", async () => {
  const before = [Math.random, Date.now, performance.now, crypto.getRandomValues, crypto.randomUUID];
  await runSeed(5, 200);
  assert.deepEqual([Math.random, Date.now, performance.now, crypto.getRandomValues, crypto.randomUUID], before);
});

Deno.test("every mutation can be applied, and the table tells of each that it was found", async () => {
  const table = await Deno.readTextFile(new URL("mutations.md", import.meta.url));
  for (const { file, find, what } of MUTATIONS) {
    const text = await Deno.readTextFile(new URL(file, ROOT));
    assert.equal(text.split(find).length, 2, `"${find}" stands once in ${file}`);
    assert.match(
      table,
      new RegExp(`\\| ${RegExp.escape(what)} \\| .* \\| \\d+ \\|`),
      `${what}: found, and in the table`,
    );
  }
});
