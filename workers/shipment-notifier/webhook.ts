/**
 * Posts webhooks per the Standard Webhooks specification (https://www.standardwebhooks.com): signed, dated, and named by
 * an id that stays the same however often one message is sent.
 *
 * @module
 */
import { Webhook } from "standardwebhooks";
import { type Clock, eitherOf } from "../../mod.ts";
import { hostOf } from "./endpoints/rules.ts";

/** One message. */
export interface WebhookMessage {
  /** The `webhook-id`: receivers drop a message whose id they have seen. */
  readonly id: string;
  readonly url: string;
  /** The JSON body, encoded once: the signature is of these bytes. */
  readonly body: string;
}

/** What a receiver answered. */
export interface WebhookAnswer {
  readonly status: number;
  /** What it asked for by `Retry-After`, milliseconds from now; null when it asked for nothing usable. */
  readonly retryAfterMs: number | null;
}

/** How webhooks are sent. */
export interface WebhookOptions {
  readonly secret: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Where a message really goes; default its own URL. The demo sends all to a receiver of its own. */
  readonly route?: (url: string) => string;
}

// Read so that the connection can be used again; nobody needs what stands there.
const MAX_BODY_BYTES = 64 * 1024;

/** Sends webhooks. */
export class WebhookSender {
  readonly #webhook: Webhook;
  readonly #options: WebhookOptions;

  constructor(options: WebhookOptions) {
    this.#options = options;
    this.#webhook = new Webhook(options.secret);
  }

  /**
   * Posts one message. Redirects are not followed: the signed message is for this URL alone.
   *
   * @param signal Aborts the request, as does the timeout.
   * @throws {Error} No answer: the URL's host alone is named, as a path or a query may hold a receiver's key.
   */
  async send(message: WebhookMessage, signal: AbortSignal): Promise<WebhookAnswer> {
    const { timeoutMs, clock, route } = this.#options;
    const sentAt = new Date(clock.now());
    const stop = new AbortController();
    using either = eitherOf(signal, stop.signal);
    const bounded = either.signal;
    const timer = setTimeout(() => stop.abort(new Error(`it gave no answer within ${timeoutMs} ms`)), timeoutMs);
    try {
      const response = await fetch(route === undefined ? message.url : route(message.url), {
        method: "POST",
        redirect: "manual",
        signal: bounded,
        headers: {
          "content-type": "application/json",
          "user-agent": "laneway-shipment-notifier",
          "webhook-id": message.id,
          "webhook-timestamp": String(Math.floor(sentAt.getTime() / 1_000)),
          "webhook-signature": this.#webhook.sign(message.id, sentAt, message.body),
        },
        body: message.body,
      });
      await drain(response);
      return {
        status: response.status,
        retryAfterMs: parseRetryAfter(response.headers.get("retry-after"), clock.now()),
      };
    } catch (error) {
      const why = bounded.aborted ? bounded.reason : error;
      // Without its cause, whose message holds the whole URL: a path may be a receiver's key.
      throw new Error(`The webhook's receiver ${hostOf(message.url)} was not reached: ${reasonOf(why)}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** `Retry-After` as milliseconds from now: seconds, or an HTTP date. Null when it is neither. */
export function parseRetryAfter(header: string | null, nowMs: number): number | null {
  const text = header?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // Dates only: Date.parse makes something of almost anything.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return null;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? null : Math.max(atMs - nowMs, 0);
}

/** Reads a little of the body; a longer one costs its connection. */
async function drain(response: Response): Promise<void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  let seen = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    seen += value.length;
    if (seen > MAX_BODY_BYTES) return await reader.cancel();
  }
}

// fetch puts the whole URL into its message; what its cause says is enough.
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "the request was aborted";
  const { cause } = error;
  if (error instanceof TypeError) return cause instanceof Error ? plain(cause.message) : "the connection failed";
  return plain(error.message);
}

function plain(text: string): string {
  return text.replaceAll(/\bhttps?:\/\/\S+/g, "(url)");
}
