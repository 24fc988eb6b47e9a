/**
 * B10: what a lost LISTEN costs. The poll is at 30 s as in the trial, so that a start in under a second can only come from
 * a hint; paces and gaps are shorter.
 */
import assert from "node:assert/strict";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { waitFor } from "../support/wait_for.ts";
import { OK } from "./kinds.ts";
import { LISTENERS, pass, Trial } from "./trial.ts";
import type { WorkerProcess } from "./worker_process.ts";

// The sweep wakes the loop when it moved rows: kept out of the way.
const FLAGS = ["--poll", "30s", "--sweep", "10m"];
const SOON_MS = 1_000;
/** The documented check of the listener: a probe every 15 s, unanswered for 5 s. */
const HALF_OPEN_MS = 20_000;

async function startsSoon(trial: Trial, lane = "default"): Promise<void> {
  const sentMs = Date.now();
  const start = await trial.started(await trial.enqueue(OK, {}, { lane }), { timeoutMs: 5_000 });
  assert.ok(start.atMs - sentMs < SOON_MS, `a hint starts an item in under a second, not in ${start.atMs - sentMs} ms`);
}

async function listeners(trial: Trial): Promise<number> {
  const [row] = await trial.db.adminSql(
    `select count(*) as n from pg_stat_activity where datname = current_database() and ${LISTENERS}`,
  );
  return Number(row?.n);
}

async function hintsArriveAgain(trial: Trial, worker: WorkerProcess, before: number): Promise<void> {
  await waitFor("the listener to be back", async () => (await listeners(trial)) === 1 && reconnects(worker) > before, {
    timeoutMs: 5_000,
  });
}

function reconnects(worker: WorkerProcess): number {
  return worker.logged("listening for hints").length;
}

Deno.test("B10: after the listening connection is cut, starts are fast again within five seconds, over one connection", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker(FLAGS);
    await worker.sees("listening for hints");
    await startsSoon(trial);
    for (let cut = 1; cut <= 3; cut++) {
      assert.equal(await trial.db.killBackends(LISTENERS), 1);
      await hintsArriveAgain(trial, worker, cut);
      for (let i = 0; i < 3; i++) {
        await startsSoon(trial);
        await pass(100);
      }
    }
    assert.equal(await listeners(trial), 1);
    assert.equal(worker.logged("not listening for hints, polling only").length, 3, "one line a change of state");
    assert.ok(worker.lines.length < 20, worker.text());
    worker.assertSound();
  }));

Deno.test("B10: a listener that is cut whenever it is up reconnects under five times a second, and logs one line", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker(FLAGS);
    await worker.sees("listening for hints");
    let cuts = 0;
    const seconds = 4;
    for (const untilMs = performance.now() + seconds * 1_000; performance.now() < untilMs;) {
      cuts += await trial.db.killBackends(LISTENERS);
      await pass(20);
    }
    assert.ok(cuts <= 5 * seconds, `${cuts} connections in ${seconds} s`);
    assert.ok(cuts >= seconds, "it does come back each time");
    await worker.sees("listening for hints", { times: 2, timeoutMs: 5_000 });
    assert.ok(worker.logged("not listening for hints, polling only").length <= 2);
    await startsSoon(trial);
    assert.equal(await listeners(trial), 1);
  }));

Deno.test("B10: what was enqueued as the database came back starts on reconnect, not at the next poll", () =>
  Trial.withServer(async (trial, server) => {
    const worker = await trial.worker(FLAGS);
    await worker.sees("listening for hints");
    await startsSoon(trial);
    await server.stop();
    await pass(4_000);
    await server.start();
    const sentMs = Date.now();
    const items = await trial.enqueueMany(OK, 3);
    for (const id of items) {
      const start = await trial.started(id, { timeoutMs: 6_000 });
      assert.ok(start.atMs - sentMs < 5_000, `${start.atMs - sentMs} ms`);
    }
    await worker.sees("listening for hints", { times: 2 });
    await startsSoon(trial);
    assert.equal(await listeners(trial), 1);
    assert.equal(worker.logged("not listening for hints, polling only").length, 1);
    worker.assertSound();
  }));

Deno.test("B10: a half-open listening connection is noticed within its check, and replaced", () =>
  Trial.with(async (trial) => {
    const proxy = new TcpProxy(Number(new URL(trial.db.url("admin")).port));
    try {
      const worker = await trial.worker(FLAGS, {
        LANEWAY_LISTEN_DATABASE_URL: proxy.through(trial.db.url("system")),
      });
      await worker.sees("listening for hints");
      await startsSoon(trial);
      proxy.blackHole();
      await worker.sees("not listening for hints, polling only", { timeoutMs: HALF_OPEN_MS + 2_000 });
      assert.equal((await worker.probe("/healthz")).status, 200, "the poll still works");
      proxy.resume();
      await worker.sees("listening for hints", { times: 2, timeoutMs: 10_000 });
      await startsSoon(trial);
      await waitFor("one listening backend", async () => await listeners(trial) === 1);
      worker.assertSound();
      await worker.stop();
    } finally {
      await proxy.close();
    }
  }));
