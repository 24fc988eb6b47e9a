import assert from "node:assert/strict";
import { FakeClock } from "../../core/fake_clock.ts";
import { RunAborted } from "../../runtime/run.ts";
import { classify, DEFAULT_EXITS } from "./classify.ts";
import { ABORT_KILL_MS, RunStop } from "./stop.ts";

function make(timeLimitMs: number, killGraceMs: number): { clock: FakeClock; run: AbortController; stop: RunStop } {
  const clock = new FakeClock();
  const run = new AbortController();
  return { clock, run, stop: new RunStop({ signal: run.signal, timeLimitMs, killGraceMs, clock }) };
}

const state = ({ soft, hard, reason }: RunStop) => [soft.aborted, hard.aborted, reason];

Deno.test("a time limit asks first, and ends when the grace has passed", async () => {
  const { clock, stop } = make(5_000, 60_000);
  await clock.tick(4_900);
  assert.deepEqual(state(stop), [false, false, null]);
  await clock.tick(100);
  assert.deepEqual(state(stop), [true, false, "timed_out"]);
  await clock.tick(59_900);
  assert.deepEqual(state(stop), [true, false, "timed_out"]);
  await clock.tick(100);
  assert.deepEqual(state(stop), [true, true, "timed_out"]);
  stop.dispose();
});

Deno.test("a lost lease within the grace of a time limit cuts it short, and is then the reason", async () => {
  const { clock, run, stop } = make(5_000, 60_000);
  await clock.tick(6_000);
  run.abort(new RunAborted("LEASE_LOST", "gone"));
  assert.deepEqual(state(stop), [true, false, "lease_lost"]);
  await clock.tick(ABORT_KILL_MS);
  assert.deepEqual(state(stop), [true, true, "lease_lost"]);
  stop.dispose();
});

Deno.test("a run without a limit ends when its runner stops, also one that was told before it began", async () => {
  const { clock, run, stop } = make(0, 500);
  await clock.tick(10 * 86_400_000);
  assert.deepEqual(state(stop), [false, false, null]);
  run.abort(new RunAborted("DRAINED", "stopping"));
  await clock.tick(500);
  assert.deepEqual(state(stop), [true, true, "drained"], "a shorter grace of its own holds");
  const late = new RunStop({ signal: run.signal, timeLimitMs: 0, killGraceMs: 500, clock });
  assert.deepEqual(state(late), [true, false, "drained"]);
  stop.dispose();
  late.dispose();
});

Deno.test("nothing fires once a run is over", async () => {
  const { clock, run, stop } = make(1_000, 1_000);
  stop.dispose();
  run.abort();
  await clock.tick(5_000);
  assert.deepEqual(state(stop), [false, false, null]);
});

Deno.test("classify() never reads a death by signal, a time limit or an abort as done", () => {
  for (const signal of ["SIGKILL", "SIGTERM", "SIGSEGV"]) {
    const is = classify({ exitCode: null, signal, stopped: null }, DEFAULT_EXITS);
    assert.deepEqual([is.outcome, is.reason], ["retry", "signal"]);
  }
  for (const stopped of ["timed_out", "lease_lost", "drained"] as const) {
    const is = classify({ exitCode: 0, signal: null, stopped }, DEFAULT_EXITS);
    assert.notEqual(is.outcome, "done");
    assert.equal(is.reason, stopped);
  }
  for (let code = 0; code < 256; code++) {
    const is = classify({ exitCode: code, signal: null, stopped: null }, DEFAULT_EXITS);
    assert.equal(is.outcome, code === 0 ? "done" : code === 65 ? "final" : code === 75 ? "defer" : "retry");
  }
});
