/**
 * Database URLs. They hold passwords, so they come from the environment or from a file that only its owner may read;
 * never from a flag, which every process of the machine could see.
 *
 * @module
 */
import type { Area } from "../db/database.ts";
import { readSecretFile, type SecretFile } from "./secret_file.ts";
import { UsageError } from "./usage_error.ts";

/** The URLs of one area's database. Null where none was given. */
export interface AreaUrls {
  /** Bound to one org a statement. */
  readonly runtime: string | null;
  /** For statements across orgs. */
  readonly system: string | null;
  /** The owner, who migrates. */
  readonly migrate: string | null;
}

/** Every database URL of a process. */
export interface DatabaseUrls extends AreaUrls {
  /** A direct URL for LISTEN, where the others go through a pooler. */
  readonly listen: string | null;
  /** Areas with a database of their own; each URL left out falls back to the common one. */
  readonly areas: Readonly<Partial<Record<Area, AreaUrls>>>;
}

/** One variable that holds a URL. `NAME_FILE` names a file that holds it instead. */
export interface UrlSpec {
  readonly env: string;
  readonly help: string;
}

/** Every variable that holds a database URL; README's table is generated from here. */
export const URL_VARIABLES: readonly UrlSpec[] = [
  { env: "LANEWAY_DATABASE_URL", help: "The runtime login: statements inside one org, bound by row-level security." },
  { env: "LANEWAY_SYSTEM_DATABASE_URL", help: "The system login: claims, settlements and the sweep, across orgs." },
  { env: "LANEWAY_MIGRATE_DATABASE_URL", help: "The owner login, for `migrate` alone. A worker does not need it." },
  {
    env: "LANEWAY_LISTEN_DATABASE_URL",
    help: "A direct connection for notifications, where the others go through a transaction-mode pooler.",
  },
  ...(["QUEUE", "ACTIVITY"] as const).flatMap((area) => [
    {
      env: `LANEWAY_${area}_DATABASE_URL`,
      help: `The runtime login of the ${area.toLowerCase()} area, where it has a database of its own.`,
    },
    { env: `LANEWAY_${area}_SYSTEM_DATABASE_URL`, help: `Its system login.` },
    { env: `LANEWAY_${area}_MIGRATE_DATABASE_URL`, help: `Its owner login.` },
  ]),
];

/** How variables and files are read; tests give their own. */
export interface UrlSources {
  /** The variable's value, undefined when unset. */
  readonly env: (name: string) => string | undefined;
  /** Default the real file system. */
  readonly readFile?: (path: string) => SecretFile;
}

/**
 * Reads all database URLs.
 *
 * @throws {UsageError} A variable and its `_FILE` are both set, a URL is malformed, or a file's mode lets others read.
 * @throws {SettingsError} A file cannot be read.
 */
export function readDatabaseUrls(sources: UrlSources): DatabaseUrls {
  const read = (env: string) => readUrl(env, sources);
  const area = (prefix: string): AreaUrls => ({
    runtime: read(`${prefix}_DATABASE_URL`),
    system: read(`${prefix}_SYSTEM_DATABASE_URL`),
    migrate: read(`${prefix}_MIGRATE_DATABASE_URL`),
  });
  const areas: Partial<Record<Area, AreaUrls>> = {};
  for (const name of ["queue", "activity"] as const) {
    const urls = area(`LANEWAY_${name.toUpperCase()}`);
    if (urls.runtime !== null || urls.system !== null || urls.migrate !== null) areas[name] = urls;
  }
  return { ...area("LANEWAY"), listen: read("LANEWAY_LISTEN_DATABASE_URL"), areas };
}

function readUrl(env: string, sources: UrlSources): string | null {
  // An empty variable is what a deployment leaves behind when it has nothing to say.
  const direct = sources.env(env) || null;
  const path = sources.env(`${env}_FILE`) || null;
  if (direct !== null && path !== null) {
    throw new UsageError(`Cannot use both ${env} and ${env}_FILE: unset one of them`);
  }
  if (direct !== null) return checkUrl(direct.trim(), env);
  if (path === null) return null;
  return checkUrl(readSecretFile(path, `${env}_FILE`, sources.readFile), `${env}_FILE`);
}

// The value is never part of the message: it holds a password.
function checkUrl(text: string, label: string): string {
  const url = URL.parse(text);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === "") {
    throw new UsageError(
      `Cannot use ${label}: it is no Postgres URL; write postgres://LOGIN:PASSWORD@HOST:5432/DATABASE ` +
        "(a password's special characters percent-encoded)",
    );
  }
  return text;
}
