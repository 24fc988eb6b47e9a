/**
 * Single requests for `check`, which asks for what must be refused and so needs each answer as it is.
 *
 * @module
 */
import { UnavailableError } from "../core/errors.ts";

/** One request of `check`. */
export interface ProbeRequest {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below the server's URL, with its query: `/hosts?limit=0`. */
  readonly path: string;
  readonly body?: unknown;
  /** The schema. Default `queue`. */
  readonly schema?: string;
}

/** What the server answered. */
export interface ProbeAnswer {
  readonly status: number;
  /** PostgREST's or Postgres's code, `42501`; null when it was none. */
  readonly code: string | null;
  /** What it said in words; empty when nothing. */
  readonly message: string;
  /** The body as JSON; null when it is none. */
  readonly body: unknown;
  /** What serves, `postgrest/12.0.2`; null when it does not say. */
  readonly server: string | null;
}

/** Sends one request and reads the answer, whatever it is. @throws {UnavailableError} None came. */
export type RestProbe = (request: ProbeRequest) => Promise<ProbeAnswer>;

/** What probes are sent with. */
export interface RestProbeOptions {
  readonly url: string;
  readonly key: string;
  /** What the gateway knows the project by; default the key. */
  readonly apiKey?: string;
  /** Default 10 s. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;

/** Makes a probe. Neither key is in what it throws. */
export function createRestProbe({ url, key, apiKey, timeoutMs = TIMEOUT_MS }: RestProbeOptions): RestProbe {
  return async ({ method, path, body, schema = "queue" }) => {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        signal,
        redirect: "manual",
        headers: {
          authorization: `Bearer ${key}`,
          apikey: apiKey ?? key,
          ...(method === "GET" ? { "accept-profile": schema } : { "content-profile": schema }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          prefer: "return=minimal",
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return answerOf(response, await response.text());
    } catch {
      // What the platform says of it holds the URL.
      const why = signal.aborted ? `it did not answer within ${timeoutMs} ms` : "it cannot be reached";
      throw new UnavailableError(`Cannot ask ${new URL(url).host}: ${why}`, "unknown");
    }
  };
}

function answerOf(response: Response, text: string): ProbeAnswer {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // No JSON is an answer too.
  }
  const said: Readonly<Record<string, unknown>> = typeof body === "object" && body !== null ? { ...body } : {};
  return {
    status: response.status,
    code: typeof said.code === "string" ? said.code : null,
    message: typeof said.message === "string" ? said.message : "",
    body,
    server: response.headers.get("server"),
  };
}
