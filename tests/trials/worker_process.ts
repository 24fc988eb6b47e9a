/**
 * A worker process in a test's hands: started with the trials' program or another, watched through its log and its probes,
 * and certainly gone afterwards.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { waitFor } from "../support/wait_for.ts";

/** One log line, parsed. */
export interface LogLine {
  readonly ts: string;
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

/** One answer of a probe; `status` 0 when there was none. */
export interface ProbeAnswer {
  readonly status: number;
  readonly body: string;
}

const PROGRAM = fileURLToPath(new URL("./trial_worker.ts", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));

/** Flags of every trial unless a test gives its own later in the list. */
const FLAGS = ["--http-port", "0", "--log-format", "json", "--heartbeat", "1s"];

/** A started worker. */
export class WorkerProcess {
  readonly lines: LogLine[] = [];
  /** What came on standard error and is no log line: an uncaught error would be here. */
  readonly strayLines: string[] = [];
  readonly status: Promise<Deno.CommandStatus>;
  readonly #child: Deno.ChildProcess;
  readonly #reading: Promise<void>;
  #ended: Deno.CommandStatus | null = null;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#reading = this.#read();
    this.status = child.status.then((status) => this.#ended = status);
  }

  /** Spawns a worker; resolves at once. */
  static spawn(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    program?: string,
  ): Promise<WorkerProcess> {
    return WorkerProcess.command([...FLAGS, ...args], env, program);
  }

  /** Spawns the program, by default that of the trials, with just these arguments. */
  static async command(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    program = PROGRAM,
  ): Promise<WorkerProcess> {
    const command = [
      ...await dieWithParent(),
      ...[Deno.execPath(), "run", "-A", "--no-check", "--v8-flags=--expose-gc", "--config", CONFIG, program, ...args],
    ];
    const child = new Deno.Command(command[0] ?? "", {
      args: command.slice(1),
      env: { ...env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    return new WorkerProcess(child);
  }

  /** Spawns a worker and waits until its loop runs. */
  static async start(
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    program?: string,
  ): Promise<WorkerProcess> {
    const worker = await WorkerProcess.spawn(args, env, program);
    try {
      await worker.sees("process.started", { timeoutMs: 20_000 });
      return worker;
    } catch (error) {
      await worker.kill();
      throw error;
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** How it ended, or null while it lives. */
  get ended(): Deno.CommandStatus | null {
    return this.#ended;
  }

  /** The log lines of an event. */
  logged(event: string): LogLine[] {
    return this.lines.filter((line) => line.event === event);
  }

  /** Waits until an event was logged `times` in all. */
  async sees(event: string, options: { times?: number; timeoutMs?: number } = {}): Promise<LogLine> {
    const times = options.times ?? 1;
    return await waitFor(`${event} (${times} times) in the worker's log`, () => {
      assert.equal(this.#ended !== null && this.logged(event).length < times, false, `ended early:\n${this.text()}`);
      return this.logged(event)[times - 1];
    }, { timeoutMs: options.timeoutMs });
  }

  /** The log as text, for messages of failures. */
  text(): string {
    return [...this.lines.slice(-60).map((line) => JSON.stringify(line)), ...this.strayLines].join("\n");
  }

  /** Where HTTP listens. */
  get url(): string {
    return String(this.logged("http.listening")[0]?.url);
  }

  /** Asks a probe; no answer within `timeoutMs` (500 by default) is status 0. */
  async probe(path: string, timeoutMs = 500): Promise<ProbeAnswer> {
    try {
      const response = await fetch(this.url + path, { signal: AbortSignal.timeout(timeoutMs) });
      return { status: response.status, body: await response.text() };
    } catch {
      return { status: 0, body: "" };
    }
  }

  /** Processor time used so far, milliseconds. */
  async cpuMs(): Promise<number> {
    const stat = await Deno.readTextFile(`/proc/${this.pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  signal(name: Deno.Signal): void {
    try {
      this.#child.kill(name);
    } catch {
      // It has ended.
    }
  }

  /** Waits for its end, at most `timeoutMs`. */
  async end(timeoutMs = 10_000): Promise<Deno.CommandStatus> {
    const status = await waitFor(`the worker's end\n${this.text()}`, () => this.#ended ?? undefined, { timeoutMs });
    await this.#reading;
    return status;
  }

  /** SIGTERM, and the exit code. */
  async stop(timeoutMs = 20_000): Promise<number> {
    this.signal("SIGTERM");
    return (await this.end(timeoutMs)).code;
  }

  /** Makes sure that nothing of it is left. */
  async kill(): Promise<void> {
    if (this.#ended === null) this.signal("SIGKILL");
    await this.status;
    await this.#reading;
  }

  /** That it lives and never met an error nobody caught. */
  assertSound(): void {
    assert.equal(this.#ended, null, `the worker ended:\n${this.text()}`);
    this.assertNoStray();
  }

  /** That no error came up that nobody caught. */
  assertNoStray(): void {
    assert.deepEqual(this.strayLines, []);
    assert.deepEqual(this.logged("process.stray_error"), []);
  }

  async #read(): Promise<void> {
    let rest = "";
    for await (const part of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + part).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#take(line);
    }
    if (rest !== "") this.#take(rest);
  }

  #take(text: string): void {
    if (text === "") return;
    try {
      this.lines.push(JSON.parse(text) as LogLine);
    } catch {
      this.strayLines.push(text);
    }
  }
}

/** Log lines an event and second, the most of any event: the rate at which one cause fills the log. */
export function worstLogRate(lines: readonly LogLine[], seconds: number): { event: string; perSecond: number } {
  const counts = new Map<string, number>();
  // Lines of single items are news, not repeats.
  for (const line of lines) {
    if (line.item === undefined) counts.set(line.event, (counts.get(line.event) ?? 0) + 1);
  }
  const [event, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["none", 0];
  return { event, perSecond: count / seconds };
}

// The kernel ends the worker when the test process is killed.
async function dieWithParent(): Promise<string[]> {
  for (const path of ["/usr/bin/setpriv", "/bin/setpriv"]) {
    if (await Deno.stat(path).then((file) => file.isFile, () => false)) return [path, "--pdeathsig", "KILL"];
  }
  return [];
}
