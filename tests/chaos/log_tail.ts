/**
 * Follows the handlers' log, and notes when each line was first seen: by this process's clock, as some workers' are wrong.
 *
 * @module
 */
import { parseLog, type SeenLine } from "./check.ts";

/** Follows a file. */
export class LogTail {
  readonly lines: SeenLine[] = [];
  readonly #path: string;
  #offset = 0;
  #rest = "";

  constructor(path: string) {
    this.#path = path;
  }

  /** Reads what is new. */
  async read(): Promise<void> {
    using file = await Deno.open(this.#path).catch(() => null);
    if (file === null) return;
    await file.seek(this.#offset, Deno.SeekMode.Start);
    const buffer = new Uint8Array(1 << 20);
    for (;;) {
      const length = await file.read(buffer);
      if (length === null || length === 0) break;
      this.#offset += length;
      const text = this.#rest + new TextDecoder().decode(buffer.subarray(0, length));
      const end = text.lastIndexOf("\n") + 1;
      this.#rest = text.slice(end);
      const seenMs = Date.now();
      for (const line of parseLog(text.slice(0, end))) this.lines.push({ ...line, seenMs });
    }
  }
}
