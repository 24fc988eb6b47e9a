/**
 * The end of what a command wrote, as text that can be stored and shown: valid UTF-8 without control codes.
 *
 * @module
 */
import { ByteRing } from "./byte_ring.ts";

/** The longest tail, in bytes of UTF-8. */
export const MAX_TAIL_BYTES = 8_192;

/** A tail, and how many bytes the command wrote before it. */
export interface TailText {
  readonly text: string;
  readonly cutBytes: number;
}

/** An empty tail. */
export const NO_TAIL: TailText = { text: "", cutBytes: 0 };

/** Gathers a stream's tail in bounded memory. */
export class Tail {
  readonly #ring = new ByteRing(MAX_TAIL_BYTES);

  /** Adds bytes; the caller may reuse `chunk` at once. */
  push(chunk: Uint8Array): void {
    this.#ring.push(chunk);
  }

  /** Bytes ever pushed. */
  get total(): number {
    return this.#ring.total;
  }

  /** What is kept, made harmless. */
  read(): TailText {
    return harmless(this.#ring.last(), this.#ring.total);
  }
}

/** One character of the output: how many bytes it was, and what stands for it. */
interface Unit {
  readonly raw: number;
  readonly text: string;
  readonly bytes: number;
}

/**
 * The end of `last`, the last bytes of `total`. Bytes that are no UTF-8 become U+FFFD; control codes other than newline
 * and tab become their pictures (ESC is ␛), so that no terminal obeys them; what turns the direction of text is U+FFFD.
 * Stands for at most 8 KiB in UTF-8; a character cut at the front counts as cut.
 */
export function harmless(last: Uint8Array, total: number): TailText {
  const units: Unit[] = [];
  const cutInFront = total > last.length;
  let at = 0;
  // The rest of a character whose beginning is gone.
  while (cutInFront && at < 3 && at < last.length && isContinuation(last[at])) at++;
  while (at < last.length) {
    const unit = unitAt(last, at);
    units.push(unit);
    at += unit.raw;
  }
  let bytes = 0;
  let raw = 0;
  let from = units.length;
  for (let i = units.length - 1; i >= 0; i--) {
    const unit = units[i];
    if (unit === undefined || bytes + unit.bytes > MAX_TAIL_BYTES) break;
    bytes += unit.bytes;
    raw += unit.raw;
    from = i;
  }
  return { text: units.slice(from).map(({ text }) => text).join(""), cutBytes: total - raw };
}

const REPLACED = { text: "\uFFFD", bytes: 3 };

function unitAt(bytes: Uint8Array, at: number): Unit {
  const code = codePointAt(bytes, at);
  if (code === null) return { raw: 1, ...REPLACED };
  const raw = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  // A line's end is one thing, however it is written.
  if (code === 0x0d && bytes[at + 1] === 0x0a) return { raw: 2, text: "\n", bytes: 1 };
  if (code === 0x0a || code === 0x09) return { raw, text: String.fromCharCode(code), bytes: 1 };
  if (code < 0x20) return { raw, text: String.fromCharCode(0x2400 + code), bytes: 3 };
  if (code === 0x7f) return { raw, text: "\u2421", bytes: 3 };
  if (isUnseen(code)) return { raw, ...REPLACED };
  return { raw, text: String.fromCodePoint(code), bytes: raw };
}

/** C1 controls, direction marks, line separators, and what is no character. */
function isUnseen(code: number): boolean {
  return (code >= 0x80 && code < 0xa0) || code === 0x61c || (code >= 0x200e && code <= 0x200f) ||
    (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code === 0xfeff ||
    (code >= 0xe0000 && code <= 0xe007f) || (code & 0xfffe) === 0xfffe;
}

/** The code point that begins at `at`, or null when the bytes there are no valid UTF-8. */
function codePointAt(bytes: Uint8Array, at: number): number | null {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return first;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return null;
  let code = first & (0xff >> (length + 1));
  for (let i = 1; i < length; i++) {
    const next = bytes[at + i];
    if (next === undefined || !isContinuation(next)) return null;
    code = (code << 6) | (next & 0x3f);
  }
  const shortest = length === 2 ? 0x80 : length === 3 ? 0x800 : 0x10000;
  if (code < shortest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return null;
  return code;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
