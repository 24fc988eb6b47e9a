/**
 * The last bytes of a stream, in bounded memory.
 *
 * @module
 */

/** Keeps the last `size` bytes pushed, and counts all of them. */
export class ByteRing {
  readonly #size: number;
  #bytes: Uint8Array<ArrayBuffer>;
  /** Where the next byte goes. */
  #at = 0;
  #total = 0;

  constructor(size: number) {
    this.#size = size;
    // Most commands say little: it grows to its size only when it must.
    this.#bytes = new Uint8Array(Math.min(size, 1_024));
  }

  /** Bytes ever pushed. */
  get total(): number {
    return this.#total;
  }

  /** Adds bytes; the caller may reuse `chunk` at once. */
  push(chunk: Uint8Array): void {
    this.#total += chunk.length;
    if (this.#bytes.length < this.#size) this.#grow(chunk.length);
    const kept = chunk.length > this.#bytes.length ? chunk.subarray(chunk.length - this.#bytes.length) : chunk;
    const first = Math.min(kept.length, this.#bytes.length - this.#at);
    this.#bytes.set(kept.subarray(0, first), this.#at);
    this.#bytes.set(kept.subarray(first), 0);
    this.#at = (this.#at + kept.length) % this.#bytes.length;
  }

  /** The last bytes, oldest first. */
  last(): Uint8Array<ArrayBuffer> {
    if (this.#total <= this.#bytes.length) return this.#bytes.slice(0, this.#total);
    const out = new Uint8Array(this.#bytes.length);
    out.set(this.#bytes.subarray(this.#at));
    out.set(this.#bytes.subarray(0, this.#at), this.#bytes.length - this.#at);
    return out;
  }

  /** Grown before it ever wraps, so that what it holds lies in order. */
  #grow(more: number): void {
    const before = this.#total - more;
    if (before + more <= this.#bytes.length) return;
    let length = this.#bytes.length;
    while (length < this.#size && length < before + more) length = Math.min(length * 4, this.#size);
    const grown = new Uint8Array(length);
    grown.set(this.#bytes.subarray(0, before));
    this.#bytes = grown;
    this.#at = before % length;
  }
}
