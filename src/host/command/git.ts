/**
 * Clones and refreshes by git: without a prompt, without credentials in a URL, and never with an item's value as an
 * option.
 *
 * @module
 */
import type { Clock } from "../../core/clock.ts";
import { type ExecResult, execute } from "./execute.ts";
import { CommandFailure, invalidItem } from "./failure.ts";
import type { FieldScope } from "./fields.ts";
import { findProgram, SYSTEM_PATH } from "./program.ts";
import type { RunLog } from "./run_log.ts";
import { isPlainPath, plainPath } from "./safe_path.ts";
import type { RunStop } from "./stop.ts";
import { fill, leadOf, literalOf, type Template } from "./template.ts";

/** Where a run's clone comes from. */
export interface CloneConfig {
  readonly url: Template;
  /** Hosts an item may name; null when the URL's host is the config's own. */
  readonly hosts: readonly string[] | null;
  /** A branch or tag to check out; null: the remote's own. */
  readonly ref: Template | null;
  /** Given to git as `credential.helper`; null: as git is configured. */
  readonly credentialHelper: string | null;
}

/** What git runs in. */
export interface GitRun {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly mark: string;
  readonly stop: RunStop;
  readonly log: RunLog;
  readonly clock: Clock;
}

const SCP = /^([A-Za-z_][\w.-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):(?![/:])([^:]+)$/;
const REF = /^(?![-/.])(?!.*(?:\.\.|\/\/|@\{|\.lock(?:\/|$)|[/.]$))[A-Za-z0-9._/@+-]{1,200}$/;
// No terminal, no window and no ssh question: what cannot be had without one fails at once.
const QUIET = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "",
  SSH_ASKPASS: "",
  SSH_ASKPASS_REQUIRE: "never",
  GCM_INTERACTIVE: "never",
  GIT_SSH_COMMAND: "ssh -oBatchMode=yes",
  GIT_ALLOW_PROTOCOL: "https:ssh",
};

/** Whether this is the name of a branch, a tag or a remote's branch that git could not take for an option. */
export function isRef(ref: string): boolean {
  return REF.test(ref);
}

/**
 * Checks a URL that is cloned from.
 *
 * @param local Whether it may be a folder of this host: only where the config says so itself.
 * @returns Its host (empty for a folder), or why it cannot be used.
 */
export function checkCloneUrl(url: string, local: boolean): { readonly host: string } | string {
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u0020\u007f\\]/.test(url)) return "it holds a blank, a control code or a backslash";
  const scp = SCP.exec(url);
  if (scp !== null) return { host: (scp[2] ?? "").toLowerCase() };
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return "it is no URL: write https://HOST/PATH or git@HOST:PATH";
  }
  if (parsed.password !== "" || (parsed.username !== "" && parsed.protocol !== "ssh:")) {
    return "it holds credentials: leave them out and let a credential helper give them";
  }
  if (parsed.search !== "" || parsed.hash !== "") return "it has a query, where a key could stand: leave it out";
  if (parsed.protocol === "file:" && local) return { host: "" };
  if (parsed.protocol !== "https:" && parsed.protocol !== "ssh:") return "only https and ssh are cloned from";
  if (parsed.hostname === "" || parsed.hostname.startsWith("-")) return "it names no host";
  return { host: parsed.hostname.toLowerCase() };
}

/** Whether the config itself says which host a template is cloned from: its text up to the path is literal. */
export function hasOwnHost(url: Template): boolean {
  return literalOf(url) !== null ||
    /^(?:(?:https|ssh):\/\/[^/{]+\/|file:\/\/\/|[\w.-]+@[A-Za-z0-9.-]+:)/.test(leadOf(url));
}

/**
 * The URL of an item's clone.
 *
 * @throws {CommandFailure} `invalid_item`: it leads elsewhere than the config allows. The message holds no credentials.
 */
export function cloneUrl(config: CloneConfig, scope: FieldScope): string {
  const own = hasOwnHost(config.url);
  const url = fill(config.url, scope, (value, field) => own ? plainPath(value, field.text) : value);
  const checked = checkCloneUrl(url, leadOf(config.url).startsWith("file:"));
  if (typeof checked === "string") throw invalidItem(`cannot clone from the URL it gives: ${checked}`);
  if (config.hosts !== null && !config.hosts.includes(checked.host)) {
    throw invalidItem(`cannot clone from ${JSON.stringify(checked.host)}: the hosts are ${config.hosts.join(", ")}`);
  }
  return url;
}

/** The ref of an item's clone; null for the remote's own. @throws {CommandFailure} `invalid_item`. */
export function cloneRef(config: CloneConfig, scope: FieldScope): string | null {
  if (config.ref === null) return null;
  const ref = fill(config.ref, scope);
  if (!isRef(ref) || !isPlainPath(ref.replaceAll(/[@+]/g, "-"))) {
    throw invalidItem(`${JSON.stringify(ref.slice(0, 100))} is no name of a branch or tag`);
  }
  return ref;
}

/** Clones into `into`, which must not exist or be empty. @throws {CommandFailure} `clone`. */
export async function clone(
  what: { readonly url: string; readonly ref: string | null; readonly config: CloneConfig },
  into: string,
  run: GitRun,
): Promise<void> {
  const { url, ref, config } = what;
  const helper = config.credentialHelper === null
    ? []
    // The empty one first: it forgets those that git is configured with.
    : ["-c", "credential.helper=", "-c", `credential.helper=${config.credentialHelper}`];
  const args = [...helper, "clone", "--quiet", "--depth=1", "--no-single-branch", "--", url, into];
  await git(args, run, { reason: "clone", local: url.startsWith("file:") });
  if (ref === null) return;
  await git(["-C", into, "checkout", "--quiet", ref, "--"], run, { reason: "clone", local: false });
}

/** Fetches, and resets the checkout hard to a ref. @throws {CommandFailure} `prompt`. */
export async function refresh(path: string, ref: string, run: GitRun): Promise<void> {
  await git(["-C", path, "fetch", "--quiet"], run, { reason: "prompt", local: true });
  await git(["-C", path, "reset", "--quiet", "--hard", ref, "--"], run, { reason: "prompt", local: true });
}

async function git(
  args: readonly string[],
  run: GitRun,
  { reason, local }: { readonly reason: "clone" | "prompt"; readonly local: boolean },
): Promise<void> {
  const program = await findProgram("git", run.env.PATH ?? SYSTEM_PATH) ?? await findProgram("git", SYSTEM_PATH);
  if (program === null) throw new CommandFailure(reason, "retry", "there is no git on this host: install it");
  const allowed = local ? { GIT_ALLOW_PROTOCOL: `${QUIET.GIT_ALLOW_PROTOCOL}:file` } : {};
  const result = await execute({
    program,
    args,
    env: { ...run.env, ...QUIET, ...allowed },
    cwd: run.cwd,
    stdinFile: null,
    before: [],
    mark: run.mark,
  }, run);
  if (result.exitCode === 0 && result.stopped === null) return;
  const step = args.find((arg) => ["clone", "checkout", "fetch", "reset"].includes(arg)) ?? "git";
  throw new CommandFailure(reason, "retry", `git ${step} ${howEnded(result)}`);
}

function howEnded({ exitCode, signal, stopped, stderr }: ExecResult): string {
  const end = stopped !== null ? `was ended: ${stopped}` : signal ?? `exited with ${exitCode}`;
  const said = stderr.text.trim().slice(-500);
  return said === "" ? end : `${end}: ${said}`;
}
