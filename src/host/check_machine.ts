/**
 * `check`: what a host's machine must bring along: each command's program and login, the tools the runner itself starts,
 * its folders, room on its disks.
 *
 * @module
 */
import { access, constants, statfs } from "node:fs/promises";
import { boundText, describeError } from "../core/describe_error.ts";
import type { Check } from "../runtime/definition.ts";
import { EMPTY_UUID } from "../core/ids.ts";
import type { CommandConfig, KindCommand } from "./command/config.ts";
import { buildEnvironment, type EnvSource } from "./command/environment.ts";
import type { FolderConfig } from "./command/folders.ts";
import { wayOfFinding } from "./command/processes.ts";
import { findProgram, SYSTEM_PATH } from "./command/program.ts";
import { whyNoBase } from "./command/work_folders.ts";

const MIB = 1_048_576;
const DISK_FAIL_BYTES = 256 * MIB;
const DISK_WARN_BYTES = 2_048 * MIB;
const GIT_TIMEOUT_MS = 10_000;

/** Looks at all of it; one finding each. */
export async function checkMachine(config: CommandConfig): Promise<Check[]> {
  const kinds = Object.values(config.kinds);
  const found: Check[] = [];
  for (const command of kinds) found.push(...await checkCommand(command, config));
  const usesGit = kinds.some((command) => command.clone !== null) ||
    Object.values(config.folders).some((folder) => folder.refresh !== null);
  if (usesGit) found.push(await checkGit());
  for (const [name, folder] of Object.entries(config.folders)) found.push(await checkFolder(name, folder));
  found.push(await checkDisk("work disk", config.work.base), await checkDisk("log disk", config.logs.folder));
  found.push(...await checkWorkFolder(config.work.base), ...await checkTools(kinds));
  return found;
}

/** What the runner itself starts beside the commands, found as it finds it when a run begins. */
async function checkTools(kinds: readonly KindCommand[]): Promise<Check[]> {
  const tools: readonly (readonly [program: string, why: string])[] = [
    ["/bin/sh", "it begins each command's process group"],
    ...kinds.some(({ nice }) => nice > 0) ? [["nice", "a kind of the config sets nice"] as const] : [],
    ...wayOfFinding() === "grep" ? [["grep", "processes that escaped a run are found by it"] as const] : [],
  ];
  const found: string[] = [];
  const missing: Check[] = [];
  for (const [program, why] of tools) {
    const path = await findProgram(program, SYSTEM_PATH);
    if (path !== null) found.push(path);
    else missing.push({ name: "tools", state: "fail", said: `there is no ${program}: install it, as ${why}` });
  }
  return missing.length > 0 ? missing : [{ name: "tools", state: "ok", said: found.join(", ") }];
}

/** Whether the runner would start over its work folder. */
async function checkWorkFolder(base: string): Promise<Check[]> {
  const why = await whyNoBase(base).catch(describeError);
  return why === null ? [] : [{ name: "work folder", state: "fail", said: `${base} cannot be used: ${why}` }];
}

/** Whether a kind's program is there and its login test passes, in the environment its runs have. */
async function checkCommand(command: KindCommand, config: CommandConfig): Promise<Check[]> {
  const name = `command ${command.kind}`;
  let env: Record<string, string>;
  try {
    env = await ownEnvironment({ ...config.env, ...command.env.sources });
  } catch (error) {
    return [{ name, state: "fail", said: describeError(error) }];
  }
  const path = env.PATH ?? SYSTEM_PATH;
  const program = await findProgram(command.program, path);
  if (program === null) {
    const said = `there is no program ${command.program} on its PATH (${path}): install it, or mend argv in the config`;
    return [{ name, state: "fail", said }];
  }
  const there: Check = { name, state: "ok", said: program };
  if (command.loginTest === null) return [there];
  const { argv: [tested = "", ...args], timeLimitMs } = command.loginTest;
  const test = await findProgram(tested, path);
  const login = `login ${command.kind}`;
  if (test === null) return [there, { name: login, state: "fail", said: `there is no program ${tested} to test it` }];
  const ended = await runBriefly(test, args, { env, timeoutMs: timeLimitMs });
  if (ended === null) return [there, { name: login, state: "ok", said: `${tested} says that it is logged in` }];
  const said = `${tested} ${ended}: log in on this host itself, as the runner's user; copy no login from another`;
  return [there, { name: login, state: "fail", said }];
}

/** The variables that do not depend on an item. @throws {CommandFailure} The host lacks one. */
async function ownEnvironment(all: Readonly<Record<string, EnvSource>>): Promise<Record<string, string>> {
  const types: readonly EnvSource["type"][] = ["literal", "inherited", "secret"];
  const sources = Object.fromEntries(Object.entries(all).filter(([, source]) => types.includes(source.type)));
  return await buildEnvironment({ sources, from: null }, NO_RUN, {
    existing: () => Promise.resolve(null),
    own: (name) => Deno.env.get(name),
  });
}

// Sources of these types read no field.
const NO_RUN = { orgId: EMPTY_UUID, host: "", worker: "", fence: 0, run: {} } as Parameters<typeof buildEnvironment>[1];

async function checkGit(): Promise<Check> {
  const git = await findProgram("git", SYSTEM_PATH);
  if (git === null) {
    return { name: "git", state: "fail", said: "there is no git: install it, as the config clones by it" };
  }
  const ended = await runBriefly(git, ["--version"], { env: { PATH: SYSTEM_PATH }, timeoutMs: GIT_TIMEOUT_MS });
  return ended === null
    ? { name: "git", state: "ok", said: git }
    : { name: "git", state: "fail", said: `${git} --version ${ended}` };
}

async function checkFolder(name: string, { path, refresh }: FolderConfig): Promise<Check> {
  const fail = (why: string): Check => ({ name: `folder ${name}`, state: "fail", said: `${path} ${why}` });
  if (!await isFolder(path)) return fail("is no folder: clone or make it, as the runner's user");
  if (refresh === null) return { name: `folder ${name}`, state: "ok", said: path };
  const git = `${path}/.git`;
  if (!await isFolder(git)) {
    return fail("is no git checkout, and the config refreshes it: clone it, as the runner's user");
  }
  const { uid } = await Deno.stat(git);
  if (uid !== null && uid !== Deno.uid()) {
    return fail("is a checkout of another user, which git refuses to refresh: chown -R it to the runner's user");
  }
  const writable = await access(git, constants.W_OK).then(() => true, () => false);
  if (!writable) return fail("cannot be written to, and the config refreshes it: add it to ReadWritePaths of the unit");
  return { name: `folder ${name}`, state: "ok", said: `${path}, brought to ${refresh.ref}` };
}

async function isFolder(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isDirectory, () => false);
}

/** Room on the disk of a folder, which may be still to be made. */
export async function checkDisk(name: string, folder: string): Promise<Check> {
  for (let path = folder;; path = path.slice(0, Math.max(path.lastIndexOf("/"), 1))) {
    try {
      const { bavail, bsize } = await statfs(path);
      return judgeDisk(name, path, bavail * bsize);
    } catch (error) {
      const absent = error instanceof Error && "code" in error && error.code === "ENOENT";
      if (absent && path !== "/") continue;
      return { name, state: "warn", said: `the room on ${folder} cannot be told: ${describeError(error)}` };
    }
  }
}

function judgeDisk(name: string, path: string, freeBytes: number): Check {
  const said = `${Math.floor(freeBytes / MIB)} MiB free on ${path}`;
  if (freeBytes < DISK_FAIL_BYTES) return { name, state: "fail", said: `${said}: too little for a run, make room` };
  return { name, state: freeBytes < DISK_WARN_BYTES ? "warn" : "ok", said };
}

/** Runs a program in a group of its own and ends it whole. Null when it exited with 0, else how it ended. */
async function runBriefly(
  program: string,
  args: readonly string[],
  { env, timeoutMs }: { readonly env: Readonly<Record<string, string>>; readonly timeoutMs: number },
): Promise<string | null> {
  const home = await Deno.makeTempDir({ prefix: "laneway-check-" });
  try {
    const child = new Deno.Command(program, {
      args: [...args],
      env: { HOME: home, TMPDIR: home, ...env },
      clearEnv: true,
      cwd: home,
      detached: true,
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const late = setTimeout(() => endGroup(child.pid), timeoutMs);
    const startedMs = performance.now();
    const said = firstLine(child.stderr);
    const { code, signal } = await child.status;
    clearTimeout(late);
    // What it left behind holds its error stream open.
    endGroup(child.pid);
    const line = await said;
    if (code === 0 && signal === null) return null;
    if (performance.now() - startedMs >= timeoutMs) return `did not end within ${timeoutMs} ms`;
    const how = signal === null ? `exited with ${code}` : `was ended by ${signal}`;
    return [how, line].filter((part) => part !== "").join(": ");
  } catch (error) {
    return `could not be started: ${describeError(error)}`;
  } finally {
    await Deno.remove(home, { recursive: true }).catch(() => {});
  }
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) if (text.length < 2_000) text += decoder.decode(chunk, { stream: true });
  return boundText(text.trim().split("\n")[0] ?? "", 200);
}

function endGroup(leader: number): void {
  try {
    Deno.kill(-leader, "SIGKILL");
  } catch {
    // It has ended, and all of it.
  }
}
