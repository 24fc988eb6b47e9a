/**
 * Randomness from a seed: the only source of chance in a simulated world.
 *
 * @module
 */

/** A small fast generator (sfc32) with the draws a world needs. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d = 1;

  constructor(seed: number) {
    this.#a = seed >>> 0;
    this.#b = Math.floor(seed / 2 ** 32) >>> 0;
    this.#c = 0x9e3779b9;
    for (let i = 0; i < 12; i++) this.next();
  }

  /** In [0, 1). */
  next(): number {
    const t = (this.#a + this.#b + this.#d) >>> 0;
    this.#d = (this.#d + 1) >>> 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) >>> 0;
    this.#c = ((this.#c << 21 | this.#c >>> 11) + t) >>> 0;
    return t / 2 ** 32;
  }

  /** In [from, to). */
  between(from: number, to: number): number {
    return from + (to - from) * this.next();
  }

  /** A whole number, both ends included. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  /** True in `share` of all draws. */
  chance(share: number): boolean {
    return this.next() < share;
  }

  /** Mostly short, now and then up to `most`. */
  skewed(typical: number, most: number): number {
    return this.chance(0.9) ? this.between(0, typical) : this.between(typical, most);
  }

  /** One of several. */
  pick<T>(values: readonly T[]): T {
    const value = values[Math.floor(this.next() * values.length)];
    if (value === undefined) throw new Error("nothing to pick from");
    return value;
  }

  /** One of several, by weight. */
  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of choices) if ((left -= weight) < 0) return value;
    return this.pick(choices)[1];
  }

  /** Fills bytes. */
  fill(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) bytes[i] = this.next() * 256;
  }
}
