/**
 * The failure modes of a worker that polls for itself, one test a row of the table that asked for this runner: the real
 * runner as a process, a real PostgREST, a real Postgres, and where a row needs one a real worker with a database. Polls of
 * 200 ms stand for 30 s and leases of seconds for minutes.
 */
import assert from "node:assert/strict";
import type { HostWindow } from "../../src/host/types.ts";
import { ALWAYS, HostTrial, OK_SCRIPT, SLEEP_SCRIPT } from "../support/host_trial.ts";
import { noticeServer } from "../support/notice_server.ts";
import { type Fate, scriptedRest } from "../support/scripted_rest.ts";
import { waitFor } from "../support/wait_for.ts";
import { ECHO, OK, SLEEP, THROW } from "../trials/kinds.ts";
import type { WorkerProcess } from "../trials/worker_process.ts";

const FLAGS = ["--poll", "200ms", "--lease", "2s", "--drain-grace", "0s"];
const LONG = { timeoutMs: 20_000 };

/** Waits for its gate, so that a test says when it ends. */
const GATED = 'while [ ! -e "$GATE" ]; do sleep 0.05; done\nsay end\n';

async function done(world: HostTrial, ids: readonly string[]): Promise<void> {
  await waitFor(
    "the items done",
    async () => (await world.trial.rows(ids)).every(({ status }) => status === "done"),
    LONG,
  );
}

/** Resolves once the host has beaten `times` more. */
async function beats(world: HostTrial, times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    const before = (await world.row("wsl1")).beat;
    await waitFor("a heartbeat", async () => (await world.row("wsl1")).beat !== before);
  }
}

/** That it never said anything but what belongs to a host's ordinary life. */
function assertQuiet(runner: WorkerProcess): void {
  assert.deepEqual(runner.lines.filter(({ level }) => level === "warn" || level === "error"), []);
  runner.assertNoStray();
}

Deno.test("failure mode: a race for an item that a SQL claimer wins is zero rows, and the runner goes on to the next", () =>
  HostTrial.with(async (world) => {
    const { trial, rest } = world;
    const { work, tenancy } = trial.managers;
    const server = scriptedRest(rest.url);
    try {
      const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT }, url: server.url });
      const first = await trial.enqueue(OK, {}, { priority: 5 });
      const second = await trial.enqueue(OK);
      const rctx = tenancy.requestContext({ type: "SERVICE", version: "sql@1" });
      const claims = { lane: "default", kinds: [OK.name], worker: "sql", leaseMs: 60_000, limit: 1 };
      let taken: Awaited<ReturnType<typeof work.claim>> | null = null;
      // Between the runner's read and its write.
      server.script = async ({ method, query }): Promise<Fate> => {
        if (method === "PATCH" && query.get("id") === `eq.${first}`) taken ??= await work.claim(rctx, claims);
        return "pass";
      };
      const runner = await host.runner(FLAGS);
      await done(world, [second]);
      const [won] = await waitFor("the SQL claim", () => taken ?? undefined);
      assert.ok(won);
      assert.equal(won.item.id, first);
      await beats(world, 2);
      await work.complete(won.ctx, won.item);
      assert.deepEqual((await trial.seen()).map(({ item }) => item), [second, second], "it ran the other alone");
      for (const row of await trial.rows()) assert.deepEqual([row.status, row.attempts, row.claims], ["done", 1, 1]);
      assertQuiet(runner);
      assert.equal(await runner.stop(), 0);
    } finally {
      await server.stop();
    }
  }));

Deno.test("failure mode: a race against a working SQL worker for every item: each runs once, both take their share", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { SLEEP: SLEEP_SCRIPT } });
    const [sql, runner] = await Promise.all([
      trial.worker(["--capacity", "2", "--poll", "200ms"]),
      host.runner([...FLAGS, "--capacity", "2"]),
    ]);
    const items = await trial.enqueueMany(SLEEP, 30, { ms: 100 });
    await done(world, items);
    const starts = (await trial.seen()).filter(({ what }) => what === "start");
    assert.equal(starts.length, items.length);
    assert.equal(new Set(starts.map(({ item }) => item)).size, items.length);
    const bySql = starts.filter(({ pid }) => pid === sql.pid).length;
    assert.ok(bySql > 0 && bySql < items.length, `${bySql} of ${items.length} ran on the SQL worker`);
    await trial.assertOneEnd();
    assertQuiet(runner);
    sql.assertSound();
  }));

Deno.test("failure mode: a runner that crashes in mid-job is swept by a SQL worker, and current workers are counted anew", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { SLEEP: SLEEP_SCRIPT } });
    const sweeper = await world.sweeper();
    const items = await trial.enqueueMany(SLEEP, 2, { ms: 300_000, againMs: 10 });
    const crashed = await host.runner(FLAGS);
    for (const id of items) await trial.started(id);
    await waitFor("both counted", async () => (await world.row("wsl1")).current_workers === 2);
    crashed.signal("SIGKILL");
    await crashed.end();
    await waitFor("its commands' end", async () => (await world.leftovers()).length === 0);
    await waitFor("the sweep", async () => (await trial.rows(items)).every(({ status }) => status === "queued"), LONG);
    for (const row of await trial.rows(items)) assert.deepEqual([row.attempts, row.claimedBy], [1, null]);
    assert.equal((await world.row("wsl1")).current_workers, 2, "nobody wrote it since");
    await world.setRow("wsl1", "enabled = false");
    const runner = await host.runner(FLAGS);
    await waitFor(
      "the count of a host that holds nothing",
      async () => (await world.row("wsl1")).current_workers === 0,
    );
    // Whatever somebody else writes there: it is set from a count, not counted up and down.
    await world.setRow("wsl1", "current_workers = 40");
    await waitFor("it to be mended", async () => (await world.row("wsl1")).current_workers === 0);
    await world.setRow("wsl1", "enabled = true");
    await done(world, items);
    for (const row of await trial.rows(items)) assert.deepEqual([row.attempts, row.claims >= 2], [2, true]);
    await trial.assertOneEnd();
    for (const worker of [sweeper, runner]) worker.assertSound();
    assert.equal(await runner.stop(), 0);
    assert.deepEqual(await host.workFolders(), [], "what the crashed one left is cleared");
  }));

for (const how of ["expired", "missing"] as const) {
  Deno.test(`failure mode: a key that is ${how} is one notice, a pause and a retry; no row is lost`, () =>
    HostTrial.with(async (world) => {
      const { trial, rest } = world;
      const server = scriptedRest(rest.url);
      const notices = noticeServer();
      try {
        const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT, SLEEP: SLEEP_SCRIPT }, url: server.url });
        await world.sweeper();
        const running = await trial.enqueue(SLEEP, { ms: 300_000, againMs: 10 });
        const runner = await host.runner(FLAGS, { LANEWAY_NOTICE_WEBHOOK: notices.url });
        await trial.started(running);
        if (how === "expired") await host.writeKey(await rest.key("wsl1", { expired: true }));
        else await Deno.remove(`${host.folder}/key`);
        await runner.sees("host.key_refused");
        const later = await trial.enqueue(OK);
        const before = server.seen.length;
        // Nothing can be renewed: what ran is ended here before anybody else may begin it, and taken back by the sweep.
        await waitFor("the sweep", async () => (await trial.row(running)).status === "queued", LONG);
        assert.deepEqual(await world.leftovers(), []);
        const asked = server.seen.length - before;
        assert.ok(asked <= (how === "expired" ? 8 : 0), `${asked} calls with a key that is refused`);
        assert.equal((await trial.row(later)).status, "queued");
        runner.assertSound();
        await host.writeKey(await rest.key("wsl1"));
        await done(world, [running, later]);
        assert.deepEqual(notices.titles, ["key refused *"]);
        assert.equal(runner.logged("host.key_refused").length, 1);
        for (const [id, attempts] of [[running, 2], [later, 1]] as const) {
          assert.equal((await trial.row(id)).attempts, attempts);
        }
        await trial.assertOneEnd();
        runner.assertSound();
      } finally {
        await notices.stop();
        await server.stop();
      }
    }));
}

Deno.test("failure mode: enabled=false flipped while a command runs: it is finished, nothing more is claimed", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { OK: GATED } });
    const runner = await host.runner([...FLAGS, "--capacity", "4"]);
    const running = await trial.enqueue(OK);
    await trial.started(running);
    await world.setRow("wsl1", "enabled = false");
    const said = await runner.sees("host.claims_nothing");
    assert.equal(said.reason, "disabled");
    const later = await trial.enqueue(OK);
    // Longer than its lease: it is renewed by a host that is off.
    const leased = await lease(world, running);
    await waitFor("renewals", async () => await lease(world, running) > leased + 2_000);
    await host.openGate();
    await done(world, [running]);
    await beats(world, 3);
    const { status, claims } = await trial.row(later);
    assert.deepEqual([status, claims, (await trial.row(running)).attempts], ["queued", 0, 1]);
    assert.equal(runner.logged("host.claims_nothing").length, 1, "one line a change");
    assertQuiet(runner);
    await world.setRow("wsl1", "enabled = true");
    await done(world, [later]);
    runner.assertSound();
  }));

async function lease({ trial }: HostTrial, id: string): Promise<number> {
  const [row] = await trial.db.adminSql(
    "select (extract(epoch from lease_expires_at) * 1000)::text as ms from queue.work_items where id = $1::uuid",
    [id],
  );
  return Number(row?.ms);
}

Deno.test("failure mode: a window that allows 0 claims nothing, until the next one opens by itself", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    // Windows begin at full minutes. The database's clock, as its answers to heartbeats tell it, is set back so far that the
    // next one is seconds away.
    await trial.db.adminSql("create table trial.back (ms int)");
    await trial.db.adminSql("insert into trial.back values (0)");
    await trial.db.adminSql(
      `create function trial.set_back() returns trigger language plpgsql security definer as $$ begin
      new.last_heartbeat_at := now() - (select ms from trial.back) * interval '1 millisecond';
      return new;
    end $$`,
    );
    await trial.db.adminSql(
      "create trigger back before update on queue.hosts for each row execute function trial.set_back()",
    );
    const nowMs = Date.now();
    const opensMs = nowMs - nowMs % 60_000;
    const wall = (ms: number) => new Date(ms).toISOString().slice(11, 16);
    const windows: HostWindow[] = [
      { ...ALWAYS, name: "day", from: wall(opensMs), to: wall(opensMs + 3_600_000) },
      { ...ALWAYS, name: "night", maxInFlight: 0 },
    ];
    const setTo = (ms: number) => trial.db.adminSql("update trial.back set ms = $1", [Math.round(Date.now() - ms)]);
    await setTo(opensMs - 120_000);
    const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT }, row: { windows } });
    const item = await trial.enqueue(OK);
    // A lease as long as the clock is set back.
    const runner = await host.runner([...FLAGS, "--lease", "5m"]);
    const said = await runner.sees("host.claims_nothing");
    assert.deepEqual([said.reason, said.opensAt], ["window-closed", new Date(opensMs).toISOString()]);
    assert.match(String(said.said), /night.*allows nothing/);
    await beats(world, 3);
    assert.deepEqual([(await trial.row(item)).status, (await trial.row(item)).claims], ["queued", 0]);
    await setTo(opensMs - 1_500);
    await done(world, [item]);
    assert.equal(runner.logged("host.claims_nothing").length, 1, "one line a change");
    assert.equal((await runner.sees("host.claims")).window, "day");
    assertQuiet(runner);
  }));

Deno.test("failure mode: a mis-weighted heavy item and one of emergency priority are never claimed", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const host = await world.host("wsl1", { kinds: { OK: OK_SCRIPT, SLEEP: SLEEP_SCRIPT }, row: { kinds: [OK.name] } });
    const never = [
      await trial.enqueue(OK, {}, { weight: "heavy" }),
      await trial.enqueue(OK, {}, { weight: "playwright" }),
      await trial.enqueue(OK, {}, { priority: 1 }),
      await trial.enqueue(OK, {}, { priority: 4, weight: "super-light" }),
      await trial.enqueue(OK, {}, { hostPreference: "bms-4" }),
      await trial.enqueue(SLEEP, { ms: 1 }),
    ];
    const runner = await host.runner(FLAGS);
    const plain = [
      await trial.enqueue(OK, {}, { priority: 5 }),
      await trial.enqueue(OK, {}, { priority: 50, weight: "super-light" }),
      await trial.enqueue(OK, {}, { hostPreference: "wsl1" }),
    ];
    await done(world, plain);
    await beats(world, 3);
    for (const row of await trial.rows(never)) assert.deepEqual([row.status, row.claims], ["queued", 0]);
    assert.deepEqual(new Set((await trial.seen()).map(({ item }) => item)), new Set(plain));
    assertQuiet(runner);
  }));

const CLI = `#!/bin/sh
if [ ! -e "$0.login" ]; then echo "Not logged in: run login first" >&2; exit 1; fi
exit 0
`;

Deno.test("failure mode: a login that was never made: the item fails with a named reason, and check names the login test", () =>
  HostTrial.with(async (world) => {
    const { trial } = world;
    const folder = trial.folder;
    await Deno.writeTextFile(`${folder}/agent`, CLI, { mode: 0o755 });
    const command = {
      argv: [`${folder}/agent`, "-p", "work"],
      loginTest: { argv: [`${folder}/agent`, "-p", "echo ok"] },
    };
    const host = await world.host("wsl1", { kinds: { OK: command, THROW: { ...command, exits: { "1": "final" } } } });
    await world.sweeper();
    const runner = await host.runner(FLAGS);
    // One attempt is left, and a config that takes exit 1 for final.
    const items = [await trial.enqueue(OK, {}, { maxAttempts: 1 }), await trial.enqueue(THROW, { code: "" })];
    for (const id of items) {
      const failed = await waitFor("the failure", async () => {
        const row = await trial.row(id);
        return row.status === "failed" ? row : undefined;
      });
      assert.equal(failed.attempts, 1);
      assert.match(failed.lastError ?? "", /exit_code: agent exited with 1 .*Not logged in: run login first/);
    }
    const attempts = await waitFor("the attempts", async () => {
      const rows = await trial.db.adminSql(
        "select outcome, reason, exit_code, stderr_tail from queue.attempts order by outcome",
      );
      return rows.length === 2 ? rows : undefined;
    });
    const same = { reason: "exit_code", exit_code: 1, stderr_tail: "Not logged in: run login first\n" };
    assert.deepEqual(attempts, [{ outcome: "final", ...same }, { outcome: "retry", ...same }]);
    const refused = await host.check();
    assert.equal(refused.code, 1);
    const fails = refused.out.filter((line) => line.startsWith("fail"));
    assert.equal(fails.length, 2, fails.join("\n"));
    for (const line of fails) {
      assert.match(line, /^fail +login (OK|THROW) .*agent exited with 1: Not logged in.*log in on this host itself/);
    }
    await Deno.writeTextFile(`${folder}/agent.login`, "");
    const passed = await host.check();
    assert.equal(passed.code, 0, passed.out.join("\n"));
    const next = await trial.enqueue(OK, {}, { maxAttempts: 1 });
    await done(world, [next]);
    runner.assertSound();
  }));

/** Finishes its own item through the API, as `$1` says; then goes on beyond its lease, and exits as if it had not. */
const FINISHES_ITSELF = `finish() {
  curl -sS -f -o /dev/null -X PATCH "$API/work_items?id=eq.$LANEWAY_ITEM_ID&claims=eq.$LANEWAY_FENCE&status=eq.claimed" \\
    -H "Authorization: Bearer $API_KEY" -H 'Content-Profile: queue' -H 'Content-Type: application/json' \\
    -d "{$1,\\"last_error\\":\\"by the command\\",\\"lease_expires_at\\":null,\\"updated_at\\":\\"now\\",\\"updated_by\\":\\"00000000-0000-0000-0000-000000000000\\"}" \\
    || say refused
}
`;

Deno.test("failure mode: a command that set its item's final status itself is let end, and no exit overwrites it", () =>
  HostTrial.with(async (world) => {
    const { trial, rest } = world;
    const audit = crypto.randomUUID();
    const kinds = {
      OK: `${FINISHES_ITSELF}finish '"status":"done"'\nsleep 3\nsay end\nexit 3\n`,
      ECHO: `${FINISHES_ITSELF}finish '"status":"failed","audit_id":"${audit}"'\nsleep 3\nsay end\nexit 0\n`,
    };
    await Deno.writeTextFile(`${trial.folder}/agent.key`, await rest.key("wsl1"), { mode: 0o600 });
    const commandEnv = { API: rest.url, API_KEY: { secretFile: `${trial.folder}/agent.key` } };
    const host = await world.host("wsl1", { kinds, commandEnv });
    const runner = await host.runner(FLAGS);
    const [succeeded, failed] = [await trial.enqueue(OK), await trial.enqueue(ECHO)];
    const ids = [succeeded, failed];
    await waitFor(
      "the attempts",
      async () => (await trial.db.adminSql("select 1 from queue.attempts")).length === 2,
      LONG,
    );
    await beats(world, 2);
    const ends = (await trial.seen()).filter(({ what }) => what !== "start");
    assert.deepEqual(ends.map(({ what }) => what), ["end", "end"], "neither was ended though no renewal was granted");
    const rows = Object.fromEntries(
      (await trial.rows(ids)).map((row) => [row.id, [row.status, row.lastError, row.attempts]]),
    );
    assert.deepEqual(rows, { [succeeded]: ["done", "by the command", 1], [failed]: ["failed", "by the command", 1] });
    for (const id of ids) {
      const changes = (await trial.history()).filter((change) => change.id === id && change.became !== "claimed");
      assert.equal(changes.length, 1, "the command's write is the last one");
    }
    const [{ audit_id } = {}] = await trial.db.adminSql("select audit_id from queue.work_items where id = $1::uuid", [
      failed,
    ]);
    assert.equal(audit_id, audit);
    for (const event of ["lease.lost", "work.outcome_refused", "work.outcome_not_written"]) {
      assert.deepEqual(runner.logged(event), []);
    }
    runner.assertSound();
  }));
