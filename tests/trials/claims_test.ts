/**
 * Trials of claims and leases with real processes: a handler that never yields (B17), one that kills its process, a worker
 * that is killed or frozen, and odd thrown values (B21). Leases of seconds stand for leases of half a minute: the kind of
 * fault is the same, the wait is shorter.
 */
import assert from "node:assert/strict";
import { MAX_ERROR_LENGTH } from "../../src/core/describe_error.ts";
import { waitFor } from "../support/wait_for.ts";
import { ECHO, OK, SLEEP, SPIN, SUICIDE, THROW } from "./kinds.ts";
import { ODD_CODES } from "./odd_values.ts";
import { Trial } from "./trial.ts";
import type { WorkerProcess } from "./worker_process.ts";

const LEASE_MS = 2_000;
const SWEEP_MS = 500;
const TIMES = ["--lease", "2s", "--sweep", "500ms", "--poll", "200ms"];
/** By when another worker must run what a dead one held: the lease, a sweep, a poll, and a busy machine. */
const TAKEOVER_MS = LEASE_MS + SWEEP_MS + 3_000;

function lateWrites(worker: WorkerProcess, item: string): number {
  return worker.logged("work.outcome_refused").filter((line) => line.item === item).length;
}

Deno.test("B17: a handler that never yields loses its items to another worker, and writes nothing of its own", () =>
  Trial.with(async (trial) => {
    const sleepers = await trial.enqueueMany(SLEEP, 4, { ms: 14_000, againMs: 500 });
    const a = await trial.worker([...TIMES, "--capacity", "5"]);
    for (const id of sleepers) await trial.started(id);
    // Long enough for B to take all five: items whose claim expired run one after the other, in case one is a killer.
    const spin = await trial.enqueue(SPIN, { ms: 9_000 });
    await trial.started(spin);
    const b = await trial.worker([...TIMES, "--capacity", "5"]);
    const items = [...sleepers, spin];
    const silent = waitFor("no answer while the handler spins", async () => (await a.probe("/healthz")).status === 0, {
      timeoutMs: 4_000,
    });
    for (const id of items) {
      const second = await trial.started(id, { times: 2, timeoutMs: TAKEOVER_MS });
      assert.equal(second.pid, b.pid, "taken over while A spins");
    }
    await silent;
    const warning = await a.sees("event_loop.blocked", { timeoutMs: 10_000 });
    assert.match(String(warning.running), /\bSPIN\b/, "the warning names the kind that blocked");
    await waitFor("a's health", async () => (await a.probe("/healthz")).status === 200, { timeoutMs: 5_000 });
    await trial.allFinished(30_000);
    await trial.assertOneEnd();
    for (const row of await trial.rows(items)) {
      // The expired claim keeps its attempt; the refused holder spends none.
      assert.deepEqual([row.kind, row.status, row.attempts], [row.kind, "done", 2]);
      assert.ok(lateWrites(a, row.id) <= 1, "a late write is logged once");
      const noted = a.lines.filter((line) => line.item === row.id && /lease.lost|outcome_refused/.test(line.event));
      assert.ok(noted.length >= 1, `the loss of ${row.kind} is logged\n${a.text()}`);
    }
    const seen = await trial.seen();
    for (const id of sleepers) {
      const inA = seen.filter((line) => line.item === id && line.pid === a.pid).map((line) => line.what);
      assert.deepEqual(inA, ["start", "aborted"]);
    }
    // What A claims afterwards it runs: its slots came back.
    await b.stop();
    const after = await trial.enqueueMany(OK, 20);
    for (const id of after) assert.equal((await trial.started(id)).pid, a.pid);
    a.assertSound();
  }));

Deno.test("an item that kills its process ends as a dead letter, and costs its neighbors one attempt at most", () =>
  Trial.with(async (trial) => {
    const flags = [...TIMES, "--capacity", "6"];
    const innocents = await trial.enqueueMany(SLEEP, 4, { ms: 1_500 });
    const poison = await trial.enqueue(SUICIDE);
    const later = await trial.enqueueMany(SLEEP, 4, { ms: 300 });
    for (let lives = 0;; lives++) {
      assert.ok(lives < 8, "the poison never ends");
      const worker = await trial.spawn(flags);
      const died = await waitFor("its death, or the end of all", async () => {
        if (worker.ended !== null) return "died";
        const { queued = 0, claimed = 0 } = await trial.counts();
        return queued + claimed === 0 ? "finished" : undefined;
      }, { timeoutMs: 30_000, everyMs: 100 });
      if (died === "finished") break;
      assert.equal(worker.ended?.signal, "SIGKILL");
    }
    const dead = await trial.row(poison);
    assert.deepEqual([dead.status, dead.attempts, (await trial.starts(poison)).length], ["failed", 3, 3]);
    assert.match(dead.lastError ?? "", /the lease of attempt 3 expired/);
    for (const row of await trial.rows([...innocents, ...later])) {
      assert.equal(row.status, "done");
      assert.ok(row.attempts <= 2, `an innocent spent ${row.attempts} attempts`);
    }
    await trial.assertOneEnd();
    await waitFor("the audit entry of the dead letter", async () => {
      const [row] = await trial.db.adminSql("select audit_id from queue.work_items where id = $1::uuid", [poison]);
      return row?.audit_id === null;
    });
  }));

Deno.test("a worker killed in mid-work: another runs its items after lease and sweep, each ends once", () =>
  Trial.with(async (trial) => {
    const items = await trial.enqueueMany(SLEEP, 5, { ms: 1_000 });
    const a = await trial.worker([...TIMES, "--capacity", "5"]);
    for (const id of items) await trial.started(id);
    const b = await trial.worker([...TIMES, "--capacity", "5"]);
    a.signal("SIGKILL");
    for (const id of items) {
      assert.equal((await trial.started(id, { times: 2, timeoutMs: TAKEOVER_MS + 5_000 })).pid, b.pid);
    }
    await trial.allFinished(20_000);
    await trial.assertOneEnd();
    for (const row of await trial.rows(items)) assert.deepEqual([row.status, row.attempts], ["done", 2]);
    b.assertSound();
  }));

Deno.test("a killed worker's long items do not close the lane: they run again together, and fresh ones begin", () =>
  Trial.with(async (trial) => {
    const items = await trial.enqueueMany(SLEEP, 4, { ms: 60_000 });
    const a = await trial.worker([...TIMES, "--capacity", "4"]);
    for (const id of items) await trial.started(id);
    a.signal("SIGKILL");
    const b = await trial.worker([...TIMES, "--capacity", "6", "--drain-grace", "0s"]);
    const [first] = items;
    await trial.started(first ?? "", { times: 2, timeoutMs: TAKEOVER_MS });
    const fresh = await trial.enqueue(OK);
    await trial.started(fresh, { timeoutMs: 2 * LEASE_MS + 2_000 });
    // Each waits one lease for those that run, then runs alone until it was renewed.
    for (const id of items) await trial.started(id, { times: 2, timeoutMs: 4 * 2 * LEASE_MS });
    assert.equal((await trial.counts()).claimed, 4, "all four run at once");
    assert.equal(await b.stop(), 0);
  }));

Deno.test("a worker frozen past its lease: its late writes are refused, and it works on", () =>
  Trial.with(async (trial) => {
    const items = await trial.enqueueMany(SLEEP, 5, { ms: 1_500 });
    const a = await trial.worker([...TIMES, "--capacity", "5"]);
    for (const id of items) await trial.started(id);
    a.signal("SIGSTOP");
    const b = await trial.worker([...TIMES, "--capacity", "5"]);
    for (const id of items) {
      assert.equal((await trial.started(id, { times: 2, timeoutMs: TAKEOVER_MS + 5_000 })).pid, b.pid);
    }
    a.signal("SIGCONT");
    await trial.allFinished(20_000);
    await waitFor(
      "a's runs over",
      async () =>
        (await trial.seen()).filter((line) => line.pid === a.pid && line.what !== "start").length === items.length,
    );
    await trial.assertOneEnd();
    for (const row of await trial.rows(items)) {
      assert.deepEqual([row.status, row.attempts], ["done", 2]);
      assert.ok(lateWrites(a, row.id) <= 1);
    }
    await b.stop();
    const after = await trial.enqueue(OK);
    assert.equal((await trial.started(after)).pid, a.pid);
    assert.equal((await a.probe("/healthz")).status, 200);
    a.assertSound();
  }));

Deno.test("B21: whatever a handler throws, its item ends as a bounded, readable dead letter beside working ones", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker([...TIMES, "--lease", "10s", "--capacity", "4"]);
    const thrown = new Map<string, string>();
    const sizes = new Map<string, Set<number>>();
    for (const code of ODD_CODES) {
      thrown.set(code, await trial.enqueue(THROW, { code }));
      const ok = await trial.enqueue(OK);
      await waitFor(`the ok item after "${code}"`, async () => (await trial.row(ok)).status === "done", {
        timeoutMs: 3_000,
      });
    }
    await waitFor("every thrower dead", async () => {
      const rows = await trial.rows([...thrown.values()]);
      for (const row of rows) {
        if (row.lastError !== null) {
          sizes.set(row.id, (sizes.get(row.id) ?? new Set()).add(row.lastError.length));
        }
      }
      return rows.every((row) => row.status === "failed");
    }, { timeoutMs: 20_000 });
    for (const [code, id] of thrown) {
      const row = await trial.row(id);
      assert.deepEqual([code, row.attempts, (await trial.starts(id)).length], [code, 3, 3]);
      assert.ok((row.lastError ?? "").trim() !== "", code);
      assert.ok((row.lastError ?? "").length <= MAX_ERROR_LENGTH, code);
      assert.equal(sizes.get(id)?.size, 1, `the error of "${code}" grows with its attempts`);
    }
    await trial.assertOneEnd();
    worker.assertSound();
    assert.equal((await worker.probe("/healthz")).status, 200);
  }));

Deno.test("B01: legal but odd text arrives in the handler as it was enqueued", () =>
  Trial.with(async (trial) => {
    const payload = { control: "\u0001", emoji: "📦", escape: "\\u0000", nested: [{ "ключ": null, n: -0.5 }] };
    const worker = await trial.worker(TIMES);
    await trial.enqueue(ECHO, payload);
    const line = await worker.sees("trial.echo");
    assert.deepEqual(JSON.parse(String(line.payload)), payload);
  }));
