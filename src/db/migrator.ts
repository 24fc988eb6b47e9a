/**
 * The migrator for Postgres: plain SQL steps, each landing whole with its version row or not at all, one migrator at a
 * time on a database, live workers never kept waiting for long.
 *
 * Needs a direct connection (a session lock does not survive a transaction-mode pooler) and a login that may create
 * schemas: that login owns what is created.
 *
 * @module
 */
import { UnavailableError } from "../core/errors.ts";
import { type Logger, silentLogger } from "../core/log.ts";
import type { Migration, MigrationChain } from "./chain.ts";
import { PostgresClient } from "./client.ts";
import type { Area, Database, Databases } from "./database.ts";
import {
  type AppliedMigration,
  assertMigratable,
  type ChainStatus,
  type CheckedMigration,
  type DownOptions,
  label,
  type MigrationStep,
  prepareChain,
  statusOf,
} from "./migration_rules.ts";
import { ensureRoles, GROUP_ROLES } from "./roles.ts";
import { sqlState } from "./sqlstate.ts";

/** Options of `migrateUp` and `migrateDown`. */
export interface MigrateOptions {
  /** How long to wait for another migrator, milliseconds. Default 60 000. */
  migratorWaitMs?: number;
  /** How long one step may wait for sessions that hold locks on its tables, milliseconds. Default 30 000. */
  lockWaitMs?: number;
  logger?: Logger;
}

// Any constant will do; it spells "laneway" on a telephone.
const LOCK_KEY = 5_263_929;

// A step waiting for its lock makes everybody else queue behind it, so it waits in slices and lets them through between.
const LOCK_SLICE_MS = 2_000;

/**
 * Opens the connection migrations run on.
 *
 * @throws {UnavailableError} Saying what stood in the way.
 */
export async function openMigrationConnection(url: string): Promise<PostgresClient> {
  return await PostgresClient.open(url, { applicationName: "laneway-migrate" });
}

/**
 * Applies what the chains have and the database lacks, in the order given. Run as often as liked; ten at once are one
 * after the other. A crash leaves whole steps.
 *
 * @returns The steps taken, none when the database was current.
 * @throws {SettingsError} Newer database, changed step, missing right to create roles.
 * @throws {UnavailableError} The lock or a table stayed taken; names who holds it.
 */
export async function migrateUp(
  client: PostgresClient,
  chains: readonly MigrationChain[],
  options: MigrateOptions = {},
): Promise<MigrationStep[]> {
  const prepared = await prepareAll(chains);
  return await withMigratorLock(client, options, async () => {
    await ensureRoles(client);
    const applied = await readMigratable(client, prepared);
    const taken: MigrationStep[] = [];
    for (const { chain, name, steps } of prepared) {
      await ensureVersionTable(client, name);
      for (const step of steps.slice(applied.get(name)?.length ?? 0)) {
        await takeStep(client, { name, area: chain.area, step, script: upScript(name, step) }, options);
        taken.push({ chain: name, version: step.version, name: step.name });
      }
    }
    return taken;
  });
}

/**
 * Takes back steps, the newest first, the chains in reverse order. The schema and its version table stay, empty.
 *
 * @throws As `migrateUp`.
 */
export async function migrateDown(
  client: PostgresClient,
  chains: readonly MigrationChain[],
  options: DownOptions & MigrateOptions,
): Promise<MigrationStep[]> {
  const prepared = (await prepareAll(chains)).filter(({ name }) => (options.chain ?? name) === name).reverse();
  return await withMigratorLock(client, options, async () => {
    const applied = await readMigratable(client, prepared);
    const taken: MigrationStep[] = [];
    for (const { chain, name, steps } of prepared) {
      const doomed = steps.slice(0, applied.get(name)?.length ?? 0).reverse().slice(0, options.steps);
      for (const step of doomed) {
        await takeStep(client, { name, area: chain.area, step, script: downScript(name, step) }, options);
        taken.push({ chain: name, version: step.version, name: step.name });
      }
    }
    return taken;
  });
}

/** How far each chain is. Changes nothing. */
export async function migrationStatus(
  client: PostgresClient,
  chains: readonly MigrationChain[],
): Promise<ChainStatus[]> {
  const status: ChainStatus[] = [];
  for (const { chain, steps } of await prepareAll(chains)) {
    status.push(statusOf(chain, steps, await readApplied(client, chain.name)));
  }
  return status;
}

/**
 * How far each chain is, asked on the system login: what a worker does at its start.
 *
 * @throws {UnavailableError} Out of reach.
 */
export async function schemaStatus(databases: Databases, chains: readonly MigrationChain[]): Promise<ChainStatus[]> {
  const status: ChainStatus[] = [];
  for (const chain of chains) {
    const steps = await prepareChain(chain.name, chain.postgres);
    status.push(statusOf(chain, steps, await readAppliedBySystem(databases[chain.area], chain.name)));
  }
  return status;
}

/**
 * Refuses a database whose schema is not exactly this build's.
 *
 * A newer one is refused too: its rows may hold what this build would misread.
 *
 * @throws {UnavailableError} Outcome `not-executed`: migrating mends it, so a worker waits. Says for each chain whether
 * it is not migrated, behind, newer or changed.
 */
export async function verifySchema(databases: Databases, chains: readonly MigrationChain[]): Promise<void> {
  const wrong = (await schemaStatus(databases, chains)).filter((status) => status.state !== "current");
  if (wrong.length > 0) throw new UnavailableError(wrong.map(describeStatus).join("; "), "not-executed");
}

/** One sentence on a chain that is not current, with what to do. */
export function describeStatus(status: ChainStatus): string {
  const { chain, version, target, optionalFor } = status;
  const fix = optionalFor === undefined ? "run `migrate up`" : `run \`migrate up --chain ${chain}\``;
  switch (status.state) {
    case "current":
      return `The schema ${chain} is current (version ${version})`;
    case "not-migrated":
      return optionalFor === undefined
        ? `The database is not migrated (no schema ${chain}): ${fix}`
        : `Cannot use ${optionalFor} as the optional schema ${chain} was not made: ${fix}, or leave ${optionalFor} out`;
    case "behind":
      return `The schema ${chain} is behind (version ${version}, this build needs ${target}): ${fix}`;
    case "newer":
      return `The schema ${chain} is newer (version ${version}) than this build knows (${target}): use the newer build`;
    case "changed":
      return `The schema ${chain} had a migration that was changed since: restore the migration's file`;
  }
}

/** The chains of one area's database. */
export function chainsOf(area: Area, chains: readonly MigrationChain[]): MigrationChain[] {
  return chains.filter((chain) => chain.area === area);
}

/** What the chains have had. All are looked at before any is touched: a refusal leaves nothing half done. */
async function readMigratable(
  client: PostgresClient,
  prepared: readonly PreparedChain[],
): Promise<ReadonlyMap<string, readonly AppliedMigration[]>> {
  const applied = new Map<string, AppliedMigration[]>();
  for (const { name, steps } of prepared) {
    const rows = await readApplied(client, name) ?? [];
    assertMigratable(name, steps, rows);
    applied.set(name, rows);
  }
  return applied;
}

interface PreparedChain {
  readonly chain: MigrationChain;
  readonly name: string;
  readonly steps: CheckedMigration[];
}

async function prepareAll(chains: readonly MigrationChain[]): Promise<PreparedChain[]> {
  return await Promise.all(chains.map(async (chain) => ({
    chain,
    name: chain.name,
    steps: await prepareChain(chain.name, chain.postgres),
  })));
}

// A missing table is told from an empty one without provoking an error.
// The catalog is open to every login; asking for the table itself would need a right on its schema.
const VERSION_TABLE_EXISTS = `select exists (
  select from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relname = 'schema_migrations'
) as found`;

function versionRows(schema: string): string {
  return `select version, name, checksum from ${schema}.schema_migrations order by version`;
}

async function readApplied(client: PostgresClient, schema: string): Promise<AppliedMigration[] | null> {
  const [table] = await client.query<{ found: boolean }>(VERSION_TABLE_EXISTS, [schema]);
  if (!table?.found) return null;
  return await client.query<AppliedMigration & Record<string, unknown>>(versionRows(schema));
}

async function readAppliedBySystem(database: Database, schema: string): Promise<AppliedMigration[] | null> {
  const [table] = await database.system<{ found: boolean }>(VERSION_TABLE_EXISTS, [schema]);
  if (!table?.found) return null;
  return await database.system<AppliedMigration & Record<string, unknown>>(versionRows(schema), []);
}

async function ensureVersionTable(client: PostgresClient, schema: string): Promise<void> {
  const roles = GROUP_ROLES.join(", ");
  await client.script(`
    create schema if not exists ${schema};
    create table if not exists ${schema}.schema_migrations (
      version integer primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default now()
    );
    grant usage on schema ${schema} to ${roles};
    grant select on ${schema}.schema_migrations to ${roles};
  `);
}

// The row goes first: were the lock ever lost, a second migrator would stop at it before it touched anything.
function upScript(schema: string, step: CheckedMigration): string {
  return `insert into ${schema}.schema_migrations (version, name, checksum)
    values (${step.version}, '${step.name}', '${step.checksum}');\n${step.up}`;
}

function downScript(schema: string, step: Migration): string {
  // A step may take back its schema's grants; every login must still be able to read how far the schema is.
  return `delete from ${schema}.schema_migrations where version = ${step.version};\n${step.down};\n` +
    `grant usage on schema ${schema} to ${GROUP_ROLES.join(", ")}`;
}

async function withMigratorLock<T>(
  client: PostgresClient,
  options: MigrateOptions,
  migrate: () => Promise<T>,
): Promise<T> {
  // A migrator that was killed must not hold the lock until its statement ends. Not every platform can look.
  await client.query("select set_config('client_connection_check_interval', '1s', false)").catch(() => {});
  await takeMigratorLock(client, options);
  try {
    return await migrate();
  } finally {
    if (!client.gone) await client.query("select pg_advisory_unlock($1)", [LOCK_KEY]).catch(() => {});
  }
}

async function takeMigratorLock(client: PostgresClient, options: MigrateOptions): Promise<void> {
  const waitMs = options.migratorWaitMs ?? 60_000;
  const untilMs = performance.now() + waitMs;
  for (let said = false;;) {
    const [row] = await client.query<{ locked: boolean }>("select pg_try_advisory_lock($1) as locked", [LOCK_KEY]);
    if (row?.locked) return;
    const holder = await describeMigrator(client);
    if (!said) (options.logger ?? silentLogger).info("waiting for another migrator", { holder });
    said = true;
    if (performance.now() > untilMs) {
      throw new UnavailableError(
        `Cannot migrate as another migrator has been at work for more than ${waitMs} ms (${holder}): wait for it or end it`,
        "not-executed",
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 100));
  }
}

async function describeMigrator(client: PostgresClient): Promise<string> {
  const [row] = await client.query<{ who: string }>(
    `select format('process %s, user %s, since %s', a.pid, a.usename, a.backend_start::timestamptz(0)) as who
     from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.granted and l.objid = $1::bigint::oid
       and l.database = (select oid from pg_database where datname = current_database())`,
    [LOCK_KEY],
  );
  return row?.who ?? "it has just finished";
}

async function takeStep(
  client: PostgresClient,
  work: { readonly name: string; readonly area: Area; readonly step: Migration; readonly script: string },
  options: MigrateOptions,
): Promise<void> {
  const waitMs = options.lockWaitMs ?? 30_000;
  const untilMs = performance.now() + waitMs;
  for (;;) {
    const sliceMs = Math.max(1, Math.min(LOCK_SLICE_MS, Math.ceil(untilMs - performance.now())));
    try {
      await client.query("select set_config('lock_timeout', $1, false)", [`${sliceMs}ms`]);
      return await client.script(work.script);
    } catch (error) {
      if (sqlState((error as Error).cause) !== "55P03") throw stepError(work, error);
      const holders = await describeHolders(client, { name: work.name, area: work.area });
      if (performance.now() >= untilMs) {
        throw new UnavailableError(
          `Cannot apply ${label(work.name, work.step)} as its tables stayed locked for ${waitMs} ms by ${holders}: ` +
            "end these sessions or try again later; nothing of the step was applied",
          "not-executed",
          { cause: error },
        );
      }
      (options.logger ?? silentLogger).info("waiting for table locks", { step: label(work.name, work.step), holders });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

function stepError(work: { readonly name: string; readonly step: Migration }, error: unknown): UnavailableError {
  const said = error instanceof Error ? error.message : String(error);
  return new UnavailableError(
    `Cannot apply ${label(work.name, work.step)}: ${said}`,
    error instanceof UnavailableError ? error.outcome : "not-executed",
    { cause: error },
  );
}

// Never the text of their statements: it may hold data. What a session does is hidden from logins that are neither its
// own nor members of pg_monitor.
async function describeHolders(client: PostgresClient, chain: Pick<MigrationChain, "name" | "area">): Promise<string> {
  const rows = await client.query<{ who: string }>(
    `select distinct format('process %s (%s)', a.pid, concat_ws(', ', 'user ' || a.usename, nullif(a.application_name, ''),
       a.state, 'in its transaction since ' || a.xact_start::timestamptz(0)::text)) as who
     from pg_locks l
       join pg_class c on c.oid = l.relation
       join pg_namespace n on n.oid = c.relnamespace
       join pg_stat_activity a on a.pid = l.pid
     where l.granted and l.pid <> pg_backend_pid() and n.nspname in ($1, $2)
       and l.database = (select oid from pg_database where datname = current_database())
     limit 10`,
    [chain.name, chain.area],
  );
  return rows.length === 0 ? "a session that has just finished" : rows.map((row) => row.who).join(", ");
}
