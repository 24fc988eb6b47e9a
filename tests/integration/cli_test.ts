/**
 * The command line from end to end: bad input, enqueue, serve, migrate and check, on SQLite and on Postgres.
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { CHAINS } from "../../src/migrations.ts";
import { runCli, TestStop, testWorker } from "../support/cli.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

const ORG = newId();
const QUIET = ["--log-level", "error", "--log-format", "json"];

const BAD: readonly (readonly [args: string, env: Record<string, string>, says: RegExp])[] = [
  ["--capcity 3", {}, /unknown option '--capcity' \(Did you mean --capacity\?\)/],
  ["--zzz", {}, /unknown option '--zzz'; --help lists what there is/],
  ["--store", {}, /--store <store>.*--help/],
  ["check extra --store memory", {}, /"extra" with check.*test-worker check --help/],
  ["check --store memory -- --health", {}, /"--health" with check: flags are not read after --/],
  ["migrate up twice --store memory", {}, /"twice" with migrate/],
  ["completions bash zsh", {}, /"zsh" with completions/],
  ["completions", {}, /shell.*--help/],
  ["help", {}, /did you mean --help\?/],
  ["migrate --store memory", {}, /without a direction: say up, down or status/],
  ["--lease 30 --store memory", {}, /--lease "30".*30s/],
  ["--capacity 0 --store memory", {}, /--capacity "0".*1 to 2000/],
  ["--kind ECO --store memory", {}, /--kind ECO.*did you mean ECHO\?/],
  ["--store oracle", {}, /--store "oracle".*memory, sqlite:PATH or postgres/],
  ["", {}, /LANEWAY_DATABASE_URL.*--store memory/],
  ["--store memory check", {}, /Cannot use check behind flags.*test-worker check \[flags\]/],
  ["srve", {}, /Unknown command "srve", did you mean serve\?/],
  ["--database-url postgres://u:s3cret@h/x", {}, /set LANEWAY_DATABASE_URL/],
  ["migrate sideways --store memory", {}, /say up, down or status/],
  ["migrate down --store memory", {}, /--chain/],
  ["enqueue --key k --store sqlite:x.db", {}, /org is missing/],
  ["enqueue --store memory", {}, /sqlite:PATH or Postgres/],
  [`enqueue --key k --org ${ORG} --kind ECO --store sqlite:x.db`, {}, /--kind ECO.*did you mean ECHO\?/],
  ["migrate up", {}, /set LANEWAY_MIGRATE_DATABASE_URL .*--store sqlite:PATH/],
  ["completions tcsh", {}, /bash, zsh, fish/],
  ["--store memory", { LANEWAY_LEASE: "forever" }, /LANEWAY_LEASE "forever"/],
];

for (const [args, env, says] of BAD) {
  Deno.test(`bad input is one line, exit 2: ${args || "no store"} ${Object.keys(env).join("")}`, async () => {
    const { code, out, errors } = await runCli(args.split(" ").filter((word) => word !== ""), { env });
    assert.equal(code, 2);
    assert.equal(errors.length, 1);
    assert.match(errors[0] ?? "", says);
    assert.equal(/\n|s3cret/.test(errors[0] ?? ""), false);
    assert.deepEqual(out, []);
  });
}

Deno.test("--version names release and commit; --help names every command and flag", async () => {
  assert.deepEqual(await runCli(["--version"]), { code: 0, out: ["test-worker 1.2.3 (abc123)"], errors: [] });
  const { code, out } = await runCli(["--help"]);
  assert.equal(code, 0);
  for (const word of ["serve", "enqueue", "migrate", "check", "--drain-grace", "LANEWAY_LEASE", "10s", "Examples:"]) {
    assert.ok(out.join("\n").includes(word), word);
  }
});

Deno.test("completions of each shell name the commands and flags", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const text = (await runCli(["completions", shell])).out.join("\n");
    for (const word of ["enqueue", "drain-grace", "test-worker"]) assert.ok(text.includes(word), `${shell}: ${word}`);
  }
});

async function withSqlite(use: (store: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-cli-" });
  try {
    const store = `sqlite:${folder}/store.db`;
    assert.equal((await runCli(["migrate", "up", "--store", store])).code, 0);
    const db = new SqliteDatabase(`${folder}/store.db`);
    await db.write((session) => session.run("insert into core_orgs (id, name, created_at) values (?, 'Acme', 0)", ORG));
    db.close();
    await use(store);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function serveUntil(
  args: readonly string[],
  env: Record<string, string>,
  keys: readonly string[],
): Promise<number> {
  const handled: string[] = [];
  const stop = new TestStop();
  const running = runCli(["serve", "--http-port", "0", "--poll", "20ms", ...QUIET, ...args], {
    env,
    definition: testWorker(handled),
    stop,
  });
  try {
    await waitFor("every item handled", () => keys.every((key) => handled.includes(key)));
  } finally {
    stop.stop();
  }
  const { code, errors } = await running;
  assert.deepEqual(errors, []);
  assert.deepEqual(handled.toSorted(), keys.toSorted(), "each once");
  return code;
}

const LINES = [
  `{"org":"${ORG}","kind":"ECHO","key":"a","payload":{"text":"1"}}`,
  "",
  "{oops",
  `{"org":"${ORG}","kind":"ECHO","key":"a","payload":{"text":"1"}}`,
  `{"org":"${ORG}","kind":"ECHO","key":"b","payload":{"text":2}}`,
  `{"org":"${ORG}","kind":"ECHO","key":"c","payload":{"text":"3"}}`,
].join("\n");

function checkReport(out: readonly string[]): void {
  assert.match(out[0] ?? "", /^line 1: inserted [0-9a-f-]{36}$/);
  assert.match(out[1] ?? "", /^line 3: refused: the line is no JSON/);
  assert.equal(out[2], out[0]?.replace("line 1: inserted", "line 4: already there"));
  assert.match(out[3] ?? "", /^line 5: refused: .*payload\.text/);
  assert.match(out[4] ?? "", /^line 6: inserted/);
  assert.equal(out[5], "2 inserted, 1 already there, 2 refused");
}

Deno.test("enqueue tells each line's fate, and serve runs what was inserted, once, on a SQLite file", async () => {
  await withSqlite(async (store) => {
    const first = await runCli(["enqueue", "--store", store], { stdin: LINES });
    assert.equal(first.code, 1);
    checkReport(first.out);
    assert.equal(await serveUntil(["--store", store], {}, ["a", "c"]), 0);
    const again = await runCli(["enqueue", "--store", store, "--org", ORG, "--kind", "ECHO", "--key", "a"].concat([
      "--payload",
      '{"text":"1"}',
    ]));
    assert.equal(again.code, 0);
    assert.match(again.out[0] ?? "", /^already there/);
  });
});

Deno.test("an org that is not there is refused by line", async () => {
  await withSqlite(async (store) => {
    const { code, out } = await runCli(["enqueue", "--store", store, "--org", newId()], {
      stdin: '{"kind":"ECHO","key":"a","payload":{"text":"1"}}',
    });
    assert.equal(code, 1);
    assert.match(out[0] ?? "", /^line 1: refused: .*no such org/);
  });
});

Deno.test("a taken port, an unreadable file and a database that is down are one line, exit 1", async () => {
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const port = String(taken.addr.port);
    const busy = await runCli(["--store", "memory", "--http-port", port, ...QUIET]);
    assert.equal(busy.code, 1);
    assert.match(busy.errors.join("|"), new RegExp(`127.0.0.1:${port}: another program has the port.*--http-port`));
  } finally {
    taken.close();
  }
  const file = await runCli(["enqueue", "--file", "/nope", "--store", "sqlite:/nope/x.db"]);
  assert.deepEqual([file.code, file.errors], [1, ["test-worker: Cannot read --file /nope: there is no such file"]]);
  const down = "postgres://u:s3cret@127.0.0.1:1/x";
  const gone = await runCli(["enqueue", ...QUIET], {
    env: { LANEWAY_DATABASE_URL: down, LANEWAY_SYSTEM_DATABASE_URL: down },
  });
  assert.equal(gone.code, 1);
  assert.match(gone.errors.join("|"), /^test-worker: Cannot connect to the database/);
  assert.equal(gone.errors.join("").includes("s3cret"), false);
});

Deno.test("a stop while the database is down ends the start", async () => {
  const down = "postgres://u:p@127.0.0.1:1/x";
  const stop = new TestStop();
  const running = runCli(["--http", "off", ...QUIET], {
    env: { LANEWAY_DATABASE_URL: down, LANEWAY_SYSTEM_DATABASE_URL: down },
    stop,
  });
  stop.stop();
  assert.deepEqual(await running, { code: 0, out: [], errors: [] });
});

function urls(db: TestDatabase): Record<string, string> {
  return {
    LANEWAY_DATABASE_URL: db.url("runtime"),
    LANEWAY_SYSTEM_DATABASE_URL: db.url("system"),
    LANEWAY_MIGRATE_DATABASE_URL: db.url("owner"),
  };
}

Deno.test("on Postgres: migrate tells the state, check is content, enqueue and serve do their work", async () => {
  const db = await createTestDatabase(CHAINS);
  try {
    const env = urls(db);
    await db.adminSql("insert into core.orgs (id, name, created_at) values ($1, 'Acme', now())", [ORG]);
    const status = await runCli(["migrate", "status"], { env });
    assert.equal(status.code, 0);
    for (const line of status.out) assert.match(line, /^(?:core|queue|activity): current|^fair: left out, optional/);
    const check = await runCli(["check"], { env });
    assert.deepEqual([check.code, check.errors], [0, []], check.out.join("\n"));
    assert.match(check.out.at(-1) ?? "", / 0 failed$/);
    const report = await runCli(["enqueue", ...QUIET], { env, stdin: LINES });
    checkReport(report.out);
    assert.equal(await serveUntil([], env, ["a", "c"]), 0);
  } finally {
    await db.drop();
  }
});

Deno.test("on Postgres: a worker that is to claim fairly asks for the index, which is made and taken back by its name", async () => {
  const db = await createTestDatabase(CHAINS);
  try {
    const env = urls(db);
    const fair = ["--claim-order", "fair"];
    const migrate = (...args: string[]) => runCli(["migrate", ...args], { env });
    assert.deepEqual((await migrate("up")).out, ["core, queue, activity: nothing to do"]);
    const refused = await runCli(["--http", "off", ...QUIET, ...fair], { env });
    assert.deepEqual([refused.code, refused.errors.length], [1, 1]);
    assert.match(refused.errors[0] ?? "", /Cannot use --claim-order fair as .* run `migrate up --chain fair`/);
    const missing = await runCli(["check", ...fair], { env });
    assert.equal(missing.code, 1);
    assert.ok(missing.out.some((line) => /^fail +schema fair .*migrate up --chain fair/.test(line)));
    assert.equal((await runCli(["check"], { env })).code, 0);

    assert.deepEqual((await migrate("up", "--chain", "fair")).out, ["applied fair 0001_claim_by_org"]);
    assert.ok((await migrate("status")).out.includes("fair: current, version 1 of 1"));
    await db.adminSql("insert into core.orgs (id, name, created_at) values ($1, 'Acme', now())", [ORG]);
    await runCli(["enqueue", ...QUIET], { env, stdin: LINES });
    assert.equal(await serveUntil(fair, env, ["a", "c"]), 0);

    const beneath = await migrate("down", "--chain", "queue");
    assert.equal(beneath.code, 2);
    assert.match(beneath.errors.join("|"), /fair stands on it: run `migrate down --chain fair` first/);
    assert.deepEqual((await migrate("down", "--chain", "fair")).out, ["took back fair 0001_claim_by_org"]);
    assert.equal((await migrate("status")).code, 0);
    assert.deepEqual((await migrate("down", "--chain", "queue")).out, ["took back queue 0002_hosts"]);
    assert.deepEqual((await migrate("down", "--chain", "queue")).out, ["took back queue 0001_work_items"]);
  } finally {
    await db.drop();
  }
});

Deno.test("on SQLite a worker that is to claim fairly makes the index itself", async () => {
  await withSqlite(async (store) => {
    await runCli(["enqueue", "--store", store], { stdin: LINES });
    const status = () => runCli(["migrate", "status", "--store", store]);
    assert.ok((await status()).out.some((line) => line.startsWith("fair: left out")));
    assert.equal(await serveUntil(["--store", store, "--claim-order", "fair"], {}, ["a", "c"]), 0);
    assert.ok((await status()).out.includes("fair: current, version 1 of 1"));
    // Once made it is kept up to date, whoever claims.
    const more = `{"org":"${ORG}","kind":"ECHO","key":"d","payload":{"text":"4"}}`;
    await runCli(["enqueue", "--store", store], { stdin: more });
    assert.equal(await serveUntil(["--store", store], {}, ["d"]), 0);
  });
});

Deno.test("on Postgres: an unmigrated database and a wrong password end a worker with the fix, exit 1", async () => {
  const db = await createTestDatabase([]);
  try {
    const empty = await runCli(["--http", "off", ...QUIET], { env: urls(db) });
    assert.equal(empty.code, 1);
    assert.match(empty.errors.join("|"), /not migrated.*migrate up/);
    const bare = await runCli(["check"], { env: urls(db) });
    assert.equal(bare.code, 1);
    if (Deno.env.get("LANEWAY_TEST_DATABASE_URL")) {
      console.log("left out: a wrong password, as the given server may trust everybody");
      return;
    }
    const wrong = new URL(db.url("runtime"));
    Object.assign(wrong, { username: "needs_password", password: "hunter2" });
    const env = { ...urls(db), LANEWAY_DATABASE_URL: wrong.href, LANEWAY_SYSTEM_DATABASE_URL: wrong.href };
    const refused = await runCli(["--http", "off", ...QUIET], { env });
    assert.deepEqual([refused.code, refused.errors.length], [1, 1]);
    assert.match(refused.errors[0] ?? "", /password authentication failed.*check user and password/);
    assert.equal(/\n|hunter2/.test(refused.errors[0] ?? ""), false);
  } finally {
    await db.drop();
  }
});

Deno.test("check names each trouble: a superuser for a login, a login without its role (which no worker starts with), and a database that is down", async () => {
  const db = await createTestDatabase(CHAINS);
  try {
    const power = await runCli(["check"], { env: { ...urls(db), LANEWAY_DATABASE_URL: db.url("admin") } });
    assert.ok(power.out.some((line) => /^warn +runtime login .*superuser/.test(line)), power.out.join("\n"));
    // Every item's statements would be refused, and its attempts be spent on that.
    const env = { ...urls(db), LANEWAY_DATABASE_URL: db.url("system") };
    const mixed = await runCli(["check"], { env });
    assert.equal(mixed.code, 1);
    assert.ok(mixed.out.some((line) => /^fail +runtime login .*grant laneway_runtime to/.test(line)), mixed.out.join());
    const served = await runCli(["--http", "off", ...QUIET], { env });
    assert.equal(served.code, 1);
    assert.match(served.errors.join("|"), /no member of laneway_runtime: run `grant laneway_runtime to/);
  } finally {
    await db.drop();
  }
  const down = "postgres://u:s3cret@127.0.0.1:1/x";
  const gone = await runCli(["check"], { env: { LANEWAY_DATABASE_URL: down, LANEWAY_SYSTEM_DATABASE_URL: down } });
  assert.equal(gone.code, 1);
  assert.ok(gone.out.some((line) => /^fail +runtime login/.test(line)));
  assert.equal(gone.out.join("").includes("s3cret"), false);
});

Deno.test("a worker's own command opens the store and serves, with settings of its own", async () => {
  await withSqlite(async (store) => {
    const handled: string[] = [];
    const worker = testWorker(handled);
    const { code, out, errors } = await runCli(["once", "--store", store, "--word", "hello", ...QUIET], {
      definition: {
        ...worker,
        commands: [{
          name: "once",
          summary: "Enqueues one item and runs it.",
          options: [{ flags: "--word <text>", help: "What to say." }],
          async run(call) {
            const open = await call.open();
            const { tenancy, work } = open.parts.managers;
            const ctx = await tenancy.serviceContext(tenancy.requestContext({ type: "CLI", version: "t@1" }), ORG);
            const payload = { text: String(call.options.word) };
            await work.enqueue(ctx, { kind: "ECHO", idempotencyKey: "once", payload });
            await open.close();
            const done = new AbortController();
            const serving = call.serve({ until: done.signal, settings: { http: "off", pollMs: 20 } });
            await waitFor("the item handled", () => handled.includes("once"));
            done.abort();
            call.print("done");
            return await serving;
          },
        }],
      },
    });
    assert.deepEqual([code, out, errors, handled], [0, ["done"], [], ["once"]]);
  });
});

Deno.test("check and migrate status look at a store that is not there without making it", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-" });
  try {
    const store = ["--store", `sqlite:${folder}/new.db`];
    const check = await runCli(["check", ...store]);
    assert.deepEqual([check.code, check.errors], [0, []]);
    assert.match(check.out.join("\n"), /not there yet[^]*schema queue is at 0 of \d/);
    const status = await runCli(["migrate", "status", ...store]);
    assert.equal(status.code, 1);
    assert.match(status.out.join("\n"), /queue: not-migrated/);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
    const lost = await runCli(["check", "--store", `sqlite:${folder}/none/new.db`]);
    assert.equal(lost.code, 1);
    assert.match(lost.errors.join("\n"), /there is no folder .*none; make it/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
