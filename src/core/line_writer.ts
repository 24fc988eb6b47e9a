/**
 * Writes lines to a stream that may be slow, full or closed, without ever making the writer wait.
 *
 * @module
 */

/** The part of a stream that is used: `Deno.stderr` is one. */
export interface ByteStream {
  /** Writes some of `bytes` and resolves to how many. */
  write(bytes: Uint8Array): Promise<number>;
}

/** How a `LineWriter` behaves. */
export interface LineWriterOptions {
  /** Where lines go. */
  readonly stream: ByteStream;
  /** The most UTF-16 units that wait; a line beyond is dropped. Default 1 Mi. */
  readonly maxQueued?: number;
  /** Called with how many lines were just dropped. Must not log. */
  readonly onDropped?: (lines: number) => void;
}

// One write carries many lines when they have queued up, and stays small enough for a pipe's usual buffer.
const MAX_WRITE = 64 * 1024;

/**
 * A bounded queue of lines in front of a stream. `write` returns at once; a pipe that nobody reads fills the queue, and
 * then lines are dropped and counted; a closed pipe drops all that follow.
 */
export class LineWriter {
  readonly #options: LineWriterOptions;
  readonly #encoder = new TextEncoder();
  #waiting: string[] = [];
  #queued = 0;
  #writing: Promise<void> | null = null;
  #closed = false;

  constructor(options: LineWriterOptions) {
    this.#options = options;
  }

  /** Takes one line, without its line break. Never throws. */
  write(line: string): void {
    if (this.#closed || this.#queued + line.length > (this.#options.maxQueued ?? 1 << 20)) return this.#drop(1);
    this.#waiting.push(line);
    this.#queued += line.length;
    this.#writing ??= this.#run();
  }

  /**
   * Waits until everything taken so far is written.
   *
   * @param timeoutMs The longest wait. Default 1 000.
   * @returns Whether the queue is empty: false when the stream did not take it in time.
   */
  async flush(timeoutMs = 1_000): Promise<boolean> {
    if (this.#writing === null) return true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), timeoutMs));
    try {
      return await Promise.race([this.#writing.then(() => true), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #run(): Promise<void> {
    // One microtask later, so that lines of one turn leave together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const lines = this.#take();
      try {
        await this.#writeAll(this.#encoder.encode(lines.join("\n") + "\n"));
      } catch {
        // A closed pipe never opens again.
        this.#closed = true;
        this.#drop(lines.length + this.#waiting.length);
        this.#waiting = [];
        this.#queued = 0;
      }
    }
    this.#writing = null;
  }

  #take(): string[] {
    let size = 0;
    let count = 0;
    for (const line of this.#waiting) {
      if (count > 0 && size + line.length > MAX_WRITE) break;
      size += line.length;
      count++;
    }
    this.#queued -= size;
    return this.#waiting.splice(0, count);
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#options.stream.write(bytes.subarray(at));
  }

  #drop(lines: number): void {
    try {
      this.#options.onDropped?.(lines);
    } catch {
      // Counting is no reason to fail.
    }
  }
}
