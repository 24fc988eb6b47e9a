/**
 * Reads a stream line by line within a bound.
 *
 * @module
 */

/** One line of input; `text` is null when the line cannot be used, and `refused` says why. */
export interface InputLine {
  /** 1 for the first. */
  readonly number: number;
  /** The line without its end; null when it cannot be used. */
  readonly text: string | null;
  /** Why it cannot be used; null when it can. */
  readonly refused: string | null;
}

const LINE_FEED = 10;

/**
 * Splits bytes into lines. A line longer than `maxBytes` or not in UTF-8 is told as refused and skipped: the lines after
 * it are read all the same. A byte order mark and carriage returns are dropped; blank lines count but are left out.
 */
export async function* readLines(bytes: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<InputLine> {
  const pending = new PendingLine(maxBytes);
  let number = 0;
  for await (const chunk of bytes) {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(LINE_FEED, from);
      pending.add(chunk.subarray(from, end === -1 ? chunk.length : end));
      if (end === -1) break;
      from = end + 1;
      const line = pending.take(++number);
      if (line !== null) yield line;
    }
  }
  const last = pending.take(++number);
  if (last !== null) yield last;
}

class PendingLine {
  readonly #maxBytes: number;
  #parts: Uint8Array[] = [];
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(part: Uint8Array): void {
    this.#size += part.length;
    if (this.#size > this.#maxBytes) this.#parts = [];
    // Copied: the reader may use its buffer again.
    else if (part.length > 0) this.#parts.push(part.slice());
  }

  take(number: number): InputLine | null {
    const [size, parts] = [this.#size, this.#parts];
    this.#size = 0;
    this.#parts = [];
    if (size > this.#maxBytes) {
      return { number, text: null, refused: `the line has ${size} bytes, the limit is ${this.#maxBytes}` };
    }
    let text: string;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(concat(parts, size)).trim();
    } catch {
      return { number, text: null, refused: "the line is not UTF-8" };
    }
    return text === "" ? null : { number, text, refused: null };
  }
}

function concat(parts: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
