/**
 * B42 for a host: what /healthz says under each fault. Windows of one second stand for thirty, faults of a few windows for a
 * minute. Its (f) is B17's, as a command cannot block the runner; its (g) is void, as a host has no listener.
 */
import assert from "node:assert/strict";
import { ALWAYS, HostTrial, OK_SCRIPT, SLEEP_SCRIPT } from "../support/host_trial.ts";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { waitFor } from "../support/wait_for.ts";
import { OK, SLEEP } from "../trials/kinds.ts";
import { BACK_MS, NOTICE_MS, stays, turns, WINDOW_MS } from "../trials/probes.ts";
import type { WorkerProcess } from "../trials/worker_process.ts";

const FLAGS = ["--heartbeat", "1s", "--poll", "200ms", "--lease", "3s", "--capacity", "3", "--drain-grace", "0s"];
const CALLS = { LANEWAY_REST_TIMEOUT: "1s" };
const KINDS = { OK: OK_SCRIPT, SLEEP: SLEEP_SCRIPT };

interface Fault {
  begin(): Promise<unknown> | void;
  end(): Promise<unknown> | void;
  readonly reason: RegExp;
  /** Whether what runs cannot be renewed meanwhile. */
  readonly loses: boolean;
  readonly backMs?: number;
}

/** Unhealthy within two windows with a reason, healthy again by itself, and then an item runs. */
async function faultAndBack(world: HostTrial, runner: WorkerProcess, fault: Fault): Promise<void> {
  const { trial } = world;
  const sweeper = await world.sweeper();
  const running = await trial.enqueue(SLEEP, { ms: fault.loses ? 60_000 : 5_000, againMs: 10 });
  await trial.started(running);
  await turns(runner, 200, 2_000);
  await fault.begin();
  const { body } = await turns(runner, 503, NOTICE_MS);
  assert.match(body, fault.reason);
  // Long enough to lose the lease of what runs, where it is one that is lost.
  if (fault.loses) {
    await waitFor("the command to be ended", async () => (await world.leftovers()).length === 0, { timeoutMs: 6_000 });
  }
  await fault.end();
  await turns(runner, 200, fault.backMs ?? BACK_MS);
  const item = await trial.enqueue(OK);
  await waitFor("both done", async () => (await trial.rows([item, running])).every(({ status }) => status === "done"), {
    timeoutMs: 15_000,
  });
  await stays(runner, 2 * WINDOW_MS);
  assert.equal((await trial.row(running)).attempts, fault.loses ? 2 : 1);
  runner.assertSound();
  sweeper.assertSound();
}

/** One fault in a world of its own. */
async function withFault(fault: (world: HostTrial, proxy: TcpProxy) => Fault): Promise<void> {
  await HostTrial.with(async (world) => {
    const proxy = new TcpProxy(Number(new URL(world.rest.url).port));
    try {
      const host = await world.host("wsl1", { kinds: KINDS, url: `http://127.0.0.1:${proxy.port}` });
      const runner = await host.runner(FLAGS, CALLS);
      await faultAndBack(world, runner, fault(world, proxy));
      await runner.stop();
    } finally {
      await proxy.close();
    }
  });
}

/** The table `table` is gone. */
function gone(table: string, loses: boolean): Promise<void> {
  return withFault(({ trial: { db } }) => ({
    begin: () => db.adminSql(`alter table queue.${table} rename to hidden`),
    end: () => db.adminSql(`alter table queue.hidden rename to ${table}`),
    reason: new RegExp(`${table}.*migrate up`),
    loses,
  }));
}

/** The host's role may not read `table`. */
function denied(table: string): Promise<void> {
  return withFault(({ trial: { db } }) => ({
    begin: () => db.adminSql(`revoke select on queue.${table} from laneway_host`),
    end: () => db.adminSql(`grant select on queue.${table} to laneway_host`),
    reason: /refused this host's key|server answered 403 42501/,
    // What a host may write of items is decided by what it may read of its row.
    loses: true,
    // A refused key is tried again after up to 5 s, then 10 s.
    backMs: 16_000,
  }));
}

const OUT_OF_REACH = { reason: /database (has not answered|is out of reach)/, loses: true };

// Two faults at a time, each in a world of its own: they mostly wait.
Deno.test("B42 a: the table of items, or that of hosts, is gone for a while", async () => {
  await Promise.all([gone("work_items", true), gone("hosts", false)]);
});

Deno.test("B42 b: the REST server is a black hole, or not there, for a while", async () => {
  await Promise.all([
    withFault((_world, proxy) => ({ ...OUT_OF_REACH, begin: () => proxy.blackHole(), end: () => proxy.resume() })),
    withFault(({ rest }) => ({ ...OUT_OF_REACH, begin: () => rest.stop(), end: () => rest.start() })),
  ]);
});

Deno.test("B42 c: the host's role loses its rights on the items, or on the hosts, for a while", async () => {
  await Promise.all([denied("work_items"), denied("hosts")]);
});

Deno.test("B42 d and e: healthy with an empty queue, switched off, at the host's cap, and with every slot taken", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: KINDS });
    // As a host polls: seldom.
    const runner = await host.runner([...FLAGS, "--poll", "1s"], CALLS);
    const beforeMs = await runner.cpuMs();
    await stays(runner, 3 * WINDOW_MS);
    assert.ok(await runner.cpuMs() - beforeMs < 1.5 * WINDOW_MS, "an idle runner idles");
    await world.setRow("wsl1", "enabled = false");
    await runner.sees("host.claims_nothing");
    await stays(runner, 3 * WINDOW_MS);
    await world.setRow("wsl1", `enabled = true, windows = '${JSON.stringify([{ ...ALWAYS, maxInFlight: 2 }])}'`);
    const sleepers = await trial.enqueueMany(SLEEP, 5, { ms: 60_000 });
    for (const id of sleepers.slice(0, 2)) await trial.started(id);
    await stays(runner, 3 * WINDOW_MS);
    assert.equal((await trial.counts()).claimed, 2, "at the cap");
    await world.setRow("wsl1", `windows = '${JSON.stringify([ALWAYS])}'`);
    await waitFor("the third", async () => (await trial.counts()).claimed === 3);
    await stays(runner, 3 * WINDOW_MS);
    runner.assertSound();
  }));
