/**
 * The migrator for a SQLite store: same rules as on Postgres, all missing steps in one transaction. Several processes
 * may open a new file at once; one migrates, the others find it done.
 *
 * @module
 */
import { UnavailableError } from "../core/errors.ts";
import type { Migration, MigrationChain } from "./chain.ts";
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
import type { SqliteDatabase, SqliteSession } from "./sqlite.ts";

const VERSION_TABLE = `create table if not exists schema_migrations (
  chain text not null,
  version integer not null,
  name text not null,
  checksum text not null,
  applied_at integer not null,
  primary key (chain, version)
) strict`;

/**
 * Applies what the chains have and the store lacks, all of it or nothing.
 *
 * @returns The steps taken.
 * @throws {SettingsError} Newer store, or a step that was changed since.
 * @throws {UnavailableError} Another process held the store for too long, or a step failed.
 */
export async function migrateSqliteUp(db: SqliteDatabase, chains: readonly MigrationChain[]): Promise<MigrationStep[]> {
  const prepared = await prepareAll(chains);
  return await db.write((session) => {
    session.script(VERSION_TABLE);
    const taken: MigrationStep[] = [];
    for (const { name, steps } of prepared) {
      const applied = readApplied(session, name);
      assertMigratable(name, steps, applied);
      for (const step of steps.slice(applied.length)) {
        runStep(session, { name, step, script: step.up });
        session.run(
          "insert into schema_migrations (chain, version, name, checksum, applied_at) values (?, ?, ?, ?, ?)",
          ...[name, step.version, step.name, step.checksum, session.nowMs],
        );
        taken.push({ chain: name, version: step.version, name: step.name });
      }
    }
    return taken;
  });
}

/**
 * Takes back steps, the newest first, the chains in reverse order, all or nothing.
 *
 * @throws As `migrateSqliteUp`.
 */
export async function migrateSqliteDown(
  db: SqliteDatabase,
  chains: readonly MigrationChain[],
  options: DownOptions,
): Promise<MigrationStep[]> {
  const prepared = (await prepareAll(chains)).filter(({ name }) => (options.chain ?? name) === name).reverse();
  return await db.write((session) => {
    session.script(VERSION_TABLE);
    const taken: MigrationStep[] = [];
    for (const { name, steps } of prepared) {
      const applied = readApplied(session, name);
      assertMigratable(name, steps, applied);
      for (const step of steps.slice(0, applied.length).reverse().slice(0, options.steps)) {
        runStep(session, { name, step, script: step.down });
        session.run("delete from schema_migrations where chain = ? and version = ?", name, step.version);
        taken.push({ chain: name, version: step.version, name: step.name });
      }
    }
    return taken;
  });
}

/** How far each chain is. Changes nothing, not even an empty file. */
export async function sqliteMigrationStatus(
  db: SqliteDatabase,
  chains: readonly MigrationChain[],
): Promise<ChainStatus[]> {
  const prepared = await prepareAll(chains);
  return await db.read((session) => {
    const found = session.get("select 1 as found from sqlite_master where name = 'schema_migrations'") !== undefined;
    return prepared.map(({ chain, steps }) => statusOf(chain, steps, found ? readApplied(session, chain.name) : null));
  });
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
    steps: await prepareChain(chain.name, chain.sqlite),
  })));
}

function readApplied(session: SqliteSession, chain: string): AppliedMigration[] {
  const rows = session.all<{ version: number; name: string; checksum: string }>(
    "select version, name, checksum from schema_migrations where chain = ? order by version",
    chain,
  );
  return rows.map((row) => ({ ...row }));
}

function runStep(
  session: SqliteSession,
  work: { readonly name: string; readonly step: Migration; readonly script: string },
): void {
  try {
    session.script(work.script);
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new UnavailableError(`Cannot apply ${label(work.name, work.step)}: ${said}`, "not-executed", { cause });
  }
}
