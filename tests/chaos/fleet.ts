/**
 * Processes of the chaos worker, started, frozen, killed and replaced.
 *
 * @module
 */

/** One process of the fleet. */
export interface Process {
  /** Which place of the fleet it holds; a new process takes a dead one's. */
  readonly place: number;
  readonly pid: number;
  readonly startedMs: number;
  readonly child: Deno.ChildProcess;
  /** What it wrote that is no log line: an uncaught error would be here. */
  readonly stray: string[];
  ended: boolean;
  /** Until when it is frozen. */
  frozen: boolean;
}

/** How a place of the fleet is started. */
export interface Place {
  readonly env: Readonly<Record<string, string>>;
}

/** What was done to a process, or to all of them, and when. */
export interface Fault {
  readonly what: string;
  /** The process; null when it was done to all. */
  readonly pid: number | null;
  readonly fromMs: number;
  readonly toMs: number;
}

const FLAGS = ["--http", "off", "--log-format", "json", "--log-level", "warn"];

/** A fleet of workers. */
export class Fleet {
  readonly faults: Fault[] = [];
  readonly everybody: Process[] = [];
  readonly #binary: string;
  readonly #flags: readonly string[];
  readonly #places: readonly Place[];
  readonly #reading: Promise<void>[] = [];
  #stopping = false;
  restarts = 0;

  constructor(binary: string, flags: readonly string[], places: readonly Place[]) {
    this.#binary = binary;
    this.#flags = flags;
    this.#places = places;
  }

  /** Starts every place. */
  start(): void {
    this.#places.forEach((_, place) => this.#spawn(place));
  }

  /** Processes that live. */
  get alive(): Process[] {
    return this.everybody.filter(({ ended }) => !ended);
  }

  /** Kills one, as a machine that is lost. It is replaced at once. */
  kill(process: Process): void {
    const now = Date.now();
    this.faults.push({ what: "SIGKILL", pid: process.pid, fromMs: now, toMs: now });
    signal(process, "SIGKILL");
  }

  /** Freezes one for so long. */
  async freeze(process: Process, ms: number): Promise<void> {
    const fromMs = Date.now();
    process.frozen = true;
    signal(process, "SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, ms));
    signal(process, "SIGCONT");
    process.frozen = false;
    this.faults.push({ what: "SIGSTOP", pid: process.pid, fromMs, toMs: Date.now() });
  }

  /** Drains all of them. @returns How many ended with another code than 0. */
  async drain(): Promise<number> {
    this.#stopping = true;
    for (const process of this.alive) signal(process, "SIGTERM");
    const codes = await Promise.all(this.everybody.filter(({ ended }) => !ended).map(({ child }) => child.status));
    await Promise.all(this.#reading);
    return codes.filter(({ code }) => code !== 0).length;
  }

  /** Makes sure that nothing of it is left. */
  async end(): Promise<void> {
    this.#stopping = true;
    for (const process of this.alive) {
      signal(process, "SIGCONT");
      signal(process, "SIGKILL");
    }
    await Promise.all(this.everybody.map(({ child }) => child.status));
    await Promise.all(this.#reading);
  }

  #spawn(place: number): void {
    const child = new Deno.Command(this.#binary, {
      args: [...FLAGS, ...this.#flags],
      clearEnv: true,
      env: { ...this.#places[place]?.env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const process: Process = {
      place,
      pid: child.pid,
      startedMs: Date.now(),
      child,
      stray: [],
      ended: false,
      frozen: false,
    };
    this.everybody.push(process);
    this.#reading.push(collectStray(child.stderr, process.stray));
    void child.status.then(() => {
      process.ended = true;
      const now = Date.now();
      this.faults.push({ what: "ended", pid: process.pid, fromMs: now, toMs: now });
      if (this.#stopping) return;
      this.restarts++;
      this.#spawn(place);
    });
  }
}

function signal({ child, ended }: Process, name: Deno.Signal): void {
  if (ended) return;
  try {
    child.kill(name);
  } catch {
    // It has ended by itself.
  }
}

/** Reads the log to its end and keeps the lines that are none. */
async function collectStray(stream: ReadableStream<Uint8Array<ArrayBuffer>>, stray: string[]): Promise<void> {
  let rest = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "" && !line.startsWith("{")) stray.push(line);
  }
}
