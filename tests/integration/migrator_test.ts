/** The migrators on both engines: raced, killed, blocked, refused, and there and back again. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { SettingsError, UnavailableError } from "../../src/core/errors.ts";
import { CHAINS } from "../../src/migrations.ts";
import type { Migration, MigrationChain } from "../../src/db/chain.ts";
import { PostgresClient } from "../../src/db/client.ts";
import {
  migrateDown,
  migrateUp,
  migrationStatus,
  openMigrationConnection,
  schemaStatus,
  verifySchema,
} from "../../src/db/migrator.ts";
import { openDatabases } from "../../src/db/postgres_database.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteDown, migrateSqliteUp, sqliteMigrationStatus } from "../../src/db/sqlite_migrator.ts";
import { EXAMPLE_CHAIN } from "../support/example_chain.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { dumpSchemas } from "../support/schema_dump.ts";
import { waitFor } from "../support/wait_for.ts";

type Empty = Awaited<ReturnType<typeof createEmptyDatabase>>;

async function withDatabase(work: (db: Empty, owner: PostgresClient) => Promise<void>): Promise<void> {
  const db = await createEmptyDatabase();
  const owner = await openMigrationConnection(db.url("owner"));
  try {
    await work(db, owner);
  } finally {
    await owner.close();
    await db.drop();
  }
}

function migrator(target: string, chains: readonly MigrationChain[]): Deno.ChildProcess {
  const script = fileURLToPath(new URL("../support/migrate_once.ts", import.meta.url));
  const config = fileURLToPath(new URL("../../deno.json", import.meta.url));
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "-q", "--no-check", "--config", config, script, target, JSON.stringify(chains)],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

async function outputOf(child: Deno.ChildProcess): Promise<string> {
  const { code, stdout, stderr } = await child.output();
  const text = new TextDecoder();
  assert.equal(code, 0, text.decode(stderr));
  return text.decode(stdout).trim();
}

function withSteps(postgres: readonly Migration[], sqlite: readonly Migration[] = []): MigrationChain {
  return {
    ...EXAMPLE_CHAIN,
    postgres: [...EXAMPLE_CHAIN.postgres, ...postgres],
    sqlite: [...EXAMPLE_CHAIN.sqlite, ...sqlite],
  };
}

Deno.test("ten migrators at once on an empty database take each step once", async () => {
  await withDatabase(async (db, owner) => {
    const children = Array.from({ length: 10 }, () => migrator(db.url("owner"), [EXAMPLE_CHAIN]));
    const said = await Promise.all(children.map(outputOf));
    assert.deepEqual(said.toSorted(), [...Array.from({ length: 9 }, () => "steps 0"), "steps 2"]);
    const rows = await owner.query("select version, name from example.schema_migrations order by version");
    assert.deepEqual(rows, [{ version: 1, name: "notes" }, { version: 2, name: "marks" }]);
  });
});

Deno.test("a migrator killed half-way through a step leaves all of it or nothing, and the next one finishes", async () => {
  await withDatabase(async (db, owner) => {
    const slow = withSteps([{
      version: 3,
      name: "slow",
      up: "create table example.half (id int); select pg_sleep(3); create table example.whole (id int);",
      down: "drop table example.half; drop table example.whole;",
    }]);
    const child = migrator(db.url("owner"), [slow]);
    await waitFor("the slow step to run", async () => {
      const rows = await owner.query("select from pg_stat_activity where datname = $1 and wait_event = 'PgSleep'", [
        db.name,
      ]);
      return rows.length === 1;
    });
    child.kill("SIGKILL");
    await child.output();
    const [state] = await owner.query(
      `select to_regclass('example.half') as half, to_regclass('example.whole') as whole,
      (select max(version) from example.schema_migrations) as version`,
    );
    assert.deepEqual(state, { half: null, whole: null, version: 2 });
    // The dead migrator's server process may live a moment longer; the next one waits for it.
    const taken = await migrateUp(owner, [slow]);
    assert.ok(taken.length <= 1);
    const [row] = await owner.query(
      "select max(version) as version, to_regclass('example.whole') is not null as whole from example.schema_migrations",
    );
    assert.deepEqual(row, { version: 3, whole: true });
  });
});

Deno.test("a step that fails leaves nothing of itself and keeps the steps before it", async () => {
  await withDatabase(async (_db, owner) => {
    const broken = withSteps([{
      version: 3,
      name: "broken",
      up: "create table example.half (); select 1/0;",
      down: "",
    }]);
    await assert.rejects(migrateUp(owner, [broken]), /Cannot apply example 0003_broken: .*division by zero/);
    const [state] = await owner.query(`select to_regclass('example.half') as half,
      (select max(version) from example.schema_migrations) as version`);
    assert.deepEqual(state, { half: null, version: 2 });
  });
});

Deno.test("a table that stays locked makes a step wait within its bound, and the error names the session", async () => {
  await withDatabase(async (db, owner) => {
    await migrateUp(owner, [EXAMPLE_CHAIN]);
    const holder = await PostgresClient.open(db.url("owner"), { applicationName: "nightly-report" });
    await holder.script("begin");
    await holder.query("select from example.notes");
    const altered = withSteps([{
      version: 3,
      name: "wide",
      up: "alter table example.notes add column w int;",
      down: "",
    }]);
    const error = await migrateUp(owner, [altered], { lockWaitMs: 400 }).then(() => null, (error) => error);
    assert.ok(error instanceof UnavailableError);
    assert.match(
      error.message,
      new RegExp(`process ${holder.pid} .*nightly-report, idle in transaction, in its transaction since`),
    );
    // Waiting, it lets others through; released, it goes on.
    const waiting = migrateUp(owner, [altered]);
    await waitFor("the step to wait", async () => {
      const rows = await holder.query("select from pg_locks where not granted and pid = $1", [owner.pid]);
      return rows.length > 0;
    });
    await holder.script("commit");
    assert.equal((await waiting).length, 1);
    await holder.close();
  });
});

Deno.test("a second migrator waits for the first within its bound, and says for whom", async () => {
  await withDatabase(async (db, owner) => {
    const other = await openMigrationConnection(db.url("owner"));
    await other.query("select pg_advisory_lock($1)", [5_263_929]);
    await assert.rejects(
      migrateUp(owner, [EXAMPLE_CHAIN], { migratorWaitMs: 200 }),
      new RegExp(`another migrator .*process ${other.pid}, user laneway_test_owner`),
    );
    await other.close();
    assert.equal((await migrateUp(owner, [EXAMPLE_CHAIN])).length, 2);
  });
});

Deno.test("a newer database and a changed step are refused, and nothing is touched", async () => {
  await withDatabase(async (db, owner) => {
    const second: MigrationChain = { name: "second", area: "core", postgres: [], sqlite: [] };
    const newer = withSteps([{ version: 3, name: "future", up: "select 1", down: "" }]);
    await migrateUp(owner, [newer]);
    const open = openDatabases({ runtime: db.url("runtime"), system: db.url("system") });
    try {
      const refusal = migrateUp(owner, [second, EXAMPLE_CHAIN]);
      await assert.rejects(
        refusal,
        (error) => error instanceof SettingsError && /version 3 .*0003_future.*up to version 2/.test(error.message),
      );
      assert.deepEqual(await owner.query("select from pg_namespace where nspname = 'second'"), []);
      await assert.rejects(
        verifySchema(open.databases, [EXAMPLE_CHAIN]),
        /newer \(version 3\) than this build knows \(2\)/,
      );
      const changed = { ...newer, postgres: newer.postgres.map((m) => m.version === 2 ? { ...m, up: m.up + " " } : m) };
      await assert.rejects(migrateUp(owner, [changed]), /example 0002_marks was changed/);
      await assert.rejects(migrateDown(owner, [changed], { steps: 1 }), /example 0002_marks was changed/);
      await assert.rejects(verifySchema(open.databases, [changed]), /changed/);
    } finally {
      await open.close();
    }
  });
});

Deno.test("verifySchema() tells not migrated, behind and current apart", async () => {
  await withDatabase(async (db, owner) => {
    const open = openDatabases({ runtime: db.url("runtime"), system: db.url("system") });
    try {
      const verify = () => verifySchema(open.databases, [EXAMPLE_CHAIN]);
      await assert.rejects(verify(), /not migrated \(no schema example\): run `migrate up`/);
      await migrateUp(owner, [{ ...EXAMPLE_CHAIN, postgres: EXAMPLE_CHAIN.postgres.slice(0, 1) }]);
      await assert.rejects(verify(), /behind \(version 1, this build needs 2\): run `migrate up`/);
      await migrateUp(owner, [EXAMPLE_CHAIN]);
      await verify();
      await migrateDown(owner, [EXAMPLE_CHAIN], { steps: Infinity });
      assert.equal((await schemaStatus(open.databases, [EXAMPLE_CHAIN]))[0]?.state, "not-migrated");
    } finally {
      await open.close();
    }
  });
});

Deno.test("down and up again come to the same schema", async () => {
  await withDatabase(async (_db, owner) => {
    assert.equal((await migrationStatus(owner, [EXAMPLE_CHAIN]))[0]?.state, "not-migrated");
    await migrateUp(owner, [EXAMPLE_CHAIN]);
    const before = await dumpSchemas(owner, ["example"]);
    assert.ok(before.length > 10, before.join("\n"));
    assert.deepEqual(await migrateDown(owner, [EXAMPLE_CHAIN], { steps: 1 }), [
      { chain: "example", version: 2, name: "marks" },
    ]);
    assert.deepEqual((await migrationStatus(owner, [EXAMPLE_CHAIN]))[0]?.pending, ["0002_marks"]);
    assert.equal((await migrateDown(owner, [EXAMPLE_CHAIN], { steps: Infinity })).length, 1);
    assert.equal((await migrateUp(owner, [EXAMPLE_CHAIN])).length, 2);
    assert.deepEqual(await dumpSchemas(owner, ["example"]), before);
    assert.equal((await migrateUp(owner, [EXAMPLE_CHAIN])).length, 0);
  });
});

Deno.test("the house's own chains go down and up again to the same schema, on both engines", async () => {
  await withDatabase(async (_db, owner) => {
    const schemas = CHAINS.map((chain) => chain.name);
    await migrateUp(owner, CHAINS);
    const before = await dumpSchemas(owner, schemas);
    assert.ok(before.length > 100, `${before.length} lines`);
    await migrateDown(owner, CHAINS, { steps: Infinity });
    const left = (await dumpSchemas(owner, schemas)).filter((line) => /^(table|policy)/.test(line));
    assert.ok(left.every((line) => line.includes("schema_migrations")), left.join("\n"));
    await migrateUp(owner, CHAINS);
    assert.deepEqual(await dumpSchemas(owner, schemas), before);
  });
  const db = new SqliteDatabase(":memory:");
  try {
    const schema = () => db.read((s) => s.all("select type, name, sql from sqlite_master order by 1, 2"));
    await migrateSqliteUp(db, CHAINS);
    const before = await schema();
    await migrateSqliteDown(db, CHAINS, { steps: Infinity });
    assert.ok((await schema()).every((row) => String(row.name).includes("schema_migrations")));
    await migrateSqliteUp(db, CHAINS);
    assert.deepEqual(await schema(), before);
  } finally {
    db.close();
  }
});

Deno.test("a login that may not create roles is told what an administrator must run", async () => {
  await withDatabase(async (db, _owner) => {
    const runtime = await openMigrationConnection(db.url("runtime"));
    // The roles exist on this server, so the missing one is a name of the test's own.
    const { ensureRoles } = await import("../../src/db/roles.ts");
    await ensureRoles(runtime);
    await assert.rejects(
      ensureRoles(runtime, ["laneway_test_missing"]),
      (error) => error instanceof SettingsError && error.message.includes("create role laneway_test_missing nologin;"),
    );
    await runtime.close();
  });
});

Deno.test("SQLite: several processes open a new store at once, and each step is taken once", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const target = `sqlite:${folder}/store.db`;
    const said = await Promise.all(Array.from({ length: 5 }, () => outputOf(migrator(target, [EXAMPLE_CHAIN]))));
    assert.deepEqual(said.toSorted(), ["steps 0", "steps 0", "steps 0", "steps 0", "steps 2"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("SQLite: a migrator killed half-way leaves the store as it was, and the next one finishes", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/store.db`;
    const third = (rows: number) =>
      withSteps([], [{
        version: 3,
        name: "filled",
        up: `create table example_filled (id integer) strict;
          insert into example_filled with recursive n(i) as (select 1 union all select i + 1 from n where i < ${rows})
            select i from n;`,
        down: "drop table example_filled;",
      }]);
    assert.equal(await outputOf(migrator(`sqlite:${path}`, [EXAMPLE_CHAIN])), "steps 2");
    // Far more rows than it lives to write.
    const child = migrator(`sqlite:${path}`, [third(1_000_000_000)]);
    await waitFor("it to have written much", async () => {
      const wal = await Deno.stat(`${path}-wal`).catch(() => null);
      return (wal?.size ?? 0) > 4_000_000;
    });
    child.kill("SIGKILL");
    await child.output();
    const db = new SqliteDatabase(path);
    assert.equal((await sqliteMigrationStatus(db, [EXAMPLE_CHAIN]))[0]?.state, "current");
    assert.equal(await db.read((s) => s.get("select 1 from sqlite_master where name = 'example_filled'")), undefined);
    assert.equal((await migrateSqliteUp(db, [third(10)])).length, 1);
    assert.equal((await db.read((s) => s.get("select count(*) as n from example_filled")))?.n, 10);
    db.close();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("SQLite: refuses newer and changed, keeps nothing of a failed run, and round-trips", async () => {
  const db = new SqliteDatabase(":memory:");
  try {
    const schema = () =>
      db.read((s) => s.all("select name, sql from sqlite_master where name like 'example%' order by 1"));
    assert.equal((await sqliteMigrationStatus(db, [EXAMPLE_CHAIN]))[0]?.state, "not-migrated");
    const broken = withSteps([], [{
      version: 3,
      name: "broken",
      up: "create table example_half (id); nonsense;",
      down: "",
    }]);
    await assert.rejects(migrateSqliteUp(db, [broken]), /Cannot apply example 0003_broken/);
    assert.deepEqual(await schema(), []);
    const newer = withSteps([], [{
      version: 3,
      name: "future",
      up: "create table example_x (id)",
      down: "drop table example_x",
    }]);
    assert.equal((await migrateSqliteUp(db, [newer])).length, 3);
    await assert.rejects(migrateSqliteUp(db, [EXAMPLE_CHAIN]), /version 3 .*0003_future.*up to version 2/);
    const changed = { ...newer, sqlite: newer.sqlite.map((m) => m.version === 1 ? { ...m, up: m.up + " " } : m) };
    await assert.rejects(migrateSqliteUp(db, [changed]), /example 0001_notes was changed/);
    const before = await schema();
    assert.equal((await migrateSqliteDown(db, [newer], { steps: Infinity })).length, 3);
    assert.deepEqual(await schema(), []);
    assert.equal((await migrateSqliteUp(db, [newer])).length, 3);
    assert.deepEqual(await schema(), before);
    assert.equal((await sqliteMigrationStatus(db, [newer]))[0]?.state, "current");
  } finally {
    db.close();
  }
});
