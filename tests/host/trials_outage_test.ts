/**
 * B10 and B13 for a host: it has neither a listening connection nor one to the database, but HTTP to PostgREST, and polls.
 *
 * B10: what a cut or a half-open connection costs; polls of a second and calls of a second stand for 30 s and 10 s, gaps of
 * seconds for a minute. B13: three runners lose their server at once, in every way: one idle, one claiming at full speed, one
 * whose commands run long. Connections are cut for 6 s instead of a minute, at the trial's rate, the outage is of 4 s instead
 * of 20 s, and a few hundred commands stand for 2,000 items: each is a process. Memory is not compared: what a host keeps is
 * measured where its output is (B49).
 */
import assert from "node:assert/strict";
import { HostTrial, type Machine, OK_SCRIPT, SLEEP_SCRIPT } from "../support/host_trial.ts";
import { type Fate, scriptedRest } from "../support/scripted_rest.ts";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { waitFor } from "../support/wait_for.ts";
import { OK, SLEEP } from "../trials/kinds.ts";
import { NOTICE_MS, turns } from "../trials/probes.ts";
import { pass } from "../trials/trial.ts";
import { type WorkerProcess, worstLogRate } from "../trials/worker_process.ts";

const CALLS = { LANEWAY_REST_TIMEOUT: "1s" };
const POLL_MS = 1_000;
const FLAGS = ["--poll", "1s", "--lease", "10s", "--drain-grace", "0s"];
/** A jittered poll, and what a busy machine adds. */
const SOON_MS = POLL_MS * 1.25 + 1_500;
/** The longest that a server which was asked in vain is left alone, and the loop's own pause after that. */
const REST_MS = 5_000 + 3_000;
/** One line for each of its two voices: the loop, and the heartbeat with its count. */
const VOICES = ["database.out_of_reach", "host.heartbeat_failed", "host.count_failed"];

async function startsSoon({ trial }: HostTrial, limitMs = SOON_MS): Promise<void> {
  const sentMs = Date.now();
  const start = await trial.started(await trial.enqueue(OK), { timeoutMs: 3 * limitMs });
  assert.ok(start.atMs - sentMs < limitMs, `started after ${start.atMs - sentMs} ms`);
}

/** A line a change of state: once, and once more where one call got through in between. */
function assertFewWords(runner: WorkerProcess): void {
  for (const event of VOICES) {
    const lines = runner.logged(event);
    assert.ok(lines.length <= 2, `${event}: ${JSON.stringify(lines)}\n${runner.text()}`);
  }
}

/** A host behind a proxy, and its runner. */
async function behindProxy(
  test: (parts: { world: HostTrial; proxy: TcpProxy; runner: WorkerProcess }) => Promise<void>,
): Promise<void> {
  await HostTrial.with(async (world) => {
    const proxy = new TcpProxy(Number(new URL(world.rest.url).port));
    try {
      const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT }, url: `http://127.0.0.1:${proxy.port}` });
      const runner = await host.runner(FLAGS, CALLS);
      await startsSoon(world);
      await test({ world, proxy, runner });
      runner.assertSound();
      assert.equal(await runner.stop(), 0);
    } finally {
      await proxy.close();
    }
  });
}

Deno.test("B10: after its connections are cut the poll still picks up, and the log says next to nothing", () =>
  behindProxy(async ({ world, proxy, runner }) => {
    for (let cut = 1; cut <= 3; cut++) {
      proxy.cut();
      await startsSoon(world);
      await startsSoon(world);
    }
    assert.ok(proxy.connections <= 20, `${proxy.connections} connections are open`);
    assertFewWords(runner);
    assert.ok(runner.lines.filter(({ item }) => item === undefined).length < 20, runner.text());
  }));

Deno.test("B10: connections that are cut whenever they are open are made anew under five times a second, and log one line", () =>
  behindProxy(async ({ world, proxy, runner }) => {
    proxy.cutEach();
    // Until the first call has spent its tries: from then on the server is given rest.
    await waitFor("a failure in the log", () => VOICES.some((event) => runner.logged(event).length > 0));
    const seconds = 4;
    const before = proxy.accepted;
    await pass(seconds * 1_000);
    const made = proxy.accepted - before;
    assert.ok(made >= 1, `it stopped trying: ${made} connections in ${seconds} s`);
    assert.ok(made < 5 * seconds, `${made} connections in ${seconds} s`);
    assertFewWords(runner);
    proxy.resume();
    await startsSoon(world, SOON_MS + REST_MS);
    await turns(runner, 200, 3_000);
  }));

Deno.test("B10: half-open connections are noticed by the call's timeout; what came meanwhile starts once they pass again", () =>
  behindProxy(async ({ world, proxy, runner }) => {
    const { trial } = world;
    proxy.blackHole();
    await turns(runner, 503, NOTICE_MS);
    const items = await trial.enqueueMany(OK, 3);
    // Each call is given up after a second, and made again on a connection of its own.
    const before = proxy.accepted;
    await waitFor("calls made again", () => proxy.accepted >= before + 3, { timeoutMs: 8_000 });
    const resumedMs = Date.now();
    proxy.resume();
    for (const id of items) {
      const start = await trial.started(id, { timeoutMs: 10_000 });
      // The pause before the next try, and a poll.
      assert.ok(start.atMs - resumedMs < 3_000 + SOON_MS, `${start.atMs - resumedMs} ms`);
    }
    await turns(runner, 200, 3_000);
    assertFewWords(runner);
    for (const row of await trial.rows(items)) assert.deepEqual([row.claims, row.attempts], [1, 1]);
  }));

Deno.test("B10: a claim whose answer never comes is given up by the call's timeout, found, and run once", () =>
  HostTrial.with(async (world) => {
    const { trial, rest } = world;
    const server = scriptedRest(rest.url);
    try {
      const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT }, url: server.url });
      let lost = 0;
      server.script = ({ method, path, query }): Fate =>
        method === "PATCH" && path === "/work_items" && query.get("status") === "eq.queued" && lost++ === 0
          ? "late"
          : "pass";
      const runner = await host.runner(FLAGS, CALLS);
      const item = await trial.enqueue(OK);
      await trial.started(item, { timeoutMs: 5_000 });
      await waitFor("the item done", async () => (await trial.row(item)).status === "done");
      const { attempts, claims } = await trial.row(item);
      assert.deepEqual([attempts, claims, (await trial.starts(item)).length], [1, 1, 1]);
      runner.assertSound();
    } finally {
      await server.stop();
    }
  }));

interface Scene {
  readonly name: string;
  readonly runner: WorkerProcess;
  readonly items: string[];
}

const BACKLOG = 200;
const CUTTING_MS = 6_000;
const OUTAGE_MS = 4_000;
/** After an outage: the rest of at most 4 s that a server is given, and a poll. */
const RESUME_MS = 5_000;
const OUTAGE_FLAGS = ["--poll", "500ms", "--lease", "6s", "--drain-grace", "0s"];

async function enqueue({ trial }: HostTrial, { name, items }: Scene, count: number, kind = "OK"): Promise<void> {
  for (let n = 0; n < count; n++) {
    const ms = { ms: 9_000, againMs: 500 };
    const id = kind === "OK"
      ? await trial.enqueue(OK, {}, { lane: name })
      : await trial.enqueue(SLEEP, ms, { lane: name });
    items.push(id);
  }
}

async function scene(world: HostTrial, name: string, made: { url: string; capacity: number }): Promise<Scene> {
  const kinds = { OK: OK_SCRIPT, SLEEP: SLEEP_SCRIPT };
  const host: Machine = await world.host(name, { kinds, url: made.url, row: { lane: name } });
  const runner = await host.runner([...OUTAGE_FLAGS, "--lane", name, "--capacity", String(made.capacity)], CALLS);
  return { name, runner, items: [] };
}

/** Cuts what is open to the server, and what the server has open to its database, each 200 ms; keeps the busy one busy. */
async function cutAll(world: HostTrial, busy: Scene, proxy: TcpProxy): Promise<void> {
  const { db } = world.trial;
  let backends = 0;
  for (const untilMs = performance.now() + CUTTING_MS; performance.now() < untilMs;) {
    proxy.cut();
    backends += await db.killBackends("usename = 'laneway_test_authenticator'");
    const [row] = await db.adminSql(
      "select count(*) as n from queue.work_items where lane = 'busy' and status = 'queued'",
    );
    if (Number(row?.n) < BACKLOG / 4) await enqueue(world, busy, BACKLOG / 4);
    await pass(200);
  }
  assert.ok(backends > 10, `${backends} of the server's connections were killed`);
}

/** That an item enqueued now begins soon: well within a poll of a host as it comes. */
async function resumes({ trial }: HostTrial, { name, runner, items }: Scene, after: string): Promise<void> {
  const id = await trial.enqueue(OK, {}, { lane: name, priority: 5 });
  items.push(id);
  const sentMs = Date.now();
  const start = await trial.started(id, { timeoutMs: 2 * RESUME_MS }).catch((error) => {
    throw new Error(`${name}: ${error}\n${runner.text()}`);
  });
  assert.ok(start.atMs - sentMs < RESUME_MS, `${name} after ${after}: claims resumed after ${start.atMs - sentMs} ms`);
}

async function assertScene({ trial }: HostTrial, { name, runner, items }: Scene, seconds: number): Promise<void> {
  const runs = Map.groupBy(await trial.seen(), (line) => line.item);
  let again = 0;
  const rows = await trial.rows(items);
  assert.equal(rows.length, items.length, "no item was lost");
  for (const row of rows) {
    const starts = (runs.get(row.id) ?? []).filter((line) => line.what === "start").length;
    assert.equal(row.status, "done", `${name}: ${JSON.stringify(row)}`);
    // An attempt is charged for each claim that expired and the one that ended; nothing else charges.
    assert.ok(row.attempts >= 1 && row.attempts <= row.claims, JSON.stringify(row));
    assert.ok(starts >= 1 && starts <= row.claims, JSON.stringify({ row, starts }));
    if (starts > 1) again++;
  }
  runner.assertSound();
  const worst = worstLogRate(runner.lines, seconds);
  console.log(`${name}: ${items.length} items, ${again} ran more than once; ${runner.lines.length} lines of log`);
  assert.ok(worst.perSecond < 1, `${name}: ${worst.event} at ${worst.perSecond} lines a second`);
  await turns(runner, 200, 3_000);
  assert.equal(await runner.stop(), 0);
}

Deno.test("B13: runners survive cuts, crashes of their server and an outage; every item ends done, claims resume in five seconds", () =>
  HostTrial.with(async (world) => {
    const { trial, rest } = world;
    const proxy = new TcpProxy(Number(new URL(rest.url).port));
    try {
      const url = `http://127.0.0.1:${proxy.port}`;
      const sweeper = await world.sweeper(500);
      const [busy, long, idle] = [
        await scene(world, "busy", { url, capacity: 6 }),
        await scene(world, "long", { url, capacity: 6 }),
        // Directly: it meets a port that nobody listens on, the others connections that end.
        await scene(world, "idle", { url: rest.url, capacity: 2 }),
      ];
      const scenes = [busy, long, idle];
      const beganMs = performance.now();
      await enqueue(world, busy, BACKLOG);
      await enqueue(world, long, 4, "SLEEP");
      await cutAll(world, busy, proxy);
      await Promise.all(scenes.map((each) => resumes(world, each, "cuts")));
      for (let crash = 0; crash < 2; crash++) {
        await rest.stop();
        await rest.start();
        await Promise.all(scenes.map((each) => resumes(world, each, `crash ${crash}`)));
      }
      await rest.stop();
      await pass(OUTAGE_MS);
      await rest.start();
      await Promise.all(scenes.map((each) => resumes(world, each, "the outage")));
      await trial.allFinished(40_000);
      await trial.assertOneEnd();
      const seconds = (performance.now() - beganMs) / 1_000;
      for (const each of scenes) await assertScene(world, each, seconds);
      sweeper.assertSound();
    } finally {
      await proxy.close();
    }
  }));
