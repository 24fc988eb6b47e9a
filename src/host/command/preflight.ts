/**
 * Whether this host can run what a config names: for `check`, before anything is claimed.
 *
 * @module
 */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { describeError } from "../../core/describe_error.ts";
import { silentLogger } from "../../core/log.ts";
import { readSecretFile } from "../../runtime/secret_file.ts";
import { exitLines } from "./classify.ts";
import { type CommandConfig, type CompiledConfig, type KindCommand, openConfig } from "./config.ts";
import type { EnvSource } from "./environment.ts";
import { execute } from "./execute.ts";
import { findProgram, SYSTEM_PATH } from "./program.ts";
import { LogFolder } from "./run_log.ts";
import { RunStop } from "./stop.ts";
import { WorkFolders } from "./work_folders.ts";

/** Less than this free is no room for clones and logs. */
const LEAST_GIB = 1;

/** One thing that was looked at. */
export interface CommandCheck {
  /** `DEV_ISSUE: program`. */
  readonly name: string;
  /** Whether it is well. */
  readonly ok: boolean;
  /** What was found; when it is not well, with the fix. */
  readonly said: string;
}

/** What `checkCommands` looks with. */
export interface CheckOptions {
  /** Time. */
  readonly clock: Clock;
  /** Ends it early. */
  readonly signal: AbortSignal;
  /** A variable of the runner's own environment. Default the process's. */
  readonly ownEnv?: (name: string) => string | undefined;
  /** Whether login tests are run too: they may reach out, and cost. Default true. */
  readonly logins?: boolean;
}

/** Looks at the host: folders, programs, keys, git, logins. Runs nothing but login tests. Never throws. */
export async function checkCommands(given: CommandConfig, options: CheckOptions): Promise<CommandCheck[]> {
  const config = openConfig(given);
  const own = options.ownEnv ?? ((name: string) => Deno.env.get(name));
  const checks = [
    await checkWork(config),
    await checkDisk("work folder", config.work.base),
    await checkDisk("logs", config.logs.folder),
    ...await checkFolders(config),
    await checkTool("sh", "every command"),
  ];
  const kinds = Object.values(config.kinds);
  const refreshed = Object.values(config.folders).some(({ refresh }) => refresh !== null);
  if (refreshed || kinds.some(({ clone }) => clone !== null)) {
    checks.push(await checkTool("git", "clones and refreshes"));
  }
  if (kinds.some(({ nice }) => nice > 0)) checks.push(await checkTool("nice", "kinds with nice"));
  for (const kind of kinds) {
    const sources = { ...config.env, ...kind.env.sources };
    const env = literalsOf(sources, own);
    checks.push(await checkProgram(kind, env.PATH ?? SYSTEM_PATH));
    checks.push(...checkVariables(kind.kind, sources, own));
    if (kind.loginTest !== null && options.logins !== false) {
      checks.push(await checkLogin(config, { kind, env }, options));
    }
  }
  return checks;
}

/** What a config does, for people: a few lines for each kind. */
export function explainConfig(config: CommandConfig): string[] {
  return Object.values(openConfig(config).kinds).flatMap((kind) => {
    const limit = kind.timeLimitMs === 0 ? "no time limit" : `at most ${kind.timeLimitMs / 1000} s`;
    const ends = exitLines(kind.exits).slice(0, -6).map(({ end, outcome }) => `${end}: ${outcome}`);
    return [
      `${kind.kind}: ${kind.program} with ${kind.args.length} arguments, ${limit}, nice ${kind.nice}, stdin ${kind.stdin}`,
      ...(kind.clone === null ? [] : [`  in a clone of ${kind.clone.url.text}`]),
      ...(kind.prompt === null ? [] : [`  prompt ${kind.prompt.file.text} of folder ${kind.prompt.folder}`]),
      `  ${ends.join("; ")}`,
    ];
  });
}

async function checkWork({ work }: CompiledConfig): Promise<CommandCheck> {
  try {
    const folders = await WorkFolders.open(work, silentLogger);
    const run = await folders.make("check");
    await folders.end(run, false);
    await folders.close();
    return { name: "work folder", ok: true, said: work.base };
  } catch (error) {
    return { name: "work folder", ok: false, said: describeError(error) };
  }
}

/** Room on the disk of a folder that may not be there yet. */
async function checkDisk(what: string, folder: string): Promise<CommandCheck> {
  const name = `${what}: disk`;
  try {
    let there = folder;
    while (!await Deno.stat(there).then(() => true, () => false) && there !== "/") there = dirname(there);
    const { bavail, bsize } = await statfs(there);
    const gib = (bavail * bsize) / 2 ** 30;
    const said = `${gib.toFixed(1)} GiB free for ${folder}`;
    const ok = gib >= LEAST_GIB;
    return { name, ok, said: ok ? said : `${said}, at least ${LEAST_GIB} should be: make room` };
  } catch (error) {
    return { name, ok: false, said: `cannot tell the room for ${folder}: ${describeError(error)}` };
  }
}

async function checkFolders({ folders }: CompiledConfig): Promise<CommandCheck[]> {
  return await Promise.all(
    Object.entries(folders).map(async ([name, { path, refresh }]): Promise<CommandCheck> => {
      const wanted = refresh === null ? path : `${path}/.git`;
      const found = await Deno.stat(wanted).then(({ isDirectory }) => isDirectory, () => false);
      const fix = refresh === null
        ? `there is no folder ${path}: make it`
        : `${path} is no git checkout: clone it there`;
      return { name: `folder ${name}`, ok: found, said: found ? path : fix };
    }),
  );
}

async function checkTool(tool: string, use: string): Promise<CommandCheck> {
  const path = await findProgram(tool, SYSTEM_PATH);
  return {
    name: tool,
    ok: path !== null,
    said: path ?? `none of ${SYSTEM_PATH} has it, and ${use} need it: install it`,
  };
}

async function checkProgram({ kind, program }: KindCommand, path: string): Promise<CommandCheck> {
  const found = await findProgram(program, path);
  const fix = `none of ${path} has ${program}: install it, or set PATH in the config's env`;
  return { name: `${kind}: program`, ok: found !== null, said: found ?? fix };
}

/** Variables that the host must bring along. */
function checkVariables(
  kind: string,
  sources: Readonly<Record<string, EnvSource>>,
  own: (name: string) => string | undefined,
): CommandCheck[] {
  return Object.entries(sources).flatMap(([name, source]): CommandCheck[] => {
    const label = `${kind}: ${name}`;
    if (source.type === "inherited" && !source.optional) {
      const ok = (own(source.name) ?? "") !== "";
      return [{ name: label, ok, said: ok ? "set" : `the runner has no variable ${source.name}: give it one` }];
    }
    if (source.type !== "secret") return [];
    try {
      readSecretFile(source.path, `variable ${name}`);
      return [{ name: label, ok: true, said: source.path }];
    } catch (error) {
      return [{ name: label, ok: false, said: describeError(error) }];
    }
  });
}

async function checkLogin(
  config: CompiledConfig,
  { kind, env }: { readonly kind: KindCommand; readonly env: Readonly<Record<string, string>> },
  { clock, signal }: CheckOptions,
): Promise<CommandCheck> {
  const name = `${kind.kind}: login`;
  const test = kind.loginTest;
  const [program = "", ...args] = test?.argv ?? [];
  const path = await findProgram(program, env.PATH ?? SYSTEM_PATH);
  if (path === null) return { name, ok: false, said: `there is no program ${program} for the login test: install it` };
  const timeLimitMs = test?.timeLimitMs ?? 0;
  const stop = new RunStop({ signal, timeLimitMs, killGraceMs: 2_000, clock });
  try {
    const log = await new LogFolder(config.logs, silentLogger).open(`check-${kind.kind}-${crypto.randomUUID()}.log`);
    const mark = `check-${Deno.pid}/${kind.kind}`;
    const result = await execute({ program: path, args, env, cwd: "/", stdinFile: null, before: [], mark }, {
      stop,
      log,
      clock,
    });
    await log.close();
    if (result.exitCode === 0 && result.stopped === null) return { name, ok: true, said: "logged in" };
    const how = result.stopped ?? result.signal ?? `exit ${result.exitCode}`;
    const last = (result.stderr.text || result.stdout.text).trim().slice(-300);
    return { name, ok: false, said: `${program} says no (${how}): log this host in by itself. ${last}` };
  } catch (error) {
    return { name, ok: false, said: describeError(error) };
  } finally {
    stop.dispose();
  }
}

/** The variables that no item has a part in. */
function literalsOf(
  sources: Readonly<Record<string, EnvSource>>,
  own: (name: string) => string | undefined,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, source] of Object.entries(sources)) {
    if (source.type === "literal") env[name] = source.value;
    else if (source.type === "inherited") env[name] = own(source.name) ?? "";
    else if (source.type === "secret") {
      try {
        env[name] = readSecretFile(source.path, `variable ${name}`);
      } catch {
        // Told by its own check.
      }
    }
  }
  return env;
}
