/**
 * `migrate`: the schema up, down, or its state.
 *
 * @module
 */
import type { Logger } from "../core/log.ts";
import type { MigrationChain } from "../db/chain.ts";
import type { PostgresClient } from "../db/client.ts";
import type { Area } from "../db/database.ts";
import type { ChainStatus, DownOptions, MigrationStep } from "../db/migration_rules.ts";
import { migrateDown, migrateUp, migrationStatus, openMigrationConnection } from "../db/migrator.ts";
import { SqliteDatabase } from "../db/sqlite.ts";
import { migrateSqliteDown, migrateSqliteUp, sqliteMigrationStatus } from "../db/sqlite_migrator.ts";
import { OPTIONAL_CHAINS } from "../migrations.ts";
import { chainsOf } from "../runtime/open_parts.ts";
import { requireStore, type Settings } from "../runtime/settings.ts";
import { UsageError } from "../runtime/usage_error.ts";
import type { CommandContext } from "./command_context.ts";
import { isAbsent, openToLook } from "./look.ts";

/** What is asked of the migrator. */
export type MigrateRequest = { readonly direction: "up" | "status"; readonly chain: string | null } | {
  readonly direction: "down";
  readonly chain: string;
  readonly steps: number;
};

/**
 * Reads the command's words.
 *
 * @throws {UsageError} An unknown direction, `down` without a chain, or a bad number of steps.
 */
export function readDirection(
  flags: { readonly direction?: string; readonly chain?: string; readonly steps: string },
): MigrateRequest {
  const { direction, chain, steps } = flags;
  if (direction === "up" || direction === "status") return { direction, chain: chain ?? null };
  if (direction !== "down") {
    const asked = direction === undefined ? "without a direction" : JSON.stringify(direction);
    throw new UsageError(`Cannot migrate ${asked}: say up, down or status`);
  }
  // Taking tables down takes their rows along, so it is never done to "everything" by a short command.
  if (chain === undefined) {
    throw new UsageError(
      "Cannot migrate down without --chain: say whose last step is to be taken back (its rows go too)",
    );
  }
  if (!/^[1-9]\d{0,3}$/.test(steps)) {
    throw new UsageError(`Cannot use --steps ${JSON.stringify(steps)}: it must be a whole number from 1 to 9999`);
  }
  return { direction, chain, steps: Number(steps) };
}

interface Migrator {
  up(chains: readonly MigrationChain[]): Promise<MigrationStep[]>;
  down(chains: readonly MigrationChain[], options: DownOptions): Promise<MigrationStep[]>;
  status(chains: readonly MigrationChain[]): Promise<ChainStatus[]>;
  close(): Promise<void>;
}

/**
 * Does what was asked on every database of the store. 0 when done; `status` is 1 when something is not current. Optional
 * chains are brought up and taken down only when they are named; one that was never made does not count as not current.
 */
export async function migrate(
  settings: Settings,
  options: MigrateRequest & { readonly context: CommandContext; readonly logger: Logger },
): Promise<number> {
  const { context } = options;
  const all = [...chainsOf(context.definition), ...OPTIONAL_CHAINS];
  const names = all.map((chain) => chain.name);
  if (options.chain !== null && !names.includes(options.chain)) {
    throw new UsageError(`Cannot use --chain ${options.chain}: chains are ${names.join(", ")}`);
  }
  let code = 0;
  for (const { open, areas } of targets(settings, { logger: options.logger, look: options.direction === "status" })) {
    const chains = all.filter((chain) => areas.includes(chain.area));
    const chosen = chains.filter((chain) => isChosen(chain, options));
    if (chosen.length === 0) continue;
    const migrator = await open();
    try {
      if (options.direction === "down") await refuseBeneathOptional(migrator, chosen, chains);
      code = Math.max(code, await run(migrator, chosen, options));
    } finally {
      await migrator.close();
    }
  }
  return code;
}

function isChosen({ name, optionalFor }: MigrationChain, { direction, chain }: MigrateRequest): boolean {
  return chain === null ? optionalFor === undefined || direction === "status" : chain === name;
}

// Its tables would take along what the optional chain made, which would go on saying that it is there.
async function refuseBeneathOptional(
  migrator: Migrator,
  doomed: readonly MigrationChain[],
  chains: readonly MigrationChain[],
): Promise<void> {
  const above = chains.filter(({ optionalFor, name, area }) =>
    optionalFor !== undefined && doomed.some((chain) => chain.name === area && chain.name !== name)
  );
  const standing = (await migrator.status(above)).find(({ version }) => version > 0);
  if (standing === undefined) return;
  throw new UsageError(
    `Cannot take back ${doomed.map(({ name }) => name).join(", ")} as ${standing.chain} stands on it: run ` +
      `\`migrate down --chain ${standing.chain}\` first`,
  );
}

async function run(
  migrator: Migrator,
  chains: readonly MigrationChain[],
  options: MigrateRequest & { readonly context: CommandContext },
): Promise<number> {
  const { print } = options.context.io;
  if (options.direction === "status") {
    const states = await migrator.status(chains);
    for (const state of states) print(describeState(state));
    return states.every((state) => state.state === "current" || isLeftOut(state)) ? 0 : 1;
  }
  const down = options.direction === "down";
  const steps = down
    ? await migrator.down(chains, { chain: options.chain, steps: options.steps })
    : await migrator.up(chains);
  for (const step of steps) {
    print(`${down ? "took back" : "applied"} ${step.chain} ${String(step.version).padStart(4, "0")}_${step.name}`);
  }
  if (steps.length === 0) print(`${chains.map((chain) => chain.name).join(", ")}: nothing to do`);
  return 0;
}

function isLeftOut({ state, optionalFor }: ChainStatus): boolean {
  return optionalFor !== undefined && state === "not-migrated";
}

function describeState(status: ChainStatus): string {
  if (isLeftOut(status)) return `${status.chain}: left out, optional (for ${status.optionalFor})`;
  const pending = status.pending.length > 0 ? `, pending ${status.pending.join(", ")}` : "";
  return `${status.chain}: ${status.state}, version ${status.version} of ${status.target}${pending}`;
}

interface Target {
  readonly areas: readonly Area[];
  open(): Promise<Migrator>;
}

// Areas that share a database are migrated over one connection.
function targets(settings: Settings, { logger, look }: { logger: Logger; look: boolean }): Target[] {
  const choice = requireStore(settings, "migrate");
  if (choice.engine === "sqlite") {
    return [{ areas: ["core", "queue", "activity"], open: () => sqliteMigrator(choice.path, look) }];
  }
  const byUrl = new Map<string, Area[]>();
  for (const area of ["core", "queue", "activity"] as const) {
    const url = settings.urls.areas[area]?.migrate ?? settings.urls.migrate ?? "";
    byUrl.set(url, [...byUrl.get(url) ?? [], area]);
  }
  return [...byUrl].map(([url, areas]) => ({
    areas,
    open: async () => postgresMigrator(await openMigrationConnection(url), logger),
  }));
}

async function sqliteMigrator(path: string, look: boolean): Promise<Migrator> {
  const db = look ? openToLook(path, await isAbsent(path)) : new SqliteDatabase(path);
  return {
    up: (chains) => migrateSqliteUp(db, chains),
    down: (chains, options) => migrateSqliteDown(db, chains, options),
    status: (chains) => sqliteMigrationStatus(db, chains),
    close: () => Promise.resolve(db.close()),
  };
}

function postgresMigrator(client: PostgresClient, logger: Logger): Migrator {
  return {
    up: (chains) => migrateUp(client, chains, { logger }),
    down: (chains, options) => migrateDown(client, chains, { ...options, logger }),
    status: (chains) => migrationStatus(client, chains),
    close: () => client.close(),
  };
}
