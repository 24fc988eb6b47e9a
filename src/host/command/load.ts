/**
 * Reads a command config: JSON, checked whole before anything of it is used.
 *
 * @module
 */
import { DEFAULT_RETRY } from "../../work/rules.ts";
import { dirname, resolve } from "node:path";
import * as z from "zod";
import { describeError, quoteText } from "../../core/describe_error.ts";
import { parseDuration } from "../../core/duration.ts";
import { LanewayError, SettingsError } from "../../core/errors.ts";
import { wordsOf } from "../../core/shape_words.ts";
import { suggest } from "../../core/suggest.ts";
import { UsageError } from "../../runtime/usage_error.ts";
import { defineKind } from "../../work/kinds.ts";
import type { WorkKind } from "../../work/types.ts";
import { type ArgvEntry, parseArgument } from "./argv.ts";
import { DEFAULT_EXITS, type Ending, type ExitTable } from "./classify.ts";
import type { CommandConfig, KindCommand, LoginTest, PromptConfig } from "./config.ts";
import { configSchema, type RawArgument, type RawConfig, type RawEnding, type RawKind } from "./config_schema.ts";
import { compileVariables, DEFAULT_VARIABLES, readEnvFrom } from "./load_env.ts";
import { type FieldPath, parseField } from "./fields.ts";
import type { FolderConfig } from "./folders.ts";
import { checkCloneUrl, type CloneConfig, hasOwnHost, isRef } from "./git.ts";
import { Place } from "./problem.ts";
import { fieldsOf, literalOf, parseTemplate, type Template } from "./template.ts";

const MIB = 1_048_576;
const DAY_MS = 86_400_000;
/** The checks go down as deep as the file does. */
const MAX_DEPTH = 100;
/** Beyond a command's own limits, until the runtime ends it: it never should. */
const SPARE_MS = 120_000;

/**
 * Reads and checks a command config. Relative paths in it are relative to its folder.
 *
 * @throws {UsageError} It does not fit: names the place in the file, the value and the fix.
 * @throws {SettingsError} It cannot be read.
 */
export async function loadCommandConfig(path: string): Promise<CommandConfig> {
  const absolute = resolve(path);
  let text: string;
  try {
    text = await Deno.readTextFile(absolute);
    const { mode } = await Deno.stat(absolute);
    if (mode !== null && (mode & 0o002) !== 0) {
      throw new UsageError(`Cannot use ${path}: anybody could write to it, and so choose what is run; chmod o-w it`);
    }
  } catch (cause) {
    if (cause instanceof LanewayError) throw cause;
    throw new SettingsError(`Cannot read the command config ${path}: ${describeError(cause)}`, { cause });
  }
  return parseCommandConfig(text, absolute);
}

/**
 * Checks a command config's text.
 *
 * @param path Named in errors; relative paths are relative to its folder.
 * @throws {UsageError} As `loadCommandConfig`.
 */
export function parseCommandConfig(text: string, path: string): CommandConfig {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`Cannot use ${path}: it is no JSON (${describeError(cause)}); mend it there`, { cause });
  }
  if (isDeeper(raw, MAX_DEPTH)) {
    throw new UsageError(`Cannot use ${path}: it is nested deeper than ${MAX_DEPTH} levels; write it flatter`);
  }
  const root = new Place(path, raw);
  const parsed = configSchema.safeParse(raw, { error: wordsOf });
  if (!parsed.success) throw shapeProblem(parsed.error, root);
  return compile(parsed.data, root, path);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((part) => isDeeper(part, levels - 1));
}

/**
 * The kinds of a config, as a worker declares them. A payload may be any object: what a command needs of it is checked
 * when it is run.
 */
export function kindsOf(config: CommandConfig): WorkKind[] {
  return Object.values(config.kinds).map(workKind);
}

/** A config's kind as the runtime knows it. */
export function workKind(command: KindCommand): WorkKind {
  const { kind, timeLimitMs, killGraceMs, retry } = command;
  const timeoutMs = timeLimitMs === 0 ? 0 : timeLimitMs + killGraceMs + SPARE_MS;
  return defineKind(kind, { schema: z.looseObject({}), retry, timeoutMs });
}

function compile(raw: RawConfig, root: Place, path: string): CommandConfig {
  const below = (file: string) => resolve(dirname(path), file);
  const folders: Record<string, FolderConfig> = {};
  for (const [name, folder] of Object.entries(raw.folders ?? {})) {
    const ref = folder.refresh?.ref;
    if (ref !== undefined && !isRef(ref)) {
      throw root.at("folders", name, "refresh", "ref").problem('it is no ref: write for example "origin/main"');
    }
    folders[name] = { path: below(folder.path), refresh: ref === undefined ? null : { ref } };
  }
  const context: Context = { below, folders };
  const kinds: Record<string, KindCommand> = {};
  for (const [name, kind] of Object.entries(raw.kinds)) {
    kinds[name] = compileKind(name, kind, { ...context, place: root.at("kinds", name) });
  }
  if (Object.keys(kinds).length === 0) {
    throw root.at("kinds").problem("it names no kind: a host without one does nothing");
  }
  return {
    path,
    work: { base: below(raw.work.base), keepFailed: raw.work.keepFailed ?? 10 },
    logs: compileLogs(raw.logs, root.at("logs"), below),
    env: { ...DEFAULT_VARIABLES, ...compileVariables(raw.env ?? {}, root.at("env"), context) },
    folders,
    kinds,
  };
}

function compileLogs(raw: RawConfig["logs"], place: Place, below: Context["below"]): CommandConfig["logs"] {
  const { folder, runs = 500, totalMiB = 1_024, perRunMiB = Math.min(16, totalMiB) } = raw;
  if (perRunMiB > totalMiB) {
    throw place.at("perRunMiB").problem(
      "one run may write more than totalMiB: no log but its own would be kept; lower it",
    );
  }
  return { folder: below(folder), runs, totalBytes: totalMiB * MIB, perRunBytes: perRunMiB * MIB };
}

interface Context {
  /** A path of the config, made absolute. */
  readonly below: (file: string) => string;
  readonly folders: Readonly<Record<string, FolderConfig>>;
}

function compileKind(kind: string, raw: RawKind, context: Context & { readonly place: Place }): KindCommand {
  const { place, below } = context;
  const argv = place.at("argv");
  const [first] = raw.argv;
  if (typeof first !== "string" || first === "") throw argv.at(0).problem("the program must be a literal text");
  const program = literalOf(template(first, argv.at(0)));
  if (program === null) throw argv.at(0).problem("the program must be a literal: an item may not choose what is run");
  const command: KindCommand = {
    kind,
    program: program.includes("/") ? below(program) : program,
    args: compileArgv(raw.argv.slice(1), [program], { place: argv, from: 1, below }),
    env: {
      sources: compileVariables(raw.env ?? {}, place.at("env"), context),
      from: raw.envFrom === undefined ? null : readEnvFrom(raw.envFrom, place.at("envFrom")),
    },
    stdin: raw.stdin ?? "none",
    nice: raw.nice ?? 0,
    timeLimitMs: raw.timeLimit === "none" ? 0 : span(raw.timeLimit ?? "1h", place.at("timeLimit"), [1_000, 7 * DAY_MS]),
    killGraceMs: span(raw.killGrace ?? "10s", place.at("killGrace"), [0, 600_000]),
    retry: {
      baseMs: span(raw.retry?.base ?? `${DEFAULT_RETRY.baseMs}ms`, place.at("retry", "base"), [1, DAY_MS]),
      capMs: span(raw.retry?.cap ?? `${DEFAULT_RETRY.capMs}ms`, place.at("retry", "cap"), [1_000, 30 * DAY_MS]),
    },
    workName: template(raw.work?.name ?? "{item.kind}-{item.id}", place.at("work", "name")),
    keepOnFailure: raw.work?.keepOnFailure ?? false,
    clone: raw.clone === undefined ? null : compileClone(raw.clone, place.at("clone")),
    prompt: raw.prompt === undefined ? null : compilePrompt(raw.prompt, place.at("prompt"), context.folders),
    exits: compileExits(raw.exits ?? {}, place.at("exits")),
    loginTest: raw.loginTest === undefined ? null : compileLogin(raw.loginTest, place.at("loginTest")),
  };
  if (command.stdin === "prompt" && command.prompt === null) {
    throw place.at("stdin").problem('the kind has no prompt: give it one, or use "payload" or "none"');
  }
  if (command.prompt === null) refuseWithoutPrompt(command, place);
  try {
    workKind(command);
  } catch (error) {
    throw place.problem(describeError(error));
  }
  return command;
}

/** Fields of a prompt that no run of the kind will have. */
function refuseWithoutPrompt(command: KindCommand, place: Place): void {
  const uses = (entries: readonly ArgvEntry[]): FieldPath[] =>
    entries.flatMap((entry) =>
      entry.type === "optional"
        ? [entry.when, ...uses(entry.entries)]
        : entry.type === "text"
        ? fieldsOf(entry.template)
        : []
    );
  const variables = Object.values(command.env.sources).flatMap((source) =>
    source.type === "field" ? [source.field] : source.type === "template" ? fieldsOf(source.template) : []
  );
  const used = [...uses(command.args), ...variables].find(({ text }) => /^run\.(?:prompt|role)/.test(text));
  if (used !== undefined) throw place.at("argv").problem(`{${used.text}} needs a prompt: give the kind "prompt"`);
}

function compileArgv(
  raw: readonly RawArgument[],
  before: readonly string[],
  { place, from, below }: { place: Place; from: number; below: Context["below"] },
): ArgvEntry[] {
  const seen = [...before];
  return raw.map((entry, i): ArgvEntry => {
    const at = place.at(from + i);
    if (typeof entry === "string") {
      const argument = at.must(parseArgument(entry, seen));
      seen.push(entry);
      return argument;
    }
    if ("file" in entry) return { type: "file", path: below(entry.file), dashAllowed: seen.includes("--") };
    const when = at.at("if").must(parseField(entry.if));
    return { type: "optional", when, entries: compileArgv(entry.args, seen, { place: at.at("args"), from: 0, below }) };
  });
}

function compileClone(raw: NonNullable<RawKind["clone"]>, place: Place): CloneConfig {
  const url = template(raw.url, place.at("url"));
  const literal = literalOf(url);
  if (literal !== null) place.at("url").must(checkCloneUrl(literal, true));
  else if (!hasOwnHost(url) && raw.hosts === undefined) {
    throw place.problem(
      'the item would choose the host: write "https://HOST/{…}", or name those it may choose in hosts',
    );
  } else if (/^[a-z]+:\/\/[^/]*@/.test(raw.url) && !raw.url.startsWith("ssh://")) {
    throw place.at("url").problem("it holds credentials: leave them out and let a credential helper give them");
  }
  const ref = raw.ref === undefined ? null : template(raw.ref, place.at("ref"));
  const literalRef = ref === null ? null : literalOf(ref);
  if (literalRef !== null && !isRef(literalRef)) throw place.at("ref").problem("it is no name of a branch or tag");
  return {
    url,
    ref,
    hosts: raw.hosts?.map((host) => host.toLowerCase()) ?? null,
    credentialHelper: raw.credentialHelper ?? null,
  };
}

function compilePrompt(
  raw: NonNullable<RawKind["prompt"]>,
  place: Place,
  folders: Context["folders"],
): PromptConfig {
  if (!Object.hasOwn(folders, raw.folder)) {
    throw place.at("folder").problem(`there is no such folder: name it under folders (${names(folders)})`);
  }
  if (raw.roleFile !== undefined && raw.role === undefined) {
    throw place.at("roleFile").problem('it needs "role", the field that names a role, for example "payload.role"');
  }
  return {
    folder: raw.folder,
    file: template(raw.file, place.at("file")),
    role: raw.role === undefined ? null : place.at("role").must(parseField(raw.role)),
    roleFile: raw.roleFile === undefined ? null : template(raw.roleFile, place.at("roleFile")),
  };
}

function compileExits(raw: Readonly<Record<string, RawEnding>>, place: Place): ExitTable {
  const codes = new Map(DEFAULT_EXITS.codes);
  const rest: { other: Ending; signal: Ending; timeout: Ending } = { ...DEFAULT_EXITS };
  for (const [name, value] of Object.entries(raw)) {
    const at = place.at(name);
    const ending = compileEnding(value, at);
    const done = ending.outcome === "done";
    if (name === "signal" || name === "timeout") {
      if (done) throw at.problem("a command that was killed is never done: use retry, final or defer");
      rest[name] = ending;
    } else if (name === "other") {
      if (done) {
        throw at.problem("it takes in deaths that a shell reports as 128 and more: name each code that is done");
      }
      rest.other = ending;
    } else {
      const [from, to] = codeRange(name, at);
      if (done && to > 128) throw at.problem("a shell reports a death by signal as 128 and more: that is never done");
      for (let code = from; code <= to; code++) codes.set(code, ending);
    }
  }
  return { ...rest, codes: new Map([...codes].sort(([a], [b]) => a - b)) };
}

function codeRange(name: string, at: Place): readonly [number, number] {
  const match = /^(\d{1,3})(?:-(\d{1,3}))?$/.exec(name);
  const from = Number(match?.[1]);
  const to = Number(match?.[2] ?? match?.[1]);
  if (match !== null && from <= to && to <= 255) return [from, to];
  throw at.problem('an end is an exit code 0 to 255, a range "64-78", "other", "signal" or "timeout"');
}

function compileEnding(raw: RawEnding, place: Place): Ending {
  if (typeof raw === "string") return { outcome: raw, afterMs: 0, note: null };
  if ((raw.outcome === "defer") !== (raw.after !== undefined)) {
    throw place.problem('"after" belongs to "defer": write {"outcome": "defer", "after": "5m"}');
  }
  const afterMs = raw.after === undefined ? 0 : span(raw.after, place.at("after"), [1_000, 30 * DAY_MS]);
  return { outcome: raw.outcome, afterMs, note: raw.note ?? null };
}

function compileLogin(raw: NonNullable<RawKind["loginTest"]>, place: Place): LoginTest {
  return { argv: raw.argv, timeLimitMs: span(raw.timeLimit ?? "60s", place.at("timeLimit"), [1_000, 600_000]) };
}

function template(text: string, place: Place): Template {
  return place.must(parseTemplate(text));
}

function span(text: string, place: Place, [min, max]: readonly [number, number]): number {
  let ms: number;
  try {
    ms = parseDuration(text, place.name);
  } catch {
    throw place.problem('it is no duration: write a number and a unit (ms, s, m, h, d), for example "30s"');
  }
  if (ms < min || ms > max) throw place.problem(`it must be from ${min} ms to ${max} ms`);
  return ms;
}

function shapeProblem(error: z.ZodError, root: Place): UsageError {
  const [issue, ...more] = error.issues;
  if (issue === undefined) return root.problem("it does not fit");
  const place = root.at(...issue.path);
  const problem = place.problem(whyShape(issue));
  return more.length === 0 ? problem : new UsageError(`${problem.message} (and ${more.length} more)`);
}

function whyShape(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] ?? "";
    const meant = suggest(key, KEYS);
    return `it has no key ${quoteText(key)}${meant === null ? ": leave it out" : `: did you mean "${meant}"?`}`;
  }
  return issue.message;
}

// Every key the schema knows, for "did you mean".
const KEYS = [
  ...Object.keys(configSchema.shape),
  ...Object.keys(configSchema.shape.kinds.valueType.shape),
  ...["base", "keepFailed", "folder", "runs", "totalMiB", "perRunMiB", "path", "refresh", "ref", "name"],
  ...[
    "keepOnFailure",
    "url",
    "hosts",
    "credentialHelper",
    "file",
    "role",
    "roleFile",
    "from",
    "allow",
    "optional",
    "else",
  ],
];

function names(of: Readonly<Record<string, unknown>>): string {
  const all = Object.keys(of);
  return all.length === 0 ? "there is none yet" : all.join(", ");
}
