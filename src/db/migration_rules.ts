/**
 * What both migrators decide alike: which steps a database lacks, and when to refuse it.
 *
 * @module
 */
import { invariant, SettingsError } from "../core/errors.ts";
import type { Migration, MigrationChain } from "./chain.ts";

/** A migration a database says it has had. */
export interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
}

/** How far a chain is on one database. */
export interface ChainStatus {
  readonly chain: string;
  /** The last version applied; 0 when none is. */
  readonly version: number;
  /** The last version this build knows. */
  readonly target: number;
  readonly state: "current" | "behind" | "newer" | "not-migrated" | "changed";
  /** What is not applied yet, `0001_name`. */
  readonly pending: readonly string[];
  /** What needs it, of a chain that is applied only where it is named. */
  readonly optionalFor?: string;
}

/** The fingerprint of a step's up script: SHA-256, in hex. */
export async function checksumOf(migration: Migration): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(migration.up));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A step with its fingerprint. */
export interface CheckedMigration extends Migration {
  readonly checksum: string;
}

/** Checks that versions run 1, 2, 3 … and adds the fingerprints. */
export async function prepareChain(name: string, migrations: readonly Migration[]): Promise<CheckedMigration[]> {
  invariant(/^[a-z][a-z0-9_]{0,47}$/.test(name), `The chain name "${name}" must be snake case`);
  migrations.forEach((migration, i) => {
    invariant(migration.version === i + 1, `Chain ${name} must number its migrations 1, 2, 3 …`);
    invariant(/^[a-z0-9_]+$/.test(migration.name), `Migration name "${migration.name}" must be snake case`);
    for (const script of [migration.up, migration.down]) {
      invariant(
        !/^\s*(begin|commit|rollback|start\s+transaction)\b[^;]*;/im.test(script.replace(/\$\$[\s\S]*?\$\$/g, "")),
        `Migration ${label(name, migration)} must not open or end transactions: a step is one already`,
      );
    }
  });
  return await Promise.all(migrations.map(async (step) => ({ ...step, checksum: await checksumOf(step) })));
}

/** Names a step as its file does: `queue 0001_work_items`. */
export function label(chain: string, migration: { readonly version: number; readonly name: string }): string {
  return `${chain} ${String(migration.version).padStart(4, "0")}_${migration.name}`;
}

/** Compares a chain with what a database has had. `applied` is null where not even the version table is. */
export function compareChain(
  chain: string,
  known: readonly CheckedMigration[],
  applied: readonly AppliedMigration[] | null,
): ChainStatus {
  const version = applied?.at(-1)?.version ?? 0;
  const pending = known.filter((step) => step.version > version).map((step) => label(chain, step).split(" ")[1] ?? "");
  const status = { chain, version, target: known.length, pending };
  if (version > known.length) return { ...status, state: "newer" };
  if (firstChanged(known, applied ?? []) !== undefined) return { ...status, state: "changed" };
  if (version === known.length) return { ...status, state: "current" };
  return { ...status, state: version === 0 ? "not-migrated" : "behind" };
}

/** `compareChain` of a chain, with what needs it where it is optional. */
export function statusOf(
  { name, optionalFor }: Pick<MigrationChain, "name" | "optionalFor">,
  known: readonly CheckedMigration[],
  applied: readonly AppliedMigration[] | null,
): ChainStatus {
  const status = compareChain(name, known, applied);
  return optionalFor === undefined ? status : { ...status, optionalFor };
}

/**
 * Refuses a database that this build must not touch.
 *
 * @throws {SettingsError} Its schema is newer than this build, or a step it has had was changed since.
 */
export function assertMigratable(
  chain: string,
  known: readonly CheckedMigration[],
  applied: readonly AppliedMigration[],
): void {
  const newest = applied.at(-1);
  if (newest !== undefined && newest.version > known.length) {
    throw new SettingsError(
      `Cannot migrate: the database has version ${newest.version} (${
        label(chain, newest)
      }), this build knows ${chain} ` +
        `up to version ${known.length}: use the newer build`,
    );
  }
  const changed = firstChanged(known, applied);
  if (changed !== undefined) {
    throw new SettingsError(
      `Cannot migrate: ${label(chain, changed)} was changed after this database had it; restore the file, and make ` +
        "changes in a new migration",
    );
  }
}

function firstChanged(
  known: readonly CheckedMigration[],
  applied: readonly AppliedMigration[],
): AppliedMigration | undefined {
  return applied.find((row, i) => row.version !== i + 1 || known[i]?.checksum !== row.checksum);
}

/** Options of a migration down. */
export interface DownOptions {
  /** Only this chain; default all, the last listed first. */
  chain?: string;
  /** How many steps of each chain to take back; `Infinity` for all. */
  steps: number;
}

/** One step that was taken. */
export interface MigrationStep {
  /** The chain it belongs to. */
  readonly chain: string;
  /** Its number in the chain. */
  readonly version: number;
  /** Its name. */
  readonly name: string;
}
