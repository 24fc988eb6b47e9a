/**
 * One measured process, driven by lines of JSON; its processor time and memory are read from outside.
 *
 * @module
 */
import { TextLineStream } from "./text_lines.ts";

/** What the kernel counts for a process. */
export interface ProcessUse {
  /** User and system time so far, milliseconds, in steps of 10. */
  readonly cpuMs: number;
  /** The most it ever held, MiB. */
  readonly peakMiB: number;
}

const TICK_MS = 10;
// A command that takes longer is stuck: the longest is a drain at a few hundred items a second.
const ANSWER_MS = 180_000;

/** A child process that answers commands. Killed by `end`, and by the kernel when the bench itself is killed. */
export class BenchProcess {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  readonly #name: string;

  constructor(name: string, program: string, args: readonly string[], cwd: string) {
    this.#name = name;
    this.#child = new Deno.Command(program, {
      args: [...args],
      cwd,
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#writer = this.#child.stdin.getWriter();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream()).getReader();
  }

  /** Says one command and waits for its answer. @throws {Error} The process failed at it, ended, or gave no answer. */
  async ask(command: string, details: Readonly<Record<string, unknown>> = {}): Promise<Record<string, unknown>> {
    await this.#writer.write(new TextEncoder().encode(JSON.stringify({ do: command, ...details }) + "\n"));
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(this.#failed(command, `no answer within ${ANSWER_MS} ms`)), ANSWER_MS);
    try {
      const { value, done } = await Promise.race([this.#lines.read(), late.promise]);
      if (done || value === undefined) throw this.#failed(command, "the process ended");
      const answer = JSON.parse(value) as Record<string, unknown>;
      if (answer.ok !== true) throw this.#failed(command, String(answer.error));
      return answer;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What it used so far. */
  use(): ProcessUse {
    const status = Deno.readTextFileSync(`/proc/${this.#child.pid}/status`);
    return {
      cpuMs: cpuTicks(this.#child.pid) * TICK_MS,
      peakMiB: Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024,
    };
  }

  /** Ends it at once: what it held was counted before. */
  async end(): Promise<void> {
    await this.#writer.close().catch(() => {});
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#child.status;
    await this.#lines.cancel().catch(() => {});
  }

  #failed(command: string, why: string): Error {
    return new Error(`${this.#name} failed at ${command}: ${why}`);
  }
}

/** User and system time of a process and, if asked, of its children that ended; 0 when it is gone. */
export function cpuTicks(pid: number, options: { readonly endedChildren?: boolean } = {}): number {
  let text: string;
  try {
    text = Deno.readTextFileSync(`/proc/${pid}/stat`);
  } catch {
    return 0;
  }
  // The name in parentheses may hold anything; the fields behind it are numbers.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ").map(Number);
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
  return user + system + (options.endedChildren ? childUser + childSystem : 0);
}
