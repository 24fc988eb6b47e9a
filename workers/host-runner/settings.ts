/**
 * The settings of this worker, beside those every worker has. They come from its own environment variables.
 *
 * @module
 */
import { readEnvDuration, readKeyClaims, readSecretFile, type SecretFile, UsageError } from "../../mod.ts";

/** Variables that the compiled binary may read: its own, and those a config may hand on to its commands. */
export const ENV: readonly string[] = [
  "LANEWAY_REST_URL",
  "LANEWAY_REST_KEY",
  "LANEWAY_REST_KEY_FILE",
  "LANEWAY_REST_APIKEY",
  "LANEWAY_REST_APIKEY_FILE",
  "LANEWAY_REST_TIMEOUT",
  "LANEWAY_HOST",
  "LANEWAY_HOST_CONFIG",
  "LANEWAY_ENV_FILE",
  "LANEWAY_NOTICE_WEBHOOK",
  "LANEWAY_NOTICE_WEBHOOK_FILE",
  "LANEWAY_NOTICE_GITHUB_REPO",
  "LANEWAY_NOTICE_GITHUB_TOKEN",
  "LANEWAY_NOTICE_GITHUB_TOKEN_FILE",
  "LANEWAY_NOTICE_GITHUB_URL",
  "LANEWAY_NOTICE_INTERVAL",
];

/** Where notices go. */
export interface NoticeSettings {
  /** A webhook's URL, which is a secret. Null: none. */
  readonly webhookUrl: string | null;
  /** Where issues are opened. Null: nowhere. */
  readonly github: { readonly repo: string; readonly token: string; readonly apiUrl: string } | null;
  /** The least time between two notices of a cause. Default 15 min, 1 min to 1 d. */
  readonly intervalMs: number;
}

/** What this worker is told. */
export interface HostRunnerSettings {
  /** Where PostgREST answers, without a slash at its end. */
  readonly url: string;
  /** Reads the key, its file anew each time, so that a new one is taken up without a restart. */
  readonly readKey: () => string;
  /** What Supabase's gateway asks for beside the key; null: the key itself. */
  readonly apiKey: string | null;
  /** Of one call. Default 10 s, 1 s to 60 s. */
  readonly timeoutMs: number;
  /** The host's name in `queue.hosts`. */
  readonly host: string;
  /** The file that says which command runs for which kind. */
  readonly configPath: string;
  readonly notices: NoticeSettings;
}

/** How settings are read; tests give their own files. */
export interface ReadOptions {
  /** Default the file system. */
  readonly readFile?: (path: string) => SecretFile;
  /** The permission bits of a file that need not be readable; null where the platform has none. Default the file system's. */
  readonly modeOf?: (path: string) => number | null;
}

const HOST = /^[a-z0-9][a-z0-9-]{0,62}$/;
const REPO = /^[A-Za-z0-9][\w.-]{0,99}\/[\w.-]{1,100}$/;
const LOOPBACK = ["127.0.0.1", "[::1]", "localhost"];

/**
 * Reads the settings, the key included.
 *
 * @throws {UsageError} A variable is missing, malformed or does not fit another, or others than its owner may read the file
 *   of a secret. No secret is ever shown.
 * @throws {SettingsError} The file of a secret cannot be read.
 */
export function readHostSettings(
  env: Readonly<Record<string, string>>,
  options: ReadOptions = {},
): HostRunnerSettings {
  checkEnvFile(env, options);
  const url = readUrl(env);
  const readKey = () => needed(readSecret(env, "LANEWAY_REST_KEY", options), "LANEWAY_REST_KEY_FILE", "the host's key");
  return {
    url,
    readKey,
    apiKey: readSecret(env, "LANEWAY_REST_APIKEY", options),
    timeoutMs: readEnvDuration(env, "LANEWAY_REST_TIMEOUT", { standard: "10s", min: "1s", max: "60s" }),
    host: readHost(env, readKey()),
    configPath: readConfigPath(env),
    notices: readNotices(env, options),
  };
}

/** The path of the command config. @throws {UsageError} It is not set. */
export function readConfigPath(env: Readonly<Record<string, string>>): string {
  return needed(env.LANEWAY_HOST_CONFIG || null, "LANEWAY_HOST_CONFIG", "the file that names a command for each kind");
}

/** The environment file that systemd read holds what its variables hold: nobody else may read it either. */
function checkEnvFile(env: Readonly<Record<string, string>>, { modeOf = modeOnDisk }: ReadOptions): void {
  const path = env.LANEWAY_ENV_FILE || null;
  if (path === null) return;
  const mode = modeOf(path);
  if (mode === null || (mode & 0o077) === 0) return;
  const shown = (mode & 0o777).toString(8).padStart(4, "0");
  throw new UsageError(
    `Cannot use ${path} named by LANEWAY_ENV_FILE: its mode ${shown} lets others than its owner at it; run chmod 600 ${path}`,
  );
}

function readUrl(env: Readonly<Record<string, string>>): string {
  const name = "LANEWAY_REST_URL";
  const text = needed(env[name] || null, name, "where PostgREST answers, https://PROJECT.supabase.co/rest/v1");
  const url = parseUrl(text, name);
  if (url.search !== "" || url.hash !== "") throw new UsageError(`Cannot use ${name}: it must have no query`);
  return url.href.replace(/\/+$/, "");
}

/** A URL that a secret may be sent to: https, or this machine. It is not shown, as it may be a secret itself. */
function parseUrl(text: string, name: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new UsageError(`Cannot use ${name}: it is no URL; write it whole, with https://`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(`Cannot use ${name}: it must hold no user and no password; a key has a variable of its own`);
  }
  const safe = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.includes(url.hostname));
  if (!safe) throw new UsageError(`Cannot use ${name}: only https keeps what is sent to it secret; write https://`);
  return url;
}

/** The name in the key and the one that was set must be one: the database goes by the key's. */
function readHost(env: Readonly<Record<string, string>>, key: string): string {
  const told = env.LANEWAY_HOST || null;
  const claimed = readKeyClaims(key)?.host ?? null;
  const host = needed(told ?? claimed, "LANEWAY_HOST", "the host's name, as its row in queue.hosts has it");
  if (!HOST.test(host)) {
    throw new UsageError(
      `Cannot use LANEWAY_HOST ${JSON.stringify(host)}: a name is 1 to 63 lower-case letters, digits and dashes`,
    );
  }
  if (claimed !== null && claimed !== host) {
    throw new UsageError(
      `Cannot use LANEWAY_HOST ${host}: the key is for host ${claimed}; use the key made for ${host}`,
    );
  }
  return host;
}

function readNotices(env: Readonly<Record<string, string>>, options: ReadOptions): NoticeSettings {
  const webhookUrl = readSecret(env, "LANEWAY_NOTICE_WEBHOOK", options);
  if (webhookUrl !== null) parseUrl(webhookUrl, "LANEWAY_NOTICE_WEBHOOK");
  const repo = env.LANEWAY_NOTICE_GITHUB_REPO || null;
  const token = readSecret(env, "LANEWAY_NOTICE_GITHUB_TOKEN", options);
  const intervalMs = readEnvDuration(env, "LANEWAY_NOTICE_INTERVAL", { standard: "15m", min: "1m", max: "1d" });
  if (repo === null && token === null) return { webhookUrl, github: null, intervalMs };
  if (repo === null || token === null) {
    const [set, missing] = repo === null ? ["TOKEN", "REPO"] : ["REPO", "TOKEN"];
    throw new UsageError(`Cannot use LANEWAY_NOTICE_GITHUB_${set} without LANEWAY_NOTICE_GITHUB_${missing}: set both`);
  }
  if (!REPO.test(repo)) {
    throw new UsageError(`Cannot use LANEWAY_NOTICE_GITHUB_REPO ${JSON.stringify(repo)}: write it as OWNER/NAME`);
  }
  const apiUrl = env.LANEWAY_NOTICE_GITHUB_URL || "https://api.github.com";
  parseUrl(apiUrl, "LANEWAY_NOTICE_GITHUB_URL");
  return { webhookUrl, github: { repo, token, apiUrl: apiUrl.replace(/\/+$/, "") }, intervalMs };
}

/** A secret, from its variable or from the file that `NAME_FILE` names; null when neither is set. */
function readSecret(env: Readonly<Record<string, string>>, name: string, { readFile }: ReadOptions): string | null {
  const direct = env[name]?.trim() || null;
  const path = env[`${name}_FILE`] || null;
  if (direct !== null && path !== null) {
    throw new UsageError(`Cannot use both ${name} and ${name}_FILE: unset one of them`);
  }
  const secret = path === null ? direct : readSecretFile(path, `${name}_FILE`, readFile);
  // It travels in a header, where a line break or a blank would end it.
  if (secret !== null && !/^[\x21-\x7e]+$/.test(secret)) {
    throw new UsageError(`Cannot use ${path === null ? name : `${name}_FILE`}: it must be one word without blanks`);
  }
  return secret;
}

function needed(value: string | null, name: string, what: string): string {
  if (value === null) throw new UsageError(`Cannot start as ${name} is not set: set it to ${what}`);
  return value;
}

function modeOnDisk(path: string): number | null {
  try {
    return Deno.statSync(path).mode;
  } catch (cause) {
    throw new UsageError(`Cannot look at the mode of ${path} named by LANEWAY_ENV_FILE: is it there?`, { cause });
  }
}
