/**
 * `check`: the doctor. Looks at everything a worker depends on, changes nothing, and says for each trouble what mends it.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import { silentLogger } from "../core/log.ts";
import { noMetrics } from "../core/metrics.ts";
import { openDatabases } from "../db/postgres_database.ts";
import { PostgresCache } from "../infra/postgres_cache.ts";
import { decodeLiveness } from "../runtime/heartbeat.ts";
import { databaseSettings } from "../runtime/open_store.ts";
import { inspectDatabase, type Inspection, loginFault, loginWarnings, type ServerFacts } from "../db/inspect.ts";
import type { ChainStatus } from "../db/migration_rules.ts";
import { describeStatus } from "../db/migrator.ts";
import { sqliteMigrationStatus } from "../db/sqlite_migrator.ts";
import { type Check, ownEnv } from "../runtime/definition.ts";
import { servedChainsOf } from "../runtime/open_parts.ts";
import { requireStore, type Settings } from "../runtime/settings.ts";
import type { CommandContext } from "./command_context.ts";
import { isAbsent, openToLook } from "./look.ts";

// A worker's clock decides nothing about leases, but its log and its schedules are read against the database's.
const CLOCK_WARN_MS = 2_000;
const OLDEST_SERVER = 150_000;
// Each worker also holds one connection that listens.
const LISTENERS = 1;

/** Runs every check and prints the table. 0 when none failed, else 1. */
export async function runChecks(settings: Settings, context: CommandContext): Promise<number> {
  const settingsChecks = settings.warnings.map((said): Check => ({ name: "settings", state: "warn", said }));
  const found = context.definition.open === undefined
    ? await checkStore(settings, context)
    : await checkOwn(settings, context);
  const checks = [...settingsChecks, ...found];
  for (const line of formatChecks(checks)) context.io.print(line);
  return checks.some((check) => check.state === "fail") ? 1 : 0;
}

async function checkStore(settings: Settings, context: CommandContext): Promise<readonly Check[]> {
  const choice = requireStore(settings, "work");
  return choice.engine === "sqlite"
    ? await checkSqlite(choice.path, settings, context)
    : await checkPostgres(settings, context);
}

/** A worker that takes its items from elsewhere says itself what it depends on. */
async function checkOwn(settings: Settings, { definition, io }: CommandContext): Promise<readonly Check[]> {
  const env = ownEnv(definition, io.env);
  definition.checkEnv?.(env);
  const tools = { clock: io.clock, logger: silentLogger, metrics: noMetrics };
  return await definition.checks?.({ settings, env, ...tools }) ?? [];
}

/** The findings as an aligned table and a closing count. */
export function formatChecks(checks: readonly Check[]): string[] {
  const width = Math.max(...checks.map((check) => check.name.length), 0);
  const lines = checks.map(({ name, state, said }) => `${state.padEnd(4)}  ${name.padEnd(width)}  ${said}`);
  const count = (state: Check["state"]) => checks.filter((check) => check.state === state).length;
  const warnings = count("warn");
  return [...lines, `${count("ok")} ok, ${warnings} warning${warnings === 1 ? "" : "s"}, ${count("fail")} failed`];
}

async function checkSqlite(path: string, settings: Settings, context: CommandContext): Promise<Check[]> {
  if (path === ":memory:") return [{ name: "store", state: "ok", said: "memory: nothing is kept beyond the process" }];
  const absent = await isAbsent(path);
  const db = openToLook(path, absent);
  try {
    const chains = await sqliteMigrationStatus(db, servedChainsOf(context.definition, settings));
    const said = absent ? `sqlite:${path} is not there yet: it is made when it is first used` : `sqlite:${path} opens`;
    return [{ name: "store", state: "ok", said }, ...chains.map(checkSqliteChain)];
  } finally {
    db.close();
  }
}

function checkSqliteChain(status: ChainStatus): Check {
  const { chain, state, version, target } = status;
  if (state !== "behind" && state !== "not-migrated") return checkChain(status);
  // A store that is behind is migrated by whoever opens it to work.
  const said = `The schema ${chain} is at ${version} of ${target}: it is brought up when it is first used`;
  return { name: `schema ${chain}`, state: "ok", said };
}

async function checkPostgres(settings: Settings, context: CommandContext): Promise<Check[]> {
  const chains = servedChainsOf(context.definition, settings);
  const checks: Check[] = [];
  const logins = [["runtime", settings.urls.runtime], ["system", settings.urls.system]] as const;
  let server: ServerFacts | null = null;
  for (const [use, url] of logins) {
    const facts = await inspectDatabase(url ?? "", { chains, clock: context.io.clock });
    checks.push(...checkLogin(use, facts));
    if (!facts.ok) continue;
    if (server === null) checks.push(...checkServer(facts.server));
    server ??= facts.server;
    if (use === "system") {
      checks.push(
        ...facts.schemas === null
          ? [fail("schema", "the system login may not read it: run migrate up, then grant laneway_system to the login")]
          : checkChains(facts.schemas),
      );
    }
  }
  if (server !== null) checks.push(checkPools(settings, server), ...await checkWorkers(settings));
  for (const area of Object.keys(settings.urls.areas)) {
    checks.push({ name: `${area} area`, state: "ok", said: "has a database of its own (migrate status looks at it)" });
  }
  return checks;
}

function checkLogin(use: "runtime" | "system", facts: Inspection): Check[] {
  const name = `${use} login`;
  if (!facts.ok) return [fail(name, facts.problem)];
  const warnings = loginWarnings(facts.login, use);
  const fault = loginFault(facts.login, use);
  if (warnings.length === 0 && fault === null) {
    return [{ name, state: "ok", said: `${facts.login.login} has the rights it needs, no more` }];
  }
  const found = warnings.map((said): Check => ({ name, state: "warn", said }));
  return fault === null ? found : [fail(name, fault), ...found];
}

function checkServer(server: ServerFacts): Check[] {
  const offset = server.clockOffsetMs;
  const clock: Check = Math.abs(offset) > CLOCK_WARN_MS
    ? {
      name: "clock",
      state: "warn",
      said:
        `the database is ${Math.abs(offset)} ms ${offset > 0 ? "ahead" : "behind"}: leases go by its clock, but set ` +
        "this machine's, or log lines mislead",
    }
    : { name: "clock", state: "ok", said: `within ${Math.max(Math.abs(offset), 1)} ms of the database` };
  const old = server.versionNumber < OLDEST_SERVER;
  const database: Check = server.readOnly
    ? fail("database", `${server.database} is a standby and takes no writes: point the URLs at the primary`)
    : old
    ? fail("database", `Postgres ${server.version} is too old: use 15 or later`)
    : { name: "database", state: "ok", said: `${server.database}, Postgres ${server.version}` };
  return [database, clock];
}

function checkChains(statuses: readonly ChainStatus[]): Check[] {
  return statuses.map(checkChain);
}

function checkChain(status: ChainStatus): Check {
  return {
    name: `schema ${status.chain}`,
    state: status.state === "current" ? "ok" : "fail",
    said: describeStatus(status),
  };
}

function checkPools(settings: Settings, server: ServerFacts): Check {
  const own = settings.poolSize + settings.systemPoolSize + (settings.listen === "on" ? LISTENERS : 0);
  const free = server.maxConnections - server.reservedConnections;
  const said =
    `a worker opens up to ${own} connections for capacity ${settings.capacity}; the server allows ${free}, ` +
    `${server.connectionsInUse} are in use`;
  if (settings.pooler === "transaction") return { name: "pools", state: "ok", said: `${said} (behind a pooler)` };
  if (own > free) return fail("pools", `${said}: lower --pool-size, or raise max_connections`);
  if (own > free - server.connectionsInUse) {
    return { name: "pools", state: "warn", said: `${said}: one more worker may not fit; lower --pool-size` };
  }
  return { name: "pools", state: "ok", said: `${said}, room for ${Math.floor(free / own)} such workers in all` };
}

const MAX_WORKERS_SHOWN = 100;

/** Which workers are alive. None is no fault: a worker may only be about to start. */
async function checkWorkers(settings: Settings): Promise<Check[]> {
  const open = openDatabases(databaseSettings(settings, "laneway check"));
  try {
    const alive = await new PostgresCache(open.databases.core).list("WORKER_LIVENESS", MAX_WORKERS_SHOWN);
    if (alive.length === 0) return [{ name: "workers", state: "ok", said: "none is alive" }];
    return alive.map(({ key, value }): Check => {
      const told = decodeLiveness(value);
      const said = told === null
        ? `${key} is alive`
        : `${key} is alive: ${told.app}, lane ${told.lane}, ${told.kinds.join(", ")}, capacity ${told.capacity}`;
      return { name: "worker", state: "ok", said };
    });
  } catch (error) {
    return [{ name: "workers", state: "warn", said: `they cannot be listed: ${describeError(error)}` }];
  } finally {
    await open.close(1_000);
  }
}

function fail(name: string, said: string): Check {
  return { name, state: "fail", said };
}
