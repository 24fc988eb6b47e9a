/**
 * How long one call to the database may take.
 *
 * @module
 */
import { UnavailableError } from "../core/errors.ts";

/** One call's deadline: the wait for a client and the statement together. */
export class Deadline {
  readonly #ms: number;
  readonly #timer: ReturnType<typeof setTimeout>;
  /** Resolves with undefined when the deadline passes; never, once cleared. */
  readonly passed: Promise<undefined>;

  /** @param ms From now, milliseconds. */
  constructor(ms: number) {
    this.#ms = ms;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.passed = promise;
    this.#timer = setTimeout(() => resolve(undefined), ms);
  }

  /** What a call fails with that it cut short while `doing`. */
  error(doing: string, outcome: "not-executed" | "unknown"): UnavailableError {
    return new UnavailableError(`The database did not answer within ${this.#ms} ms (${doing})`, outcome);
  }

  /** Ends it: it passes no more. */
  clear(): void {
    clearTimeout(this.#timer);
  }
}
