/**
 * B17 for a host: its handlers are processes, so none of them can block its loop; what can is that the runner itself stands
 * still. Leases of 2 s stand for 5 s, commands of seconds for longer ones: each outlives its lease all the same.
 */
import assert from "node:assert/strict";
import { HostTrial, OK_SCRIPT, SLEEP_SCRIPT } from "../support/host_trial.ts";
import { waitFor } from "../support/wait_for.ts";
import { OK, SLEEP, SPIN } from "../trials/kinds.ts";
import { stays } from "../trials/probes.ts";
import type { WorkerProcess } from "../trials/worker_process.ts";

const LEASE_MS = 2_000;
const TIMES = ["--lease", "2s", "--poll", "200ms", "--drain-grace", "0s"];
/** By when another worker must run what a frozen one holds: the lease, a sweep, a poll, and a busy machine. */
const TAKEOVER_MS = LEASE_MS + 500 + 3_000;

const SPIN_SCRIPT = `timeout --foreground 6 sh -c 'while :; do :; done'\nsay end\n`;

Deno.test("B17: commands that spin for longer than two leases keep them, and every probe is answered meanwhile", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { SPIN: SPIN_SCRIPT, SLEEP: SLEEP_SCRIPT } });
    await world.sweeper();
    const runner = await host.runner(TIMES);
    const items = [
      ...await trial.enqueueMany(SPIN, 2, { ms: 6_000 }),
      ...await trial.enqueueMany(SLEEP, 2, { ms: 5_000 }),
    ];
    for (const id of items) await trial.started(id);
    await stays(runner, 5_000);
    await trial.allFinished(10_000);
    for (const row of await trial.rows(items)) assert.deepEqual([row.status, row.attempts, row.claims], ["done", 1, 1]);
    for (const id of items) {
      const renewals = (await trial.history()).filter((change) => change.id === id && change.was === change.became);
      assert.ok(renewals.length >= 4, `${renewals.length} renewals`);
    }
    await trial.assertOneEnd();
    assert.deepEqual(runner.logged("event_loop.blocked"), []);
    assert.deepEqual(runner.logged("lease.lost"), []);
    runner.assertSound();
  }));

/** How often a runner said that it lost an item, and that it was late with its outcome. */
function losses(runner: WorkerProcess, item: string): { lost: number; late: number } {
  const count = (event: string) => runner.logged(event).filter((line) => line.item === item).length;
  return { lost: count("lease.lost"), late: count("work.outcome_refused") };
}

Deno.test("B17: a runner frozen past its leases: its items go to another claimer, it ends its commands and writes nothing", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT, SLEEP: SLEEP_SCRIPT } });
    const a = await host.runner([...TIMES, "--capacity", "6"]);
    const long = await trial.enqueueMany(SLEEP, 3, { ms: 120_000, againMs: 200 });
    // These end while it stands still: their exits wait for it.
    const short = await trial.enqueueMany(SLEEP, 2, { ms: 1_800, againMs: 200 });
    const items = [...long, ...short];
    for (const id of items) await trial.started(id);
    a.signal("SIGSTOP");
    const b = await trial.worker(["--lease", "2s", "--poll", "200ms", "--sweep", "500ms", "--capacity", "6"]);
    for (const id of items) {
      const second = await trial.started(id, { times: 2, timeoutMs: TAKEOVER_MS + 5_000 });
      assert.equal(second.pid, b.pid);
    }
    await trial.allFinished(20_000);
    assert.ok((await world.leftovers()).length >= long.length, "its commands go on while it stands still");
    const before = (await trial.history()).length;
    a.signal("SIGCONT");
    await waitFor("its commands' end", async () => (await world.leftovers()).length === 0, { timeoutMs: 6_000 });
    await waitFor("its count", async () => (await world.row("wsl1")).current_workers === 0);
    for (const id of items) {
      await waitFor("the loss in its log", () => losses(a, id).lost + losses(a, id).late > 0);
      assert.ok(losses(a, id).lost <= 1 && losses(a, id).late <= 1, `each is logged once\n${a.text()}`);
    }
    const late = (await trial.history()).slice(before).filter(({ id }) => items.includes(id));
    assert.deepEqual(
      late.filter(({ was, became }) => was !== became),
      [],
      "nothing of what it was late with took effect",
    );
    await trial.assertOneEnd();
    // The expired claim keeps its attempt; the refused holder spends none.
    for (const row of await trial.rows(items)) assert.deepEqual([row.status, row.attempts], ["done", 2]);
    const recorded = await trial.db.adminSql("select outcome, count(*)::int as n from queue.attempts group by outcome");
    assert.ok(recorded.every(({ outcome }) => outcome === "aborted" || outcome === "done"), JSON.stringify(recorded));
    await b.stop();
    const after = await trial.enqueueMany(OK, 3);
    await waitFor(
      "its slots came back",
      async () => (await trial.rows(after)).every(({ status }) => status === "done"),
    );
    await stays(a, 500);
    a.assertSound();
  }));
