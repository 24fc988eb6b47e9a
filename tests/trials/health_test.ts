/**
 * B42: what /healthz says under each fault, sampled as an orchestrator does. Windows of one second stand for five, faults
 * of a few windows for a minute.
 */
import assert from "node:assert/strict";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { waitFor } from "../support/wait_for.ts";
import { OK, SLEEP, SPIN } from "./kinds.ts";
import { BACK_MS, NOTICE_MS, stays, turns, WINDOW_MS } from "./probes.ts";
import { LISTENERS, Trial } from "./trial.ts";
import type { WorkerProcess } from "./worker_process.ts";

const FLAGS = ["--heartbeat", "1s", "--poll", "200ms", "--lease", "3s", "--sweep", "500ms", "--capacity", "3"];

/**
 * Unhealthy within two windows with a reason, healthy again by itself, and then an item runs. A running item's renewals fail
 * as well, and its lease is lost: nothing of that may stay behind.
 */
async function faultAndBack(
  trial: Trial,
  worker: WorkerProcess,
  fault: { begin(): Promise<void> | void; end(): Promise<void> | void; reason: RegExp },
): Promise<void> {
  const running = await trial.enqueue(SLEEP, { ms: 60_000, againMs: 10 });
  await trial.started(running);
  await turns(worker, 200, 2_000);
  await fault.begin();
  const { body } = await turns(worker, 503, NOTICE_MS);
  assert.match(body, fault.reason);
  // Long enough to lose the lease of what runs.
  await waitFor(
    "the run to be stopped",
    async () => (await trial.seen()).some((line) => line.item === running && line.what === "aborted"),
    { timeoutMs: 6_000 },
  );
  await fault.end();
  await turns(worker, 200, BACK_MS);
  const item = await trial.enqueue(OK);
  await waitFor("an item done", async () => (await trial.row(item)).status === "done", { timeoutMs: 10_000 });
  await waitFor("the stopped item done", async () => (await trial.row(running)).status === "done", {
    timeoutMs: 10_000,
  });
  await stays(worker, 2 * WINDOW_MS);
  worker.assertSound();
}

Deno.test("B42 a: the work table is gone for a while", () =>
  Trial.with(async (trial) => {
    await faultAndBack(trial, await trial.worker(FLAGS), {
      begin: async () => void await trial.db.adminSql("alter table queue.work_items rename to hidden"),
      end: async () => void await trial.db.adminSql("alter table queue.hidden rename to work_items"),
      reason: /work_items.*migrate up/,
    });
  }));

Deno.test("B42 b: the database is a black hole for a while", () =>
  Trial.with(async (trial) => {
    const proxy = new TcpProxy(Number(new URL(trial.db.url("admin")).port));
    try {
      const worker = await trial.worker(FLAGS, {
        LANEWAY_DATABASE_URL: proxy.through(trial.db.url("runtime")),
        LANEWAY_SYSTEM_DATABASE_URL: proxy.through(trial.db.url("system")),
      });
      await faultAndBack(trial, worker, {
        begin: () => proxy.blackHole(),
        end: () => proxy.resume(),
        reason: /database (has not answered|is out of reach)/,
      });
      await worker.stop();
    } finally {
      await proxy.close();
    }
  }));

Deno.test("B42 c: the login loses its rights for a while", () =>
  Trial.with(async (trial) => {
    const logins = "laneway_system, laneway_runtime";
    await faultAndBack(trial, await trial.worker(FLAGS), {
      begin: async () => void await trial.db.adminSql(`revoke all on queue.work_items from ${logins}`),
      end: async () =>
        void await trial.db.adminSql(`grant select, insert, update, delete on queue.work_items to ${logins}`),
      reason: /may not do this.*work_items.*grant it its role/,
    });
  }));

Deno.test("B42 d and e: healthy with an empty queue and with every slot taken, without burning the processor", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker([...FLAGS, "--poll", "1s"]);
    const beforeMs = await worker.cpuMs();
    await stays(worker, 4 * WINDOW_MS);
    assert.ok(await worker.cpuMs() - beforeMs < 2 * WINDOW_MS, "an idle worker idles");
    const sleepers = await trial.enqueueMany(SLEEP, 5, { ms: 60_000 });
    for (const id of sleepers.slice(0, 3)) await trial.started(id);
    await stays(worker, 4 * WINDOW_MS);
    assert.equal((await trial.counts()).claimed, 3);
  }));

Deno.test("B42 f: no answer while a handler spins, healthy afterwards", () =>
  Trial.with(async (trial) => {
    const worker = await trial.worker(FLAGS);
    const spin = await trial.enqueue(SPIN, { ms: 5_000 });
    await trial.started(spin);
    await turns(worker, 0, 1_000);
    await waitFor("an answer", async () => {
      const answer = await worker.probe("/healthz");
      assert.notEqual(answer.status, 503, answer.body);
      return answer.status === 200;
    }, { timeoutMs: 8_000 });
    await stays(worker, 2 * WINDOW_MS);
  }));

Deno.test("B42 g: healthy while only the listener is dead, since the poll still works", () =>
  Trial.with(async (trial) => {
    // A login that is refused from now on: the open listener is cut, and no other can be had.
    const listen = trial.db.url("host");
    const worker = await trial.worker(FLAGS, { LANEWAY_LISTEN_DATABASE_URL: listen });
    await worker.sees("listening for hints");
    await trial.db.adminSql(`revoke connect on database ${trial.db.name} from public`);
    for (const login of ["runtime", "system"]) {
      await trial.db.adminSql(`grant connect on database ${trial.db.name} to laneway_test_${login}`);
    }
    assert.equal(await trial.db.killBackends(LISTENERS), 1);
    await worker.sees("not listening for hints, polling only");
    await stays(worker, 3 * WINDOW_MS);
    const item = await trial.enqueue(OK);
    await trial.started(item, { timeoutMs: 2_000 });
    await trial.db.adminSql(`grant connect on database ${trial.db.name} to public`);
    await worker.sees("listening for hints", { times: 2 });
    worker.assertSound();
  }));
