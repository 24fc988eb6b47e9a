/**
 * B13: three workers lose their database at once, in every way: one idle, one claiming at full speed, one whose items run
 * long. Connections are killed for 15 s instead of a minute, the outage is of 8 s instead of 20 s; the rate is the trial's.
 */
import assert from "node:assert/strict";
import type { PostgresServer } from "../support/postgres_server.ts";
import { startPrivateServer } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";
import { ECHO, OK, SLEEP } from "./kinds.ts";
import { pass, Trial, WORKER_BACKENDS } from "./trial.ts";
import { type WorkerProcess, worstLogRate } from "./worker_process.ts";

const FLAGS = ["--poll", "500ms", "--lease", "5s", "--sweep", "1s"];
const KILLING_MS = 15_000;
const BACKLOG = 2_000;
const SLEEPERS = 10;
/** Long enough for one lease after another to be renewed; short again, as expired claims run one after the other. */
const SLEEP_MS = 20_000;
const RESUME_MS = 5_000;
/** What code that is compiled only when things fail may take, beside the trial's tenth. */
const MEMORY_MIB = 3;

interface Scene {
  readonly name: string;
  readonly trial: Trial;
  readonly worker: WorkerProcess;
  readonly items: string[];
  readonly liveMiB: number;
}

/** The worker's memory in use, garbage not counted; the `times`th time it is asked. */
async function liveMiB(trial: Trial, worker: WorkerProcess, times: number): Promise<number> {
  await trial.enqueue(ECHO);
  return Number((await worker.sees("trial.echo", { times })).liveMiB);
}

/** Kills every connection of every worker each 200 ms, and keeps the busy one busy. */
async function killAll(scenes: readonly Scene[], busy: Scene): Promise<number> {
  let kills = 0;
  for (const untilMs = performance.now() + KILLING_MS; performance.now() < untilMs;) {
    const killed = await Promise.all(scenes.map(({ trial }) => trial.db.killBackends(WORKER_BACKENDS)));
    kills += killed.reduce((sum, n) => sum + n, 0);
    const { queued = 0 } = await busy.trial.counts();
    if (queued < BACKLOG / 4) busy.items.push(...await busy.trial.enqueueMany(OK, BACKLOG / 4));
    await pass(200);
  }
  return kills;
}

/** That an item enqueued now begins within five seconds. */
async function resumes(scene: Scene, after: string): Promise<void> {
  const item = await waitFor("an enqueue", () => scene.trial.enqueue(OK, {}, { priority: 1 }).catch(() => undefined));
  scene.items.push(item);
  const sentMs = Date.now();
  const start = await trialStart(scene, item);
  assert.ok(start - sentMs < RESUME_MS, `${scene.name} after ${after}: claims resumed after ${start - sentMs} ms`);
}

async function trialStart({ trial, name, worker }: Scene, item: string): Promise<number> {
  try {
    return (await trial.started(item, { timeoutMs: 3 * RESUME_MS })).atMs;
  } catch (error) {
    throw new Error(`${name}: ${error}\n${worker.text()}`);
  }
}

async function scene(server: PostgresServer, name: string, run: (scene: Scene) => Promise<void>): Promise<void> {
  await Trial.with(async (trial) => {
    const capacity = name === "sleepers" ? SLEEPERS + 2 : 10;
    const worker = await trial.worker([...FLAGS, "--capacity", String(capacity)]);
    // Warm: code compiled, pools filled.
    const items = await trial.enqueueMany(OK, 200);
    await trial.allFinished(20_000);
    const before = await liveMiB(trial, worker, 1);
    await run({ name, trial, worker, items, liveMiB: before });
  }, server);
}

async function faults(scenes: readonly Scene[], busy: Scene, server: PostgresServer): Promise<void> {
  const kills = await killAll(scenes, busy);
  assert.ok(kills > 100, `${kills} connections were killed`);
  await Promise.all(scenes.map((each) => resumes(each, "kills")));
  for (let crash = 0; crash < 2; crash++) {
    await server.restart("immediate");
    await Promise.all(scenes.map((each) => resumes(each, `crash ${crash}`)));
  }
  await server.stop();
  await pass(8_000);
  await server.start();
  await Promise.all(scenes.map((each) => resumes(each, "the outage")));
}

/** Every item done under its own token; an OK item ran once for each attempt that was charged or cut off. */
async function assertItems({ name, trial, items }: Scene): Promise<void> {
  await trial.assertOneEnd();
  const runs = Map.groupBy(await trial.seen(), (line) => line.item);
  let again = 0;
  for (const row of await trial.rows()) {
    const starts = (runs.get(row.id) ?? []).filter((line) => line.what === "start");
    assert.equal(row.status, "done", `${name}: ${JSON.stringify(row)}`);
    // An attempt is charged for each claim that expired and the one that ended; nothing else charges.
    assert.ok(row.attempts >= 1 && row.attempts <= row.claims, JSON.stringify(row));
    assert.ok(starts.length >= 1 && starts.length <= row.claims, JSON.stringify({ row, starts }));
    if (starts.length > 1) again++;
  }
  const rows = await trial.rows(items);
  assert.equal(rows.length, items.length, "no item was lost");
  console.log(`${name}: ${rows.length} items, ${again} ran more than once`);
}

async function assertWorker({ name, trial, worker, liveMiB: before }: Scene, seconds: number): Promise<void> {
  worker.assertSound();
  assert.equal((await worker.probe("/healthz", 2_000)).status, 200);
  const worst = worstLogRate(worker.lines, seconds);
  assert.ok(worst.perSecond < 1, `${name}: ${worst.event} at ${worst.perSecond} lines a second`);
  const after = await liveMiB(trial, worker, 2);
  console.log(`${name}: ${before.toFixed(1)} MiB before, ${after.toFixed(1)} MiB after; ${worker.lines.length} lines`);
  assert.ok(after < before * 1.1 + MEMORY_MIB, `${name}: ${before} MiB in use became ${after} MiB`);
  assert.equal(await worker.stop(), 0);
}

Deno.test("B13: workers survive kills, crashes and an outage; every item ends done, claims resume in five seconds", async () => {
  // What was acknowledged must outlive a crash of the server, as it does in earnest; of the machine, it need not.
  const server = await startPrivateServer({ settings: { synchronous_commit: "on" } });
  try {
    await scene(
      server,
      "idle",
      (idle) =>
        scene(server, "busy", (busy) =>
          scene(server, "sleepers", async (sleepers) => {
            const scenes = [idle, busy, sleepers];
            const beganMs = performance.now();
            busy.items.push(...await busy.trial.enqueueMany(OK, BACKLOG));
            sleepers.items.push(...await sleepers.trial.enqueueMany(SLEEP, SLEEPERS, { ms: SLEEP_MS, againMs: 500 }));
            await faults(scenes, busy, server);
            await Promise.all(scenes.map(({ trial }) => trial.allFinished(40_000)));
            const seconds = (performance.now() - beganMs) / 1_000;
            for (const each of scenes) {
              await assertItems(each);
              await assertWorker(each, seconds);
            }
          })),
    );
  } finally {
    await server.remove();
  }
});
