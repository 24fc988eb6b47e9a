/**
 * B23 for a host: stop signals against real runners whose handlers are processes. Work of 2 s stands for 6 s, graces of 4 s
 * and 500 ms for 10 s and 2 s. Its (e), a handler that enqueues, is none of a host's: its key may not enqueue.
 */
import assert from "node:assert/strict";
import { HostTrial, type Machine, SLEEP_SCRIPT } from "../support/host_trial.ts";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { waitFor } from "../support/wait_for.ts";
import { DEAF, SLEEP } from "../trials/kinds.ts";
import { pass } from "../trials/trial.ts";
import type { WorkerProcess } from "../trials/worker_process.ts";

const WORK_MS = 2_000;
const TIMES = ["--poll", "100ms", "--lease", "10s"];
/** It, its child and its grandchild ignore what asks them to end. */
const DEAF_SCRIPT = `trap '' TERM\n(sleep 300; sleep 300) &\nsleep 300\n`;

/** A machine whose runner works on three items, and five more that wait. */
async function busyRunner(world: HostTrial, host: Machine, made: { grace: string; workMs?: number }): Promise<{
  readonly runner: WorkerProcess;
  readonly running: string[];
  readonly waiting: string[];
}> {
  const { trial } = world;
  const runner = await host.runner([...TIMES, "--capacity", "3", "--drain-grace", made.grace]);
  const running = await trial.enqueueMany(SLEEP, 3, { ms: made.workMs ?? WORK_MS });
  for (const id of running) await trial.started(id);
  return { runner, running, waiting: await trial.enqueueMany(SLEEP, 5, { ms: 10 }) };
}

async function assertHandedBack({ trial }: HostTrial, items: readonly string[]): Promise<void> {
  for (const row of await trial.rows(items)) {
    assert.deepEqual([row.status, row.attempts, row.claimedBy], ["queued", 0, null]);
    assert.match(row.note ?? "", /its worker was stopped/);
  }
}

/** Nothing claimed, no process, no work folder. */
async function assertNothingHeld(world: HostTrial, host: Machine): Promise<void> {
  assert.equal((await world.trial.counts()).claimed ?? 0, 0, "nothing stays claimed by a stopped runner");
  assert.deepEqual(await world.leftovers(), []);
  assert.deepEqual(await host.workFolders(), []);
}

Deno.test("B23 a: with time enough SIGTERM lets commands end, claims nothing more, and ends with 0", () =>
  HostTrial.with(async (world) => {
    const host = await world.host("wsl1", { kinds: { SLEEP: SLEEP_SCRIPT } });
    const { runner, running, waiting } = await busyRunner(world, host, { grace: "4s" });
    const sentMs = performance.now();
    runner.signal("SIGTERM");
    await waitFor("readiness off", async () => (await runner.probe("/readyz")).status === 503, { timeoutMs: 1_000 });
    assert.equal((await runner.probe("/metrics")).status, 200);
    assert.equal((await runner.probe("/healthz")).status, 200);
    const { code } = await runner.end(6_000);
    assert.equal(code, 0);
    assert.ok(performance.now() - sentMs < WORK_MS + 2_000, "it ends with its work, not with its grace");
    for (const row of await world.trial.rows(running)) assert.deepEqual([row.status, row.attempts], ["done", 1]);
    for (const row of await world.trial.rows(waiting)) assert.deepEqual([row.status, row.claims], ["queued", 0]);
    await assertNothingHeld(world, host);
    runner.assertNoStray();
  }));

Deno.test("B23 b: past the grace commands are ended as groups, TERM then KILL, and handed back uncharged; another starts them", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { SLEEP: SLEEP_SCRIPT, DEAF: DEAF_SCRIPT } });
    const runner = await host.runner([...TIMES, "--capacity", "3", "--drain-grace", "500ms"]);
    const obeying = await trial.enqueue(SLEEP, { ms: 60_000 });
    const deaf = await trial.enqueueMany(DEAF, 2, { ms: 60_000 });
    const running = [obeying, ...deaf];
    for (const id of running) await trial.started(id);
    runner.signal("SIGTERM");
    assert.equal((await runner.end(6_000)).code, 0, "handed back is clean");
    await assertHandedBack(world, running);
    await assertNothingHeld(world, host);
    const told = (await trial.seen()).filter(({ what }) => what === "aborted").map(({ item }) => item);
    assert.deepEqual(told, [obeying], "asked first: who obeys could tidy up");
    const attempts = await trial.db.adminSql("select outcome, reason, signal from queue.attempts order by signal");
    const ended = (signal: string | null) => ({ outcome: "aborted", reason: "drained", signal });
    assert.deepEqual(attempts, [ended("SIGKILL"), ended("SIGKILL"), ended(null)]);
    const other = await host.runner([...TIMES, "--capacity", "3", "--drain-grace", "0s"]);
    for (const id of running) {
      assert.equal((await trial.started(id, { times: 2, timeoutMs: 2_000 })).attempt, 1, "uncharged");
    }
    assert.equal(await other.stop(), 0);
    await assertNothingHeld(world, host);
  }));

Deno.test("B23 c: a second signal skips the grace; a hundred more, of both kinds, change nothing", () =>
  HostTrial.with(async (world) => {
    const host = await world.host("wsl1", { kinds: { SLEEP: SLEEP_SCRIPT } });
    for (const burst of [false, true]) {
      const { runner, running } = await busyRunner(world, host, { grace: "60s", workMs: 60_000 });
      runner.signal("SIGTERM");
      if (!burst) {
        await runner.sees("worker.draining");
        runner.signal("SIGTERM");
      }
      for (let i = 0; burst && i < 100; i++) runner.signal(i % 3 === 0 ? "SIGINT" : "SIGTERM");
      assert.equal((await runner.end(5_000)).code, 0);
      await assertHandedBack(world, running);
      await assertNothingHeld(world, host);
      runner.assertNoStray();
      await world.trial.db.adminSql("delete from queue.work_items");
    }
  }));

Deno.test("B23 d: a signal at any time after the start ends the process within two seconds, leaving nothing held", () =>
  HostTrial.with(async (world) => {
    const host = await world.host("wsl1", { kinds: { SLEEP: SLEEP_SCRIPT } });
    await world.trial.enqueueMany(SLEEP, 5, { ms: 30_000 });
    let started = 0;
    for (const delayMs of [0, 20, 50, 100, 300, 600, 900, 1_200]) {
      const runner = await host.spawn([...TIMES, "--drain-grace", "0s"]);
      await pass(delayMs);
      runner.signal("SIGTERM");
      const { code, signal } = await runner.end(2_000);
      // Before the program is loaded nobody listens, and the signal ends the process by itself.
      assert.ok(code === 0 || signal === "SIGTERM", `after ${delayMs} ms: ${code} ${signal}\n${runner.text()}`);
      started += runner.logged("process.started").length;
      runner.assertNoStray();
      await assertNothingHeld(world, host);
    }
    assert.ok(started > 0, "some were running");
  }));

Deno.test("B23 d: a signal while the server is away, or takes calls and never answers, ends the process within two seconds", () =>
  HostTrial.with(async (world) => {
    const proxy = new TcpProxy(Number(new URL(world.rest.url).port));
    try {
      proxy.blackHole();
      const urls = { away: "http://127.0.0.1:1", silent: `http://127.0.0.1:${proxy.port}` };
      const runners = await Promise.all(
        Object.entries(urls).map(async ([name, url]) => {
          const host = await world.host(name, { kinds: { SLEEP: SLEEP_SCRIPT }, url });
          return await host.runner([...TIMES, "--drain-grace", "0s"]);
        }),
      );
      await waitFor("both unwell", async () => {
        const probes = await Promise.all(runners.map((runner) => runner.probe("/healthz")));
        return probes.every(({ status }) => status === 503);
      });
      await Promise.all(runners.map(async (runner) => {
        assert.equal(await runner.stop(2_000), 0);
        assert.deepEqual(runner.logged("store.close_timed_out"), []);
        runner.assertNoStray();
      }));
    } finally {
      await proxy.close();
    }
  }));
