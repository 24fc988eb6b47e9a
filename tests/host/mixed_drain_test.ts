/**
 * A worker with a database and two hosts under different policies drain 5,000 mixed items together, on one machine and as
 * processes, while one host's runner is killed again and again and the other is switched off and on.
 */
import assert from "node:assert/strict";
import { type HostName, POLICIES, type Taker } from "../support/drain_groups.ts";
import { type Mark, markOf, type Replay, replay } from "../support/drain_marks.ts";
import { type Change, DrainWorld } from "../support/drain_world.ts";
import { waitFor } from "../support/wait_for.ts";
import type { WorkerProcess } from "../trials/worker_process.ts";

const KILLS = 10;
const SWITCHES = 2;
/** The least each is to have run: of all, and of what anybody may take. */
const LEAST: Readonly<Record<Taker, number>> = { sql: 1_000, "host-a": 150, "host-b": 150 };
const LEAST_SHARED = 10;
const DRAIN_MS = 120_000;
const STEP_MS = 40_000;
const HOSTS = ["host-a", "host-b"] as const;
const TAKERS = ["sql", ...HOSTS] as const;

/** What a drain tells once it is over. */
interface Told {
  readonly history: readonly Change[];
  readonly marks: readonly Mark[];
}

/** Kills host A's runner while its commands run, each time after another number of them, and starts it again. */
async function killAgain({ world, runner }: { world: DrainWorld; runner: WorkerProcess }): Promise<WorkerProcess> {
  const { marks } = world;
  for (let n = 0; n < KILLS; n++) {
    const wanted = marks.starts("host-a") + 10 + (n * 7) % 15;
    await waitFor(`run ${wanted} of host A (kill ${n})`, () => {
      assert.equal(runner.ended, null, runner.text());
      return marks.starts("host-a") >= wanted && marks.running("host-a").length > 0;
    }, { timeoutMs: STEP_MS, everyMs: 3 });
    await world.kill("host-a", runner);
    runner = await world.startHost("host-a");
  }
  return runner;
}

/** Switches host B off while there is work that only it may do, sees that it is quiet, and switches it on again. */
async function switchAgain(world: DrainWorld): Promise<void> {
  const { marks } = world;
  const own = [...world.groups].filter(([, { takers }]) => takers.join() === "host-b").map(([id]) => id);
  const others = () => marks.starts("host-a") + marks.starts("sql");
  for (let n = 0; n < SWITCHES; n++) {
    const wanted = marks.starts("host-b") + 30;
    await waitFor(`run ${wanted} of host B`, () => marks.starts("host-b") >= wanted, { timeoutMs: STEP_MS });
    await world.switchTo("host-b", false);
    // The first may have been on its way.
    await world.beats("host-b", 2);
    await waitFor("host B's claims", async () => await world.count("status = 'claimed' and host = 'host-b'") === 0);
    marks.note("quiet", "host-b");
    const before = others();
    await world.beats("host-b", 3);
    await waitFor("runs of others", () => others() >= before + 20, { timeoutMs: STEP_MS });
    assert.ok(await world.count("status = 'queued' and ready", own) > 0, "there was work for it");
    marks.note("on", "host-b");
    await world.switchTo("host-b", true);
  }
  const wanted = marks.starts("host-b") + 20;
  await waitFor(`run ${wanted} of host B, switched on`, () => marks.starts("host-b") >= wanted, { timeoutMs: STEP_MS });
}

/** Waits until what hosts completed is in the history too; by itself it would be there after a minute. */
async function archived(world: DrainWorld): Promise<void> {
  await world.db.adminSql(
    "update queue.work_items set updated_at = updated_at - interval '1 hour' where status = 'done'",
  );
  await waitFor("the archive", async () => await world.count("status = 'done'") === 0, { timeoutMs: 20_000 });
}

/** Each item ended once, under a claim, as it was meant to. */
async function assertOneEnd(world: DrainWorld, history: readonly Change[]): Promise<void> {
  const final = ["done", "failed", "gone"];
  const ends = history.filter(({ was, became }) => final.includes(became) && !(was === "done" && became === "gone"));
  const strange = ends.filter(({ was }) => was !== "claimed");
  assert.deepEqual(strange, [], "only who held an item ended it");
  assert.equal(ends.length, new Set(ends.map(({ id }) => id)).size, "none ended twice");
  const rows = await world.db.adminSql(
    "select id, 'done' as status from queue.work_history union all select id, status from queue.work_items",
  );
  assert.equal(rows.length, world.groups.size, "each item is there once");
  const status = new Map(rows.map((row) => [String(row.id), row.status]));
  const wrong = [...world.groups].filter(([id, { ends }]) => status.get(id) !== ends)
    .map(([id, { name, ends }]) => `${id} (${name}): ${status.get(id)} in place of ${ends}`);
  assert.deepEqual(wrong, []);
}

/** Who claimed what, by the database, and who ran what, by the runs themselves and by the attempts that hosts recorded. */
async function assertPolicies(world: DrainWorld, told: Told) {
  const may = (who: Taker, id: string) => world.groups.get(id)?.takers.includes(who) === true;
  const name = (who: string, id: string) => `${who}: ${world.groups.get(id)?.name}`;
  const claims = told.history.filter(({ became }) => became === "claimed");
  const starts = told.marks.filter(({ what }) => what === "start");
  const tally = (all: string[]) =>
    Object.entries(Object.groupBy(all, (one) => one)).map(([k, v]) => `${k} ${v?.length}`);
  assert.deepEqual(tally(claims.filter(({ by, id }) => !may(by, id)).map(({ by, id }) => name(by, id))), [], "claimed");
  assert.deepEqual(tally(starts.filter(({ who, item }) => !may(who, item)).map((m) => name(m.who, m.item))), [], "ran");
  assert.deepEqual(tally(claims.filter(({ due }) => !due).map(({ by, id }) => name(by, id))), [], "not yet due");
  // A host may write what bears its name: no claim of another's does.
  const misnamed = claims.filter(({ by, host }) => host !== (by === "sql" ? null : by));
  assert.deepEqual(tally(misnamed.map(({ by, host }) => `claimed by ${by}, host ${host}`)), []);

  const attempts = await world.db.adminSql("select item_id, claim_token, host from queue.attempts");
  const claimed = new Set(claims.map(({ id, token, by }) => `${id} ${token} ${by}`));
  const unfounded = attempts.filter((row) => !claimed.has(`${row.item_id} ${row.claim_token} ${row.host}`));
  assert.deepEqual(unfounded, [], "every attempt was made under a claim of its host");
  // Host B was never killed: each of its runs is recorded. Who is killed records nothing of what it ran at that moment.
  for (const [host, least] of [["host-a", 0.5], ["host-b", 1]] as const) {
    const recorded = attempts.filter((row) => row.host === host).map((row) => String(row.item_id));
    const ran = starts.filter(({ who }) => who === host).map(({ item }) => item);
    const found = ran.length - without(ran, recorded).length;
    assert.ok(found >= ran.length * least, `${host} recorded ${found} of ${ran.length} runs`);
  }
}

/** What of a list is left when each of others has been taken out once. */
function without(all: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const one of others) counts.set(one, (counts.get(one) ?? 0) + 1);
  return all.filter((one) => {
    const count = counts.get(one) ?? 0;
    counts.set(one, count - 1);
    return count <= 0;
  });
}

/** How many runs of a taker's have begun, and how many of them were of what anybody may run. */
function runsOf({ marks, groups }: DrainWorld, who: Taker): { who: Taker; ran: number; shared: number } {
  const ran = marks.all.filter((mark) => mark.what === "start" && mark.who === who);
  const shared = ran.filter(({ item }) => groups.get(item)?.takers.length === TAKERS.length);
  return { who, ran: ran.length, shared: shared.length };
}

/** What each ran, and how many items went from a host to the worker with a database. */
function sharesOf(world: DrainWorld, { history }: Told) {
  const shares = TAKERS.map((who) => runsOf(world, who));
  const last = new Map<string, Taker>();
  let handedOver = 0;
  for (const { id, by, became } of history) {
    if (became !== "claimed") continue;
    if (by === "sql" && (last.get(id) ?? "sql") !== "sql") handedOver++;
    last.set(id, by);
  }
  return { shares, handedOver };
}

/** Nobody was left out, and what could have gone wrong could have. */
function assertShares({ shares, handedOver }: ReturnType<typeof sharesOf>): void {
  for (const { who, ran, shared } of shares) {
    assert.ok(ran >= LEAST[who], `${who} ran ${ran}`);
    assert.ok(shared >= LEAST_SHARED, `${who} ran ${shared} of what anybody may`);
  }
  assert.ok(handedOver > 0, "some items went from a host to the worker with a database");
}

/** No cap was exceeded, no item ran twice at once, and who was switched off began nothing. */
function assertRuns({ wrong, most, whileQuiet }: Replay): void {
  assert.deepEqual(wrong, []);
  assert.deepEqual(whileQuiet, [], "host B was switched off");
  for (const host of HOSTS) {
    const cap = POLICIES[host].windows?.[0]?.maxInFlight ?? 0;
    assert.ok(most[host] <= cap, `${host} ran ${most[host]} at once, and may run ${cap}`);
  }
  assert.equal(most["host-b"], 3, "its cap, and not its runner's capacity, held it back");
}

/** What was running at a kill was run again, by whomever, and ended. */
function assertRunAgain(
  interrupted: readonly Mark[],
  { history, marks }: Told,
) {
  assert.ok(interrupted.length >= KILLS / 2, `${interrupted.length} runs were interrupted by ${KILLS} kills`);
  for (const { item, fence } of interrupted) {
    const later = marks.filter((mark) =>
      mark.what === "start" && mark.item === item && Number(mark.fence) > Number(fence)
    );
    assert.ok(later.length > 0, `${item} was interrupted and not run again`);
    assert.ok(history.some(({ id, was, became }) => id === item && was === "claimed" && became !== "queued"));
  }
}

/** Nothing is left on a machine whose runner has been stopped. */
async function assertNothingLeft(world: DrainWorld, host: HostName): Promise<void> {
  assert.deepEqual(await world.processesOf(host), [], `processes of ${host}`);
  assert.deepEqual(await world.workFolders(host), [], `work directories of ${host}`);
}

Deno.test("marks tell of runs at once, runs again, runs at a kill and runs while switched off", () => {
  const text = [
    ...[
      "start host-b x 1",
      "start host-a y 1",
      "start sql x 2",
      "end sql x 2",
      "start host-a z 1",
      "killed host-a - -",
    ],
    ...[
      "start host-b y 2",
      "end host-b y 2",
      "start host-b y 2",
      "quiet host-b - -",
      "start host-b v 1",
      "on host-b - -",
    ],
  ];
  const told = replay(text.map(markOf));
  assert.deepEqual(told.wrong, ["sql began x 2 while host-b ran x 1", "host-b began y 2 again"]);
  assert.deepEqual(told.interrupted.map(({ item }) => item), ["y", "z"]);
  assert.deepEqual(told.whileQuiet.map(({ item }) => item), ["v"]);
  assert.deepEqual(told.most, { sql: 1, "host-a": 2, "host-b": 2 });
});

Deno.test("5,000 mixed items drain between a database worker and two hosts, through kills and the kill switch", () =>
  DrainWorld.with(async (world) => {
    assert.equal(world.groups.size, 5_000);
    const beganMs = performance.now();
    const [a, b] = [await world.startHost("host-a"), await world.startHost("host-b")];
    // What no host may take stands before all else, and as yet there is nobody else to take it.
    for (const who of HOSTS) {
      await waitFor(`runs of ${who}`, () => runsOf(world, who).shared >= LEAST_SHARED, { timeoutMs: STEP_MS });
    }
    const sql = await world.startSql();
    const [runner] = await Promise.all([killAgain({ world, runner: a }), switchAgain(world)]);
    const troubledMs = performance.now();
    await waitFor("every item's end", async () => await world.count("status in ('queued', 'claimed')") === 0, {
      ...{ timeoutMs: DRAIN_MS, everyMs: 250 },
    });
    const endedMs = performance.now();
    assert.deepEqual([await runner.stop(), await b.stop()], [0, 0]);
    for (const host of HOSTS) await assertNothingLeft(world, host);
    await archived(world);
    assert.equal(await sql.stop(), 0);
    for (const worker of [runner, b, sql]) worker.assertNoStray();

    const told = { history: await world.history(), marks: world.marks.all };
    const replayed = replay(told.marks);
    const shares = sharesOf(world, told);
    const seconds = (ms: number) => `${((ms - beganMs) / 1_000).toFixed(1)} s`;
    console.log(
      `drained in ${seconds(endedMs)}, kills and switches over at ${seconds(troubledMs)},`,
      `${replayed.interrupted.length} runs interrupted, ${shares.handedOver} handed over,`,
      shares.shares.map(({ who, ran, shared }) => `${who} ran ${ran} (${shared} of anybody's)`).join(", "),
    );
    await assertOneEnd(world, told.history);
    await assertPolicies(world, told);
    assertRuns(replayed);
    assertRunAgain(replayed.interrupted, told);
    assertShares(shares);
  }));
