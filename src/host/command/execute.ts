/**
 * Runs one program in a process group of its own, reads all it writes, and ends the group as a whole.
 *
 * `Deno.Command` does it all (`detached` makes a new session, `Deno.kill` takes a negative id), so `node:child_process`
 * is not needed. Its `output()` is not used: it keeps everything in memory, and waits for grandchildren that hold the pipe.
 *
 * @module
 */
import type { Clock } from "../../core/clock.ts";
import { describeError } from "../../core/describe_error.ts";
import type { CommandEnd } from "./classify.ts";
import { CommandFailure } from "./failure.ts";
import { killMarked, RUN_MARK, signalGroup } from "./processes.ts";
import type { RunLog } from "./run_log.ts";
import type { RunStop } from "./stop.ts";
import { Tail, type TailText } from "./tail.ts";

/** What is run. */
export interface ExecSpec {
  /** The program's absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  /** All of its environment but the run's mark. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Where its standard input is read from; null: it is empty. */
  readonly stdinFile: string | null;
  /** What is run before it, `/usr/bin/nice -n 10`; empty for nothing. Each becomes the next by exec. */
  readonly before: readonly string[];
  /** Marks its processes: `RUNNER/RUN`. */
  readonly mark: string;
}

/** How it ended, and the end of what it wrote. */
export interface ExecResult extends CommandEnd {
  readonly stdout: TailText;
  readonly stderr: TailText;
  readonly durationMs: number;
}

/** What `execute` works with. */
export interface ExecOptions {
  readonly stop: RunStop;
  readonly log: RunLog;
  readonly clock: Clock;
}

/**
 * The first process of a group: leaves a guard behind that ends the group when the runner dies (its end of the pipe
 * closes, however it dies), and becomes the program. A fixed text: the program and its arguments are "$@", which no shell
 * reads. The guard is nobody's child, so that a program that waits for all its children does not wait for it, and ignores
 * what asks the group to end: while it lives, the group's id cannot become another's. Its one variable has a name that no
 * config may give: of another, whatever the command's environment holds under it would be replaced.
 */
const GUARDED = `LANEWAY_STDIN=$1
shift
exec 3<&0
( ( trap '' TERM INT HUP QUIT USR1 USR2 ALRM PIPE TSTP; read -r _ <&3; kill -KILL 0 ) >/dev/null 2>&1 </dev/null & )
unset PWD OLDPWD SHLVL
exec "$@" <"$LANEWAY_STDIN" 3<&-`;

const FIRST_BUFFER_BYTES = 4_096;
const BUFFER_BYTES = 65_536;
/** How long output that is left in the pipes is read once every process of the run has been ended. */
const LAST_OUTPUT_MS = 1_000;

/**
 * Runs a program to its end. It ends at its own exit, whatever holds its output open then: the rest of its group is
 * ended with it. When `stop` asks, the group is sent TERM and, at `stop.hard`, KILL.
 *
 * @throws {CommandFailure} `not_started`: it could not be started. Nothing runs then.
 */
export async function execute(spec: ExecSpec, options: ExecOptions): Promise<ExecResult> {
  const { stop, clock } = options;
  const startedMs = clock.monotonic();
  const child = spawn(spec);
  const softly = () => signalGroup(child.pid, "SIGTERM");
  const hardly = () => signalGroup(child.pid, "SIGKILL");
  stop.soft.addEventListener("abort", softly, { once: true });
  stop.hard.addEventListener("abort", hardly, { once: true });
  if (stop.soft.aborted) softly();
  if (stop.hard.aborted) hardly();
  const stdout = new Drain(child.stdout, options.log);
  const stderr = new Drain(child.stderr, options.log);
  try {
    const status = await child.status;
    const durationMs = clock.monotonic() - startedMs;
    const stopped = stop.reason;
    // Asked to end, grandchildren have the same time as their parent; else they end with it.
    if (stopped !== null && !stop.hard.aborted) await endOf([stdout, stderr], stop.hard);
    hardly();
    await killMarked(spec.mark);
    await lastOutput([stdout, stderr], clock);
    return {
      exitCode: status.signal === null ? status.code : null,
      signal: status.signal,
      stopped,
      stdout: stdout.tail.read(),
      stderr: stderr.tail.read(),
      durationMs: Math.round(durationMs),
    };
  } finally {
    stop.soft.removeEventListener("abort", softly);
    stop.hard.removeEventListener("abort", hardly);
    await child.stdin.close().catch(() => {});
  }
}

function spawn(spec: ExecSpec): Deno.ChildProcess {
  try {
    return new Deno.Command("/bin/sh", {
      args: ["-c", GUARDED, "laneway", spec.stdinFile ?? "/dev/null", ...spec.before, spec.program, ...spec.args],
      cwd: spec.cwd,
      env: { ...spec.env, [RUN_MARK]: spec.mark },
      clearEnv: true,
      detached: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (cause) {
    throw new CommandFailure("not_started", "retry", `cannot start ${spec.program}: ${describeError(cause)}`, {
      cause,
    });
  }
}

/** Resolves when both streams have ended, or when `stop` aborts. */
function endOf(drains: readonly Drain[], stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      stop.removeEventListener("abort", finish);
      resolve();
    };
    stop.addEventListener("abort", finish, { once: true });
    void Promise.all(drains.map(({ ended }) => ended)).then(finish);
    if (stop.aborted) finish();
  });
}

/** Reads what is left in the pipes; a process that escaped and holds one open is not waited for. */
async function lastOutput(drains: readonly Drain[], clock: Clock): Promise<void> {
  const read = new AbortController();
  const all = Promise.all(drains.map(({ ended }) => ended)).then(() => read.abort());
  await clock.sleep(LAST_OUTPUT_MS, read.signal);
  for (const drain of drains) drain.cancel();
  await all;
}

/** Reads a stream to its end into a tail and a log, with one buffer. */
class Drain {
  readonly tail = new Tail();
  /** Settles when the stream has ended or was given up. Never rejects. */
  readonly ended: Promise<void>;
  readonly #reader: ReadableStreamBYOBReader;
  readonly #log: RunLog;

  constructor(stream: ReadableStream<Uint8Array>, log: RunLog) {
    this.#log = log;
    this.#reader = stream.getReader({ mode: "byob" });
    this.ended = this.#read();
  }

  /** Gives up on what may still come. */
  cancel(): void {
    void this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<void> {
    let buffer = new Uint8Array(FIRST_BUFFER_BYTES);
    try {
      while (true) {
        const { value, done } = await this.#reader.read(buffer);
        if (done || value === undefined) return;
        this.tail.push(value);
        await this.#log.write(value);
        // The buffer went through the stream and came back as another view. Most children say little, and what is not
        // allocated is no garbage: it is large only for those that fill a small one.
        const full = value.length === FIRST_BUFFER_BYTES && value.buffer.byteLength === FIRST_BUFFER_BYTES;
        buffer = full ? new Uint8Array(BUFFER_BYTES) : new Uint8Array(value.buffer);
      }
    } catch {
      // The pipe broke: what came is what there is.
    }
  }
}
