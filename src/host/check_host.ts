/**
 * `check` on a host: the preflight before it is switched on.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { LanewayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Check } from "../runtime/definition.ts";
import { checkMachine } from "./check_machine.ts";
import { checkKey, checkRights, checkServer } from "./check_rights.ts";
import { checkRow, checkSweeper } from "./check_row.ts";
import type { CommandConfig } from "./command/config.ts";
import type { EnvSource } from "./command/environment.ts";
import { explainConfig } from "./command/explain.ts";
import { loadCommandConfig } from "./command/load.ts";
import { DatabaseTime } from "./database_time.ts";
import { readKeyClaims } from "./key_claims.ts";
import { RestClient } from "./rest_client.ts";
import { createRestHostApi } from "./rest_host_api.ts";
import { createRestProbe, type RestProbe } from "./rest_probe.ts";
import { parseWindows } from "./windows.ts";

/** What is checked. */
export interface CheckHostOptions {
  /** Where PostgREST answers, without a slash at its end. */
  readonly url: string;
  /** Reads the key. */
  readonly readKey: () => string | Promise<string>;
  /** What Supabase's gateway asks for beside the key; null: the key itself. */
  readonly apiKey: string | null;
  /** Of one call, milliseconds. */
  readonly timeoutMs: number;
  /** The host's name in `queue.hosts`. */
  readonly host: string;
  /** The lane the runner works on. */
  readonly lane: string;
  /** The command config's file. */
  readonly configPath: string;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** The process's variables, as far as the worker declares them. */
  readonly env: Readonly<Record<string, string>>;
}

const silent = { notify() {}, close: () => Promise.resolve() };

/**
 * Looks at the machine and at the server: its commands and their logins, git, disks; the server, the key, its rights, the
 * host's row, the clocks, and whether somebody sweeps. Writes one heartbeat and changes nothing else. Trouble is told as
 * findings, also where the server is away.
 *
 * @throws {UsageError} The command config does not serve. @throws {SettingsError} It cannot be read.
 */
export async function checkHost(options: CheckHostOptions): Promise<Check[]> {
  const { env } = options;
  const config = await loadCommandConfig(options.configPath);
  const kinds = Object.keys(config.kinds);
  const found: Check[] = [{ name: "config", state: "ok", said: `${config.path}: ${kinds.join(", ")}` }];
  for (const said of explainConfig(config)) found.push({ name: "config", state: "ok", said: said.trim() });
  const urls = Object.keys(env).filter((name) => name.includes("DATABASE_URL"));
  if (urls.length > 0) {
    const said = `${urls.join(", ")} is set: a host needs no database login, and one here is one more to lose`;
    found.push({ name: "settings", state: "warn", said });
  }
  found.push(...checkGrants(config, env), ...await checkMachine(config));
  try {
    found.push(...await checkRemote(options, kinds));
  } catch (error) {
    found.push({ name: "server", state: "fail", said: plainly(error) });
  }
  return found;
}

/** A command is given a narrower key by a config, and none of the runner's own secrets. */
function checkGrants(config: CommandConfig, env: CheckHostOptions["env"]): Check[] {
  const own = new Map(
    Object.entries(env).filter(([name]) => name.endsWith("_FILE")).map(([name, path]) => [path, name]),
  );
  const granted = [config.env, ...Object.values(config.kinds).map((kind) => kind.env.sources)].flatMap(Object.entries);
  return granted.flatMap(([name, source]: [string, EnvSource]): Check[] => {
    const of = source.type === "secret" ? own.get(source.path) : undefined;
    if (of === undefined) return [];
    const said =
      `variable ${name} gives commands the runner's own secret (${of}): issue one of their own, in another file`;
    return [{ name: "grants", state: "fail", said }];
  });
}

async function checkRemote(options: CheckHostOptions, kinds: readonly string[]): Promise<Check[]> {
  const { url, host, lane, timeoutMs, clock } = options;
  const key = await options.readKey();
  const probe = createRestProbe({
    url,
    key,
    timeoutMs,
    ...(options.apiKey === null ? {} : { apiKey: options.apiKey }),
  });
  const server = await checkServer(probe);
  const claims = checkKey(readKeyClaims(key), { host, nowMs: clock.now() });
  if (server.state === "fail") return [server, claims];
  const { checks, databaseMs } = await checkRow(apiOf(options, key), { host, lane, kinds }, clock);
  const sweeper = databaseMs === null ? [] : [await checkSweeper(probe, databaseMs)];
  return [server, claims, ...await checkRightsIn(probe, host), ...checks, ...sweeper];
}

async function checkRightsIn(probe: RestProbe, host: string): Promise<Check[]> {
  try {
    return await checkRights(probe, host);
  } catch (error) {
    return [{ name: "rights", state: "fail", said: plainly(error) }];
  }
}

function plainly(error: unknown): string {
  return error instanceof LanewayError ? error.message : describeError(error);
}

function apiOf({ url, apiKey, timeoutMs, host, clock, logger }: CheckHostOptions, key: string) {
  const client = new RestClient({
    ...{ url, readKey: () => key, timeoutMs, clock, logger, notifier: silent, budgetMs: timeoutMs },
    ...(apiKey === null ? {} : { apiKey }),
  });
  return createRestHostApi({ client, host, clock, time: new DatabaseTime(clock), parseWindows });
}
