/**
 * Settings: what the flags, the environment and the defaults say together, checked as a whole.
 *
 * @module
 */
import { suggest } from "../core/suggest.ts";
import { type DatabaseUrls, readDatabaseUrls, URL_VARIABLES } from "./database_urls.ts";
import type { SecretFile } from "./secret_file.ts";
import { envName, FLAG_ENTRIES, type FlagKey, FLAGS, type FlagSpec, type FlagValues } from "./flags.ts";
import { type FlagValue, parseFlag } from "./flag_values.ts";
import { UsageError } from "./usage_error.ts";

/** Which store a process works on. */
export type StoreChoice = { readonly engine: "postgres" } | {
  readonly engine: "sqlite";
  /** A file, or `:memory:`. */
  readonly path: string;
};

/** Everything a process is told. Durations in milliseconds, sizes in bytes. */
export interface Settings extends Omit<FlagValues, "store"> {
  /** Null when none was named: see `requireStore`. */
  readonly store: StoreChoice | null;
  /** The database URLs. They hold passwords: never show one. */
  readonly urls: DatabaseUrls;
  /** What is worth a warning, in plain words: unknown `LANEWAY_*` variables, settings without effect. */
  readonly warnings: readonly string[];
}

/** Where settings come from. */
export interface SettingsSources {
  /** Flags as written, by their name in code; a repeated list flag is joined with commas. */
  readonly flags?: Partial<Record<FlagKey, string>>;
  /** The environment, as far as this process may see it. */
  readonly env: Readonly<Record<string, string>>;
  /** Defaults that go before the table's, as people write them. */
  readonly defaults?: Readonly<Partial<Record<FlagKey, string>>>;
  /** Variables of the worker's own, which are not warned of. */
  readonly ownVariables?: readonly string[];
  /** How secret files are read; default the file system. */
  readonly readFile?: (path: string) => SecretFile;
}

/** The most items one connection of the runtime login serves: bookkeeping is batched, handlers share the rest. */
export const ITEMS_PER_CONNECTION = 20;

/**
 * Reads settings: a flag goes before its variable, which goes before the default.
 *
 * @throws {UsageError} Naming flag or variable, value and fix: malformed, out of range, or not fitting another.
 * @throws {SettingsError} A secret file cannot be read.
 */
export function readSettings(sources: SettingsSources): Settings {
  const values: Partial<Record<FlagKey, FlagValue | null>> = {};
  const labels: Partial<Record<FlagKey, string>> = {};
  for (const [key, spec] of FLAG_ENTRIES) {
    const written = findText(key, spec, sources);
    if (written !== null) labels[key] = `${written.label} ${written.text}`;
    values[key] = written === null
      ? defaultOf(spec, sources.defaults?.[key])
      : parseFlag(spec, written.text, written.label);
  }
  const flags = values as FlagValues;
  const urls = readDatabaseUrls({ env: (name) => sources.env[name], readFile: sources.readFile });
  const store = resolveStore(flags.store, urls);
  const warnings = unknownVariables(sources.env, sources.ownVariables ?? []);
  const settings: Settings = { ...flags, store, urls, warnings };
  checkTogether(settings, (key) => labels[key] ?? `--${FLAGS[key].flag} ${describeDefault(FLAGS[key])}`);
  return withListening(settings, labels.listen !== undefined);
}

function findText(
  key: FlagKey,
  spec: FlagSpec,
  sources: SettingsSources,
): { readonly text: string; readonly label: string } | null {
  const flag = sources.flags?.[key];
  if (flag !== undefined) return { text: flag, label: `--${spec.flag}` };
  const name = envName(spec);
  const variable = sources.env[name];
  return variable === undefined || variable === "" ? null : { text: variable, label: name };
}

function defaultOf(spec: FlagSpec, own: string | undefined): FlagValue | null {
  const text = own ?? spec.default;
  return text === null ? null : parseFlag(spec, String(text), `--${spec.flag}`);
}

/** A flag's default as help and README show it; empty when it has none. */
export function describeDefault(spec: FlagSpec): string {
  return spec.default === null ? "" : String(spec.default);
}

function resolveStore(written: string | null, urls: DatabaseUrls): StoreChoice | null {
  if (written === "memory") return { engine: "sqlite", path: ":memory:" };
  if (written?.startsWith("sqlite:")) return { engine: "sqlite", path: written.slice("sqlite:".length) };
  if (written === "postgres" || urls.runtime !== null) return { engine: "postgres" };
  return null;
}

/**
 * The store, for a command that needs one.
 *
 * @param need Whose URLs a Postgres store must come with: `work` asks for runtime and system, `migrate` for the owner.
 * @throws {UsageError} No store was named, or Postgres lacks a URL; the message says how to give it.
 */
export function requireStore(settings: Settings, need: "work" | "migrate"): StoreChoice {
  if (settings.store === null) {
    if (need === "migrate" && settings.urls.migrate !== null) return { engine: "postgres" };
    const variable = need === "migrate" ? "LANEWAY_MIGRATE_DATABASE_URL" : "LANEWAY_DATABASE_URL";
    throw new UsageError(
      `Cannot tell which store to use: set ${variable} (or ${variable}_FILE) for Postgres, ` +
        "or give --store memory or --store sqlite:PATH",
    );
  }
  if (settings.store.engine === "sqlite") return settings.store;
  const needed = need === "migrate"
    ? [["LANEWAY_MIGRATE_DATABASE_URL", settings.urls.migrate]] as const
    : [["LANEWAY_DATABASE_URL", settings.urls.runtime], ["LANEWAY_SYSTEM_DATABASE_URL", settings.urls.system]] as const;
  for (const [name, url] of needed) {
    if (url === null) {
      throw new UsageError(`Cannot use Postgres as ${name} is not set: set it, or ${name}_FILE to a file holding it`);
    }
  }
  return settings.store;
}

function checkTogether(settings: Settings, label: (key: FlagKey) => string): void {
  const room = settings.poolSize * ITEMS_PER_CONNECTION;
  if (settings.store?.engine === "postgres" && settings.capacity > room) {
    const needed = Math.ceil(settings.capacity / ITEMS_PER_CONNECTION);
    throw new UsageError(
      `Cannot serve ${label("capacity")} with ${label("poolSize")}: a connection serves at most ` +
        `${ITEMS_PER_CONNECTION} items; use --pool-size ${needed} or --capacity ${room}`,
    );
  }
  if (settings.keyRetentionMs < settings.outboxRetentionMs) {
    throw new UsageError(
      `Cannot use ${label("keyRetentionMs")} with ${label("outboxRetentionMs")}: keys must outlive outbox rows, or a ` +
        "row could run twice; raise --key-retention or lower --outbox-retention",
    );
  }
}

// A pooler in transaction mode takes LISTEN and then delivers nothing.
function withListening(settings: Settings, asked: boolean): Settings {
  const deaf = settings.pooler === "transaction" && settings.urls.listen === null && settings.listen === "on";
  if (!deaf) return settings;
  if (asked) {
    throw new UsageError(
      "Cannot use --listen on with --pooler transaction: notifications do not pass such a pooler; set " +
        "LANEWAY_LISTEN_DATABASE_URL to a direct connection, or use --listen off",
    );
  }
  return { ...settings, listen: "off" };
}

// Read by the demo, the tests and the scripts around a worker, not by the worker itself.
const OTHER_VARIABLES = ["LANEWAY_TEST_DATABASE_URL"];

/** Every `LANEWAY_*` variable that means something. */
export function knownVariables(): string[] {
  const urls = URL_VARIABLES.flatMap(({ env }) => [env, `${env}_FILE`]);
  return [...FLAG_ENTRIES.map(([, spec]) => envName(spec)), ...urls];
}

function unknownVariables(env: Readonly<Record<string, string>>, own: readonly string[]): string[] {
  const known = [...knownVariables(), ...own];
  return Object.keys(env).filter((name) =>
    name.startsWith("LANEWAY_") && !known.includes(name) && !OTHER_VARIABLES.includes(name)
  ).sort().map((name) => {
    const near = suggest(name, known);
    return `${name} is set but means nothing${near === null ? "" : `: did you mean ${near}?`}`;
  });
}
