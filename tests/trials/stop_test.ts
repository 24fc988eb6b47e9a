/**
 * B23: stop signals, against real processes on every store. Work of 2 s stands for 6 s, graces of 4 s and 500 ms for 10 s
 * and 2 s.
 */
import assert from "node:assert/strict";
import { waitFor } from "../support/wait_for.ts";
import { DEAF, ENQUEUE, OK, SLEEP } from "./kinds.ts";
import { pass, Trial } from "./trial.ts";
import { WorkerProcess } from "./worker_process.ts";

const WORK_MS = 2_000;
const TIMES = ["--poll", "100ms", "--lease", "10s"];

/** Three items of `workMs` run, five more wait. */
async function busyWorker(trial: Trial, grace: string, workMs = WORK_MS): Promise<{
  readonly worker: WorkerProcess;
  readonly running: string[];
  readonly waiting: string[];
}> {
  const worker = await trial.worker([...TIMES, "--capacity", "3", "--drain-grace", grace]);
  const running = await trial.enqueueMany(SLEEP, 3, { ms: workMs });
  for (const id of running) await trial.started(id);
  return { worker, running, waiting: await trial.enqueueMany(SLEEP, 5, { ms: 10 }) };
}

async function assertHandedBack(trial: Trial, items: readonly string[]): Promise<void> {
  for (const row of await trial.rows(items)) {
    assert.deepEqual([row.status, row.attempts, row.claimedBy], ["queued", 0, null]);
    assert.match(row.note ?? "", /its worker was stopped/);
  }
}

async function assertNothingClaimed(trial: Trial): Promise<void> {
  assert.equal((await trial.counts()).claimed ?? 0, 0, "nothing stays claimed by a stopped worker");
}

Deno.test("B23 a: with time enough SIGTERM lets what runs end, claims nothing more, and ends with 0", () =>
  Trial.with(async (trial) => {
    const { worker, running, waiting } = await busyWorker(trial, "4s");
    const sentMs = performance.now();
    worker.signal("SIGTERM");
    await waitFor("readiness off", async () => (await worker.probe("/readyz")).status === 503, { timeoutMs: 1_000 });
    assert.equal((await worker.probe("/metrics")).status, 200);
    assert.equal((await worker.probe("/healthz")).status, 200);
    const { code } = await worker.end(5_000);
    assert.equal(code, 0);
    assert.ok(performance.now() - sentMs < WORK_MS + 2_000, "it ends with its work, not with its grace");
    for (const row of await trial.rows(running)) assert.deepEqual([row.status, row.attempts], ["done", 1]);
    for (const row of await trial.rows(waiting)) assert.deepEqual([row.status, row.claims], ["queued", 0]);
    worker.assertNoStray();
  }));

Deno.test("B23 b: past the grace what runs is handed back uncharged, and another worker starts it at once", () =>
  Trial.with(async (trial) => {
    const { worker, running } = await busyWorker(trial, "500ms", 30_000);
    worker.signal("SIGTERM");
    const { code } = await worker.end(4_000);
    assert.equal(code, 0, "handed back is clean");
    await assertHandedBack(trial, running);
    const other = await trial.worker([...TIMES, "--capacity", "8", "--drain-grace", "0s"]);
    for (const id of running) {
      const second = await trial.started(id, { times: 2, timeoutMs: 2_000 });
      assert.deepEqual([second.pid, second.attempt], [other.pid, 1]);
    }
    assert.equal(await other.stop(), 0);
    await assertNothingClaimed(trial);
  }));

Deno.test("B23 c: a second signal skips the grace; a hundred more, of both kinds, change nothing", () =>
  Trial.with(async (trial) => {
    for (const burst of [false, true]) {
      const { worker, running } = await busyWorker(trial, "60s", 30_000);
      worker.signal("SIGTERM");
      if (!burst) {
        await worker.sees("worker.draining");
        worker.signal("SIGTERM");
      }
      for (let i = 0; burst && i < 100; i++) worker.signal(i % 3 === 0 ? "SIGINT" : "SIGTERM");
      const { code } = await worker.end(5_000);
      assert.equal(code, 0);
      await assertHandedBack(trial, running);
      await assertNothingClaimed(trial);
      worker.assertNoStray();
      await trial.db.adminSql("delete from queue.work_items");
    }
  }));

Deno.test("B23 d: a signal at any time after the start ends the process within two seconds, leaving nothing claimed", () =>
  Trial.with(async (trial) => {
    await trial.enqueueMany(SLEEP, 5, { ms: 30_000 });
    for (const delayMs of [0, 20, 50, 100, 300, 500, 700, 900]) {
      const worker = await trial.spawn([...TIMES, "--drain-grace", "0s"]);
      await pass(delayMs);
      worker.signal("SIGTERM");
      const { code, signal } = await worker.end(2_000);
      // Before the program is loaded nobody listens, and the signal ends the process by itself.
      assert.ok(code === 0 || signal === "SIGTERM", `after ${delayMs} ms: ${code} ${signal}\n${worker.text()}`);
      worker.assertNoStray();
      await assertNothingClaimed(trial);
    }
  }));

Deno.test("B23 d: a signal while the worker waits for its database ends it within two seconds", async () => {
  const down = "postgres://u:p@127.0.0.1:1/x";
  const env = { LANEWAY_DATABASE_URL: down, LANEWAY_SYSTEM_DATABASE_URL: down };
  const worker = await WorkerProcess.spawn([], env);
  try {
    await worker.sees("database.waiting", { timeoutMs: 10_000 });
    worker.signal("SIGTERM");
    assert.equal((await worker.end(2_000)).code, 0);
    worker.assertNoStray();
  } finally {
    await worker.kill();
  }
});

Deno.test("B23 e: a handler may enqueue while its worker drains", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker([...TIMES, "--drain-grace", "5s"]);
    const item = await trial.enqueue(ENQUEUE, { ms: 1_000, key: "made while draining" });
    await trial.started(item);
    worker.signal("SIGTERM");
    await worker.sees("worker.draining");
    assert.equal((await worker.end(5_000)).code, 0);
    const rows = await trial.rows();
    assert.deepEqual(rows.map((row) => [row.kind, row.status]), [[ENQUEUE.name, "done"], [OK.name, "queued"]]);
  }));

Deno.test("B23: a handler that ignores its signal does not hold up the end, and its item is handed back", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker([...TIMES, "--drain-grace", "0s"]);
    const deaf = await trial.enqueue(DEAF, { ms: 60_000 });
    await trial.started(deaf);
    assert.equal(await worker.stop(5_000), 0);
    await assertHandedBack(trial, [deaf]);
  }));

/** A worker on an embedded store, filled by itself, whose items have begun. */
async function embedded(store: string, grace: string, items: unknown[]): Promise<WorkerProcess> {
  const flags = [...TIMES, "--store", store, "--capacity", "3", "--drain-grace", grace];
  return await WorkerProcess.start(flags, { TRIAL_ITEMS: JSON.stringify(items) });
}

for (const store of ["memory", "sqlite file"]) {
  Deno.test(`B23 a to c on ${store}: the same drain, and the same exit codes`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "laneway-trial-" });
    const sleepers = (ms: number) => Array.from({ length: 8 }, () => ({ kind: "SLEEP", payload: { ms } }));
    const cases = [
      { grace: "4s", ms: WORK_MS, signals: 1, finished: 3, released: 0 },
      { grace: "500ms", ms: 30_000, signals: 1, finished: 0, released: 3 },
      { grace: "60s", ms: 30_000, signals: 50, finished: 0, released: 3 },
    ];
    try {
      for (const [i, one] of cases.entries()) {
        const name = store === "memory" ? store : `sqlite:${folder}/${i}.db`;
        const worker = await embedded(name, one.grace, sleepers(one.ms));
        try {
          await waitFor("three items to run", async () => {
            return /laneway_items_running(\{[^}]*\})? 3\b/.test((await worker.probe("/metrics", 2_000)).body);
          });
          for (let n = 0; n < one.signals; n++) worker.signal(n % 2 === 0 ? "SIGTERM" : "SIGINT");
          assert.equal((await worker.end(5_000)).code, 0);
          const [drained] = worker.logged("worker.drained");
          assert.deepEqual([drained?.finished, drained?.released, drained?.left], [one.finished, one.released, 0]);
          worker.assertNoStray();
        } finally {
          await worker.kill();
        }
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
