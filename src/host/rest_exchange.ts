/**
 * One HTTP exchange, bounded in time and size.
 *
 * @module
 */

/** What is sent, and its bounds. */
export interface ExchangeOptions {
  readonly method: string;
  readonly headers: Headers;
  readonly body: string | null;
  /** From the first byte sent to the last one read, milliseconds. */
  readonly timeoutMs: number;
  /** The most bytes of a body. */
  readonly maxBytes: number;
  /** Ends it: nobody waits for its answer any more. */
  readonly stop?: AbortSignal | undefined;
}

/** What came back. */
export interface Exchanged {
  readonly status: number;
  /** The body as JSON; undefined when it is none. */
  readonly json: unknown;
  readonly empty: boolean;
  /** Of `Content-Range`: how many rows there are. */
  readonly total: number | null;
  /** Of `Retry-After`; null without one that can be read. */
  readonly retryAfterMs: number | null;
}

/**
 * Sends and reads. Redirects are answers like others and not followed. A body goes as a stream: one it could send again
 * `fetch` does send again by itself when the connection breaks, and a write that had taken effect then comes back as one that
 * met no row.
 *
 * @throws {Error} No answer, none in time, or one too large; it may have taken effect.
 */
export async function exchange(url: string, options: ExchangeOptions): Promise<Exchanged> {
  const { method, headers, body, timeoutMs, maxBytes } = options;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(new Error(`it gave no answer within ${timeoutMs} ms`)), timeoutMs);
  const close = () => stop.abort(new Error("it had not answered when the client was closed"));
  if (options.stop?.aborted) close();
  options.stop?.addEventListener("abort", close, { once: true });
  try {
    const sent = body === null ? null : new Blob([body]).stream();
    const response = await fetch(url, { method, headers, body: sent, redirect: "manual", signal: stop.signal });
    const text = await readBounded(response, maxBytes);
    return {
      status: response.status,
      json: parsed(text),
      empty: text.trim() === "",
      total: totalOf(response.headers.get("content-range")),
      retryAfterMs: retryAfterOf(response.headers),
    };
  } finally {
    clearTimeout(timer);
    options.stop?.removeEventListener("abort", close);
    // What was left unread would keep its connection.
    stop.abort();
  }
}

async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) throw new Error(`its answer is longer than ${maxBytes} bytes`);
    parts.push(part);
  }
  return await new Blob(parts).text();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function totalOf(range: string | null): number | null {
  const total = /\/(\d+)$/.exec(range ?? "")?.[1];
  return total === undefined ? null : Number(total);
}

/** Seconds, or a date: that is taken against the answer's own `Date`, as this machine's clock may be wrong. */
function retryAfterOf(headers: Headers): number | null {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  const ms = Date.parse(text) - Date.parse(headers.get("date") ?? "");
  return Number.isFinite(ms) && text !== "" ? Math.max(ms, 0) : null;
}
