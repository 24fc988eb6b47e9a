/**
 * What /healthz says, sampled as an orchestrator does, of a worker whose heartbeat is a second.
 *
 * @module
 */
import assert from "node:assert/strict";
import { waitFor } from "../support/wait_for.ts";
import { pass } from "./trial.ts";
import type { ProbeAnswer, WorkerProcess } from "./worker_process.ts";

/** A heartbeat. */
export const WINDOW_MS = 1_000;
/** Two windows, and what a busy machine and the sampling add. */
export const NOTICE_MS = 2 * WINDOW_MS + 500;
/** By when a worker is healthy again. */
export const BACK_MS = 6_000;

function assertHarmless({ body }: ProbeAnswer): void {
  assert.doesNotMatch(
    body,
    /laneway-test|eyJ|postgres:\/\/|@127|\\n|\bat \S+:\d+|\.ts\b|\.js\b/,
    "no secret and no stack",
  );
  assert.ok(body.length < 2_000, "bounded");
}

/** Samples until `status` comes, and checks every body on the way. */
export async function turns(worker: WorkerProcess, status: number, timeoutMs: number): Promise<ProbeAnswer> {
  return await waitFor(`/healthz to answer ${status}\n${worker.text()}`, async () => {
    const answer = await worker.probe("/healthz");
    assertHarmless(answer);
    return answer.status === status ? answer : undefined;
  }, { timeoutMs, everyMs: 50 });
}

/** Samples for `ms` and demands that every answer is 200. */
export async function stays(worker: WorkerProcess, ms: number): Promise<void> {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;) {
    const answer = await worker.probe("/healthz", 2_000);
    assert.equal(answer.status, 200, answer.body);
    await pass(100);
  }
}
