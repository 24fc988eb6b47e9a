/**
 * One run of one item's command, from its work directory to its outcome.
 *
 * @module
 */
import type { Clock } from "../../core/clock.ts";
import type { OpContext } from "../../core/context.ts";
import { describeError } from "../../core/describe_error.ts";
import type { Logger } from "../../core/log.ts";
import type { WorkItem, WorkRun } from "../../work/types.ts";
import type { AttemptRecord, Notifier } from "../types.ts";
import { buildArgv, checkTotal } from "./argv.ts";
import { type Classified, classify } from "./classify.ts";
import type { CommandConfig, KindCommand, PromptConfig } from "./config.ts";
import { buildEnvironment } from "./environment.ts";
import { type ExecResult, execute } from "./execute.ts";
import { CommandFailure, invalidItem } from "./failure.ts";
import { type FieldScope, readField } from "./fields.ts";
import type { Folders } from "./folders.ts";
import { clone, cloneRef, cloneUrl, type GitRun } from "./git.ts";
import { findProgram, SYSTEM_PATH } from "./program.ts";
import type { LogFolder, RunLog } from "./run_log.ts";
import { slug } from "./safe_path.ts";
import type { RunStop } from "./stop.ts";
import { NO_TAIL, type TailText } from "./tail.ts";
import { fill } from "./template.ts";
import type { RunFolder, WorkFolders } from "./work_folders.ts";

/** What commands are run with. */
export interface CommandsOptions {
  /** What is run. */
  readonly config: CommandConfig;
  /** The name of the machine's row in `queue.hosts`. */
  readonly host: string;
  /** Which runner: `host-runner@machine/1234`. */
  readonly worker: string;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** Stores a row per attempt. Best effort: it is not waited for, and losing one stops nothing. */
  readonly recordAttempt: (attempt: AttemptRecord) => Promise<void>;
  /** Told of what is the host's fault: a program that is missing, a clone or a prompt that fails. */
  readonly notifier?: Notifier;
  /** A variable of the runner's own environment, for `fromEnv`. Default the process's. */
  readonly ownEnv?: (name: string) => string | undefined;
}

/** What every handler of a config shares. */
export interface CommandParts extends CommandsOptions {
  readonly work: WorkFolders;
  readonly files: Folders;
  readonly logs: LogFolder;
}

/** What is run. */
export interface CommandRun {
  readonly ctx: OpContext;
  readonly item: WorkItem;
  readonly run: WorkRun;
  readonly stop: RunStop;
  readonly command: KindCommand;
}

/** How a run ended. */
export interface Finished {
  readonly is: Classified;
  /** For the item's error or note; begins with the reason. */
  readonly message: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: TailText;
  readonly stderr: TailText;
}

const ROLE = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const QUOTED_CHARS = 500;

/** Runs an item's command. Never throws; by its end no process of it runs, and its work directory is removed or kept. */
export async function runCommand(what: CommandRun, parts: CommandParts): Promise<Finished> {
  const { command } = what;
  let folder: RunFolder | null = null;
  let finished: Finished;
  try {
    const scope = scopeOf(what, parts);
    // What the item lacks is told before anything is made or cloned for it.
    await prepare(what, { ...scope, run: STAND_INS }, parts);
    folder = await parts.work.make(fill(command.workName, scope, slug));
    finished = await runIn(folder, what, { scope, parts });
  } catch (error) {
    finished = { ...classifyFailure(error, what), exitCode: null, signal: null, stdout: NO_TAIL, stderr: NO_TAIL };
  }
  const failed = finished.is.outcome === "retry" || finished.is.outcome === "final";
  if (folder !== null) await parts.work.end(folder, failed && command.keepOnFailure);
  return finished;
}

/** Stand for what only a begun run has, while the item itself is checked. */
const STAND_INS = { workDir: "/", payloadFile: "/", promptFile: "/", prompt: "prompt", role: "role" };

async function runIn(
  folder: RunFolder,
  what: CommandRun,
  { scope, parts }: { readonly scope: FieldScope; readonly parts: CommandParts },
): Promise<Finished> {
  const { command, item, stop } = what;
  const { clock } = parts;
  const log = await parts.logs.open(logName(item, folder, clock));
  try {
    await log.note(`${item.kind} ${item.id}, attempt ${item.attempts}, by ${parts.worker}`);
    await writePayload(folder, item);
    const base = await baseEnvironment(folder, scope, parts);
    const git: GitRun = { env: base, cwd: folder.work, mark: folder.mark, stop, log, clock };
    const cwd = await makeClone(command, { scope, folder, git });
    const begun = await withPrompt(command.prompt, { scope, folder, git, parts });
    const full = { ...begun, run: { ...begun.run, workDir: cwd, payloadFile: folder.payloadFile } };
    const { argv, env } = await prepare(what, full, parts);
    const path = env.PATH ?? SYSTEM_PATH;
    const program = await findProgram(command.program, path);
    if (program === null) throw noProgram(command.program, path);
    if (stop.soft.aborted) {
      throw new CommandFailure("not_started", "retry", "the run was ended before its command began");
    }
    const result = await execute({
      program,
      args: argv,
      env: { HOME: folder.temporary, TMPDIR: folder.temporary, ...env, ...ownVariables(what, full, folder) },
      cwd,
      stdinFile: command.stdin === "payload"
        ? folder.payloadFile
        : command.stdin === "prompt"
        ? folder.promptFile
        : null,
      before: await niced(command.nice),
      mark: folder.mark,
    }, { stop, log, clock });
    return finish(result, command);
  } finally {
    await closeLog(log, stop);
  }
}

function scopeOf({ ctx, item, run }: CommandRun, { host, worker }: CommandParts): FieldScope {
  return { item, orgId: ctx.orgId, host, worker, fence: run.fence, run: {} };
}

/** The arguments and variables a config makes of an item. */
async function prepare(
  { command }: CommandRun,
  scope: FieldScope,
  parts: CommandParts,
): Promise<{ argv: string[]; env: Record<string, string> }> {
  const argv = await buildArgv(command.args, scope);
  const recipe = { sources: { ...parts.config.env, ...command.env.sources }, from: command.env.from };
  const env = await buildEnvironment(recipe, scope, worldOf(parts));
  checkTotal(argv, env);
  if (command.clone !== null) {
    cloneUrl(command.clone, scope);
    cloneRef(command.clone, scope);
  }
  return { argv, env };
}

/** What git runs with: the variables of every kind. */
async function baseEnvironment(
  folder: RunFolder,
  scope: FieldScope,
  parts: CommandParts,
): Promise<Record<string, string>> {
  const run = { ...STAND_INS, workDir: folder.work, payloadFile: folder.payloadFile };
  const env = await buildEnvironment({ sources: parts.config.env, from: null }, { ...scope, run }, worldOf(parts));
  return { HOME: folder.temporary, TMPDIR: folder.temporary, ...env };
}

function worldOf(parts: CommandParts): Parameters<typeof buildEnvironment>[2] {
  return {
    existing: ({ folder, file }) => parts.files.existing(folder, file),
    own: parts.ownEnv ?? ((name) => Deno.env.get(name)),
  };
}

/** What Laneway tells every command. */
function ownVariables({ ctx, item, run }: CommandRun, scope: FieldScope, folder: RunFolder): Record<string, string> {
  return {
    LANEWAY_ITEM_ID: item.id,
    LANEWAY_KIND: item.kind,
    LANEWAY_ATTEMPT: String(item.attempts),
    LANEWAY_LANE: item.lane,
    LANEWAY_ORG_ID: ctx.orgId,
    LANEWAY_WORKER: scope.worker,
    LANEWAY_FENCE: String(run.fence),
    LANEWAY_PAYLOAD_FILE: folder.payloadFile,
    ...(scope.run.promptFile === undefined ? {} : { LANEWAY_PROMPT_FILE: scope.run.promptFile }),
  };
}

async function writePayload(folder: RunFolder, item: WorkItem): Promise<void> {
  try {
    await Deno.writeTextFile(folder.payloadFile, `${JSON.stringify(item.payload)}\n`, { mode: 0o600, createNew: true });
  } catch (cause) {
    throw new CommandFailure("workdir", "retry", `cannot write the payload: ${describeError(cause)}`, { cause });
  }
}

/** Clones when the kind has it so; where the command runs. */
async function makeClone(
  command: KindCommand,
  { scope, folder, git }: { scope: FieldScope; folder: RunFolder; git: GitRun },
): Promise<string> {
  if (command.clone === null) return folder.work;
  const url = cloneUrl(command.clone, scope);
  await clone({ url, ref: cloneRef(command.clone, scope), config: command.clone }, folder.work, git);
  return folder.work;
}

/** The scope with the prompt in it, copied into the run's folder: the folder it comes from may be refreshed meanwhile. */
async function withPrompt(
  prompt: PromptConfig | null,
  { scope, folder, git, parts }: { scope: FieldScope; folder: RunFolder; git: GitRun; parts: CommandParts },
): Promise<FieldScope> {
  if (prompt === null) return scope;
  const role = roleOf(prompt, scope);
  const named = role === null ? scope : { ...scope, run: { ...scope.run, role } };
  const roleFiles = role === null || prompt.roleFile === null ? [] : [fill(prompt.roleFile, named)];
  const found = await parts.files.read(prompt.folder, [...roleFiles, fill(prompt.file, named)], git);
  try {
    await Deno.writeTextFile(folder.promptFile, found.text, { mode: 0o600, createNew: true });
  } catch (cause) {
    throw new CommandFailure("workdir", "retry", `cannot write the prompt: ${describeError(cause)}`, { cause });
  }
  return { ...named, run: { ...named.run, prompt: found.text, promptFile: folder.promptFile } };
}

function roleOf({ role }: PromptConfig, scope: FieldScope): string | null {
  const value = role === null ? null : readField(scope, role);
  if (value === null || value === "") return null;
  if (ROLE.test(value)) return value;
  throw invalidItem(`the role ${JSON.stringify(value.slice(0, 100))} is no name: letters, digits, dash, underscore`);
}

async function niced(nice: number): Promise<string[]> {
  if (nice === 0) return [];
  const program = await findProgram("nice", SYSTEM_PATH);
  if (program === null) throw new CommandFailure("not_started", "retry", 'there is no program "nice" on this host');
  return [program, "-n", String(nice)];
}

function noProgram(name: string, path: string): CommandFailure {
  const where = name.includes("/") ? "no program is there" : `none of ${path} has it`;
  return new CommandFailure("not_started", "retry", `cannot start "${name}": ${where}`);
}

function finish(result: ExecResult, command: KindCommand): Finished {
  const is = classify(result, command.exits);
  const { exitCode, signal, stdout, stderr } = result;
  return { is, message: messageOf(is, result, command), exitCode, signal, stdout, stderr };
}

function messageOf({ reason, note }: Classified, result: ExecResult, { program }: KindCommand): string {
  const name = program.split("/").at(-1) ?? program;
  const how = result.signal !== null ? `was ended by ${result.signal}` : `exited with ${result.exitCode}`;
  const said = (result.stderr.text.trim() || result.stdout.text.trim()).slice(-QUOTED_CHARS);
  const parts = [
    `${reason === null ? "" : `${reason}: `}${name} ${how} after ${(result.durationMs / 1000).toFixed(1)} s`,
    ...(note === null ? [] : [note]),
    ...(said === "" ? [] : [`it said last: ${said}`]),
  ];
  return parts.join("; ");
}

function logName(item: WorkItem, folder: RunFolder, clock: Clock): string {
  const time = new Date(clock.now()).toISOString().replace(/[:.-]/g, "");
  return `${time}-${item.kind}-${item.id}-${item.attempts}.${folder.path.split(".").at(-1)}.log`;
}

async function closeLog(log: RunLog, stop: RunStop): Promise<void> {
  if (stop.reason !== null) await log.note(`ended by the runner: ${stop.reason}`);
  await log.close();
}

/** How a failed step is read. A run that was to end anyway failed of that. */
function classifyFailure(error: unknown, { stop, command }: CommandRun): Pick<Finished, "is" | "message"> {
  const failure = error instanceof CommandFailure
    ? error
    : new CommandFailure("not_started", "retry", describeError(error), { cause: error });
  const is = stop.reason === null
    ? { outcome: failure.outcome, reason: failure.reason, afterMs: 0, note: null }
    : classify({ exitCode: null, signal: null, stopped: stop.reason }, command.exits);
  return { is, message: `${is.reason ?? "timed_out"}: ${failure.message}` };
}
