/**
 * Tells people of unexpected errors: a Discord-style webhook and, where configured, a GitHub issue labelled `bug`.
 *
 * One notice a cause and interval; what comes between is counted and told with the next one. Sending is done beside the
 * work, one after the other and bounded, so that nothing waits for it; what cannot be sent is a line of the log.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { boundText, describeError } from "../core/describe_error.ts";
import type { Logger } from "../core/log.ts";
import { limitRepeats } from "../core/log_limit.ts";
import { type NoticeChannel, NoticeRefused, noticeRequest } from "./notice_channels.ts";
import type { Notifier } from "./types.ts";

/** How notices are sent. */
export interface NoticesOptions {
  /** Where they go; none: each is a line of the log alone. */
  readonly channels: readonly NoticeChannel[];
  /** Who speaks: `host-runner@machine`. */
  readonly source: string;
  /** The least time between two notices of a cause, milliseconds. Default 15 min. */
  readonly intervalMs?: number;
  /** The longest one request may take, milliseconds. Default 10 s. */
  readonly timeoutMs?: number;
  /** The longest `close` may take, milliseconds. Default 5 s. */
  readonly closeMs?: number;
  /** Time. */
  readonly clock: Clock;
  /** Logs; what cannot be sent is told there. */
  readonly logger: Logger;
  /** Default the platform's. */
  readonly fetch?: typeof fetch;
}

/** A notice on its way. */
export interface Notice {
  readonly cause: string;
  readonly text: string;
  /** How many like it were held back since the last. */
  readonly held: number;
  /** When it happened, by the host's clock. */
  readonly at: Date;
}

interface Cause {
  sentMs: number;
  held: number;
  text: string;
}

const INTERVAL_MS = 15 * 60_000;
const TIMEOUT_MS = 10_000;
const CLOSE_MS = 5_000;
/** Beyond so many causes at once they share one: a cause that holds outside text must not grow the map for ever. */
const MAX_CAUSES = 100;
const OTHERS = "other errors";
const MAX_WAITING = 50;
const MAX_CAUSE = 200;
const MAX_TEXT = 2_000;
const TRIES = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const LOG_EVERY_MS = 60_000;

/** Makes a notifier; nothing runs until the first notice. */
export function createNotifier(options: NoticesOptions): Notifier {
  return new Notices(options);
}

class Notices implements Notifier {
  readonly #o: NoticesOptions;
  readonly #logger: Logger;
  readonly #intervalMs: number;
  readonly #causes = new Map<string, Cause>();
  readonly #waiting: Notice[] = [];
  /** Ends pauses between tries and the waits for what is held back. */
  readonly #closing = new AbortController();
  /** Ends requests. */
  readonly #ending = new AbortController();
  #sending: Promise<void> | null = null;
  #dropped = 0;

  constructor(options: NoticesOptions) {
    this.#o = options;
    this.#intervalMs = options.intervalMs ?? INTERVAL_MS;
    const { logger, clock } = options;
    this.#logger = limitRepeats(logger, {
      clock,
      intervalMs: LOG_EVERY_MS,
      key: (event, { channel }) => `${event} ${channel}`,
    });
  }

  notify(cause: string, text: string): void {
    try {
      this.#notify(boundText(cause, MAX_CAUSE), boundText(text, MAX_TEXT));
    } catch (error) {
      this.#logger.warn("notice.failed", { error: describeError(error) });
    }
  }

  async close(): Promise<void> {
    for (const [name, cause] of this.#causes) this.#tellHeld(name, cause);
    this.#closing.abort();
    const done = new AbortController();
    const late = this.#o.clock.sleep(this.#o.closeMs ?? CLOSE_MS, done.signal);
    await Promise.race([this.#sending ?? Promise.resolve(), late]);
    done.abort();
    this.#ending.abort();
    await this.#sending;
  }

  #notify(name: string, text: string): void {
    const { clock } = this.#o;
    if (this.#closing.signal.aborted) return;
    const known = this.#causes.get(name) ?? (this.#causes.size < MAX_CAUSES ? undefined : this.#causes.get(OTHERS));
    if (known !== undefined && clock.monotonic() - known.sentMs < this.#intervalMs) {
      known.held++;
      known.text = text;
      return;
    }
    const key = this.#causes.size < MAX_CAUSES || this.#causes.has(name) ? name : OTHERS;
    const cause: Cause = { sentMs: clock.monotonic(), held: 0, text };
    this.#causes.set(key, cause);
    this.#send({ cause: key, text, held: 0, at: new Date(clock.now()) });
    void this.#watch(key, cause);
  }

  /** At an interval's end what was held back is told; a cause that was silent for one is forgotten. */
  async #watch(name: string, cause: Cause): Promise<void> {
    while (!this.#closing.signal.aborted) {
      await this.#o.clock.sleep(this.#intervalMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      if (cause.held === 0) break;
      this.#tellHeld(name, cause);
    }
    if (this.#causes.get(name) === cause) this.#causes.delete(name);
  }

  #tellHeld(name: string, cause: Cause): void {
    if (cause.held === 0) return;
    const { clock } = this.#o;
    this.#send({ cause: name, text: cause.text, held: cause.held, at: new Date(clock.now()) });
    cause.held = 0;
    cause.sentMs = clock.monotonic();
  }

  #send(notice: Notice): void {
    this.#o.logger.warn("notice", { cause: notice.cause, text: notice.text, held: notice.held || undefined });
    if (this.#o.channels.length === 0) return;
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped++;
      this.#logger.warn("notice.dropped", {
        dropped: this.#dropped,
        hint: "the channels are slower than what happens",
      });
      return;
    }
    this.#waiting.push(notice);
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    for (let notice = this.#waiting.shift(); notice !== undefined; notice = this.#waiting.shift()) {
      for (const channel of this.#o.channels) await this.#sendTo(channel, notice);
    }
    // In the turn that found nothing left: what comes later starts anew.
    this.#sending = null;
  }

  async #sendTo(channel: NoticeChannel, notice: Notice): Promise<void> {
    const { clock, source, timeoutMs = TIMEOUT_MS, fetch: request = fetch } = this.#o;
    for (let pauseMs = FIRST_PAUSE_MS, tries = 1;; pauseMs *= 2, tries++) {
      try {
        const call = noticeRequest({ fetch: request, timeoutMs, stop: this.#ending.signal });
        await channel.send({ ...notice, source }, call);
        return;
      } catch (error) {
        const refused = error instanceof NoticeRefused ? error : null;
        const lasting = refused !== null && !refused.transient;
        if (lasting || tries === TRIES || this.#closing.signal.aborted) {
          this.#logger.warn("notice.not_sent", {
            channel: channel.name,
            cause: notice.cause,
            error: describeError(error),
          });
          return;
        }
        await clock.sleep(Math.min(refused?.retryAfterMs ?? pauseMs, LONGEST_PAUSE_MS), this.#closing.signal);
      }
    }
  }
}
