/**
 * What happened in a world: a running hash of all of it, and its last lines. Ids differ from one run to the next (the
 * process's id generator lives longer than a world), so each is named by the order of its first appearance.
 *
 * @module
 */

const KEPT = 400;

/** Thrown by a checker: something that must never happen did. */
export class Violation extends Error {
  override readonly name = "Violation";
  /** Which checker found it. */
  readonly checker: string;

  constructor(checker: string, message: string) {
    super(message);
    this.checker = checker;
  }
}

/** Collects lines. */
export class Trace {
  #low = 0x811c9dc5;
  #high = 0xcbf29ce4;
  #lines: string[] = [];
  #count = 0;
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** The short name of an id: `item7`. */
  name(what: string, id: string | null | undefined): string {
    if (id === null || id === undefined) return `no ${what}`;
    const known = this.#names.get(id);
    if (known !== undefined) return known;
    const n = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, n);
    const name = `${what}${n}`;
    this.#names.set(id, name);
    return name;
  }

  /** Notes one thing. */
  note(line: string): void {
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i);
      this.#low = Math.imul(this.#low ^ code, 0x01000193);
      this.#high = Math.imul(this.#high ^ (code + i), 0x85ebca6b);
    }
    this.#count++;
    this.#lines.push(line);
    if (this.#lines.length > 2 * KEPT) this.#lines = this.#lines.slice(-KEPT);
  }

  /** Sixteen hexadecimal digits over everything noted. */
  hash(): string {
    return [this.#low, this.#high].map((part) => (part >>> 0).toString(16).padStart(8, "0")).join("");
  }

  /** How much was noted. */
  get count(): number {
    return this.#count;
  }

  /** The last lines. */
  last(count: number): string[] {
    return this.#lines.slice(-count);
  }
}
