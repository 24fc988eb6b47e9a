/**
 * The full output of runs, in files on the host: one a run, bounded, the oldest removed as new ones come.
 *
 * @module
 */
import { describeError } from "../../core/describe_error.ts";
import type { Logger } from "../../core/log.ts";
import { ByteRing } from "./byte_ring.ts";

/** How much is kept. */
export interface LogSettings {
  /** Where, absolute; made with mode 0700 when it is not there. */
  readonly folder: string;
  /** Files kept at most. */
  readonly runs: number;
  /** Bytes of all files together, counted when a run begins. */
  readonly totalBytes: number;
  /** Bytes of one run's file: what was written first, and of more than that the end. */
  readonly perRunBytes: number;
}

// Other runners may write to the same folder; what they added is seen at the next look.
const LOOK_EVERY = 50;
const LONGEST_END_BYTES = 1_048_576;

interface Kept {
  readonly name: string;
  readonly bytes: number;
}

/** The folder of logs. */
export class LogFolder {
  readonly #o: LogSettings;
  readonly #logger: Logger;
  #kept: Kept[] = [];
  #opened = 0;
  /** The look on its way, which makes the folder: runs that begin together wait for one. */
  #looking: Promise<void> | null = null;
  #warned = false;

  constructor(settings: LogSettings, logger: Logger) {
    this.#o = settings;
    this.#logger = logger;
  }

  /** Opens a run's log; its name sorts by time. Never fails: a run without a log is better than none. */
  async open(name: string): Promise<RunLog> {
    try {
      await this.#makeRoom();
      const file = await Deno.open(`${this.#o.folder}/${name}`, { write: true, createNew: true, mode: 0o600 });
      const log = new RunLog(file, this.#o.perRunBytes, (error) => this.#warn(error));
      log.onClose = (bytes) => this.#kept.push({ name, bytes });
      return log;
    } catch (error) {
      this.#warn(error);
      return new RunLog(null, 0, () => {});
    }
  }

  async #makeRoom(): Promise<void> {
    if (this.#opened++ % LOOK_EVERY === 0) this.#looking = this.#look().finally(() => this.#looking = null);
    await this.#looking;
    let bytes = this.#kept.reduce((sum, kept) => sum + kept.bytes, 0);
    while (this.#kept.length >= this.#o.runs || bytes > this.#o.totalBytes - this.#o.perRunBytes) {
      const oldest = this.#kept.shift();
      if (oldest === undefined) return;
      bytes -= oldest.bytes;
      await Deno.remove(`${this.#o.folder}/${oldest.name}`).catch(() => {});
    }
  }

  async #look(): Promise<void> {
    await Deno.mkdir(this.#o.folder, { recursive: true, mode: 0o700 });
    const found: Kept[] = [];
    for await (const { name, isFile } of Deno.readDir(this.#o.folder)) {
      if (!isFile || !name.endsWith(".log")) continue;
      const size = await Deno.stat(`${this.#o.folder}/${name}`).then(({ size }) => size, () => null);
      if (size !== null) found.push({ name, bytes: size });
    }
    this.#kept = found.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  #warn(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#logger.warn("host.log_not_written", { folder: this.#o.folder, error: describeError(error) });
  }
}

/** One run's log: its beginning, and of what does not fit the end. */
export class RunLog {
  readonly #headBytes: number;
  readonly #endBytes: number;
  readonly #onError: (error: unknown) => void;
  #file: Deno.FsFile | null;
  #written = 0;
  /** What came after the beginning; null while all of it fits. */
  #end: ByteRing | null = null;
  /** Writes of both streams, one after the other. */
  #turn: Promise<void> = Promise.resolve();
  /** Told once how many bytes the file has. */
  onClose: (bytes: number) => void = () => {};

  constructor(file: Deno.FsFile | null, perRunBytes: number, onError: (error: unknown) => void) {
    this.#file = file;
    this.#endBytes = Math.min(Math.floor(perRunBytes / 4), LONGEST_END_BYTES);
    this.#headBytes = perRunBytes - this.#endBytes;
    this.#onError = onError;
  }

  /** Adds bytes as they came; resolves when the caller may reuse `chunk`. Never fails. */
  write(chunk: Uint8Array): Promise<void> {
    if (this.#file === null) return Promise.resolve();
    return this.#turn = this.#turn.then(() => this.#write(chunk));
  }

  /** Adds a line of the runner's own. */
  note(line: string): Promise<void> {
    return this.write(new TextEncoder().encode(`--- ${line}\n`));
  }

  /** Writes what is left, and closes. */
  close(): Promise<void> {
    return this.#turn = this.#turn.then(() => this.#close());
  }

  async #write(chunk: Uint8Array): Promise<void> {
    const room = this.#headBytes - this.#written;
    if (room > 0) await this.#append(chunk.length > room ? chunk.subarray(0, room) : chunk);
    if (chunk.length <= room) return;
    this.#end ??= new ByteRing(this.#endBytes);
    this.#end.push(room > 0 ? chunk.subarray(room) : chunk);
  }

  async #close(): Promise<void> {
    if (this.#file === null) return;
    if (this.#end !== null) {
      const last = this.#end.last();
      const left = this.#end.total - last.length;
      if (left > 0) await this.#append(new TextEncoder().encode(`\n--- ${left} bytes are left out here\n`));
      await this.#append(last);
    }
    this.#file?.close();
    this.#file = null;
    this.onClose(this.#written);
  }

  async #append(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length && this.#file !== null;) {
        const count = await this.#file.write(bytes.subarray(at));
        at += count;
        this.#written += count;
      }
    } catch (error) {
      // A full disk must not stop the command: it is read on without a log.
      this.#onError(error);
      this.#file?.close();
      this.#file = null;
    }
  }
}
