/**
 * The key of a host, and what follows when the server refuses it.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { UnavailableError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Notifier } from "./types.ts";

/** What a key ring works with. */
export interface KeyRingOptions {
  /** Reads the key, its file anew each time: a refreshed one is used at the next call. */
  readonly readKey: () => string | Promise<string>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly notifier: Notifier;
  /** In [0, 1). */
  readonly random: () => number;
}

/** The server refuses the key, or there is none to be read: whoever is to mend it has been told by the key ring. */
export class KeyRefusedError extends UnavailableError {}

/** A key that was refused, and until when it is not tried again. */
interface Refusal {
  readonly key: string;
  readonly waitMs: number;
  readonly untilMs: number;
}

const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 300_000;
/** What a refusal of the key itself is noted under; a refusal of one right under what was asked, `PATCH /hosts`. */
const EVERYTHING = "*";

/**
 * Hands out the key. One that was refused is tried again after 5 s, and less often up to every 5 min; another one found in
 * its place is tried at once. People are told once, and again only after a success.
 */
export class KeyRing {
  readonly #o: KeyRingOptions;
  readonly #refusals = new Map<string, Refusal>();

  constructor(options: KeyRingOptions) {
    this.#o = options;
  }

  /**
   * The key for a call. A right to write that was refused keeps no read from being asked: losing a heartbeat stops no work.
   *
   * @param right What is asked: `GET /hosts`.
   * @throws {UnavailableError} It cannot be read, or was refused and is not to be tried again yet.
   */
  async key(right: string): Promise<string> {
    const key = await this.#read();
    for (const at of [EVERYTHING, right]) {
      const refusal = this.#refusals.get(at);
      if (refusal === undefined || refusal.key !== key || this.#o.clock.monotonic() >= refusal.untilMs) continue;
      const seconds = Math.ceil((refusal.untilMs - this.#o.clock.monotonic()) / 1_000);
      const what = at === EVERYTHING
        ? "Cannot ask the server as it refused this host's key"
        : `Cannot ${at} as the server refused this host's key the right to`;
      throw new KeyRefusedError(`${what}: it is tried again in ${seconds} s, another one at once`, "not-executed");
    }
    return key;
  }

  /** Notes that the server refused a key, as a whole (null) or one right. */
  refused(key: string, { right, text }: { readonly right: string | null; readonly text: string }): void {
    const at = right ?? EVERYTHING;
    const nowMs = this.#o.clock.monotonic();
    const before = this.#refusals.get(at);
    // Calls that were on their way together are refused together: that is one refusal.
    if (before !== undefined && before.key === key && nowMs < before.untilMs) return;
    const waitMs = before === undefined ? FIRST_WAIT_MS : Math.min(before.waitMs * 2, LONGEST_WAIT_MS);
    const untilMs = nowMs + waitMs * (0.5 + this.#o.random() / 2);
    this.#refusals.set(at, { key, waitMs, untilMs });
    if (before !== undefined) return;
    this.#o.logger.error("host.key_refused", { right: at, error: text });
    // A role that lost its rights is refused each of them: that is one trouble.
    const cause = right === null ? "key refused *" : "key refused a right";
    this.#o.notifier.notify(cause, `The server refuses this host's key: ${text}`);
  }

  /** Notes that a key served. */
  accepted(right: string): void {
    if (this.#refusals.size === 0) return;
    const [asWhole, forThis] = [this.#refusals.delete(EVERYTHING), this.#refusals.delete(right)];
    if (asWhole || forThis) this.#o.logger.info("host.key_accepted", { right: asWhole ? EVERYTHING : right });
  }

  async #read(): Promise<string> {
    try {
      return await this.#o.readKey();
    } catch (cause) {
      const text = `Cannot read this host's key: ${describeError(cause)}`;
      this.refused("", { right: null, text });
      throw new KeyRefusedError(text, "not-executed", { cause });
    }
  }
}
