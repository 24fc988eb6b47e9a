/**
 * Calls to PostgREST: bounded in time and size, repeated where that is safe, never redirected, with a key that no log,
 * error or URL ever holds.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { boundText, describeError } from "../core/describe_error.ts";
import { type Outcome, SettingsError, UnavailableError, ValidationError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { exchange, type Exchanged } from "./rest_exchange.ts";
import { type Filter, toQuery } from "./rest_filters.ts";
import { KeyRefusedError, KeyRing } from "./rest_key.ts";
import type { Notifier } from "./types.ts";

/** How a client reaches its server. */
export interface RestClientOptions {
  /** Where PostgREST answers: `https://xyz.supabase.co/rest/v1`. */
  readonly url: string;
  /** Reads the key, its file anew each time. */
  readonly readKey: () => string | Promise<string>;
  /** What Supabase's gateway asks for beside the key. Default the key. */
  readonly apiKey?: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly notifier: Notifier;
  /** Of one exchange, its body included, milliseconds. Default 10 000. */
  readonly timeoutMs?: number;
  /** Of one call with its repeats, milliseconds. Default 30 000. */
  readonly budgetMs?: number;
  /** The most bytes of an answer. Default 4 MiB: an item's payload comes in one piece. */
  readonly maxBytes?: number;
  /** Ends waits between repeats, and what is on its way: the process is about to stop, and nobody waits for it. */
  readonly stop?: AbortSignal;
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number;
}

/** One call. Every write among them is guarded by its filters, so that repeating it changes nothing more. */
export interface RestRequest {
  readonly method: "GET" | "PATCH" | "POST";
  /** The table: `/work_items`. */
  readonly path: string;
  readonly filters: readonly Filter[];
  readonly body?: unknown;
  /** Met twice it changes nothing more and finds its rows again: it is asked again when its answer was lost, as reads are. */
  readonly repeatable?: boolean;
  /** `Prefer`, beside the representation that a PATCH always asks for. */
  readonly prefer?: string;
}

/** A row as it came. */
export type RestRow = Readonly<Record<string, unknown>>;

/** What a call brought. */
export interface RestAnswer {
  readonly rows: readonly RestRow[];
  /** Of `count=exact`: how many rows there are. */
  readonly total: number | null;
  /** An earlier try may have taken effect: no rows then do not say that nothing was written. */
  readonly unsure: boolean;
}

/** The database refused what was written. Nothing was. */
export class RestRefusal extends ValidationError {
  /** Whether it was a row policy that refused. */
  readonly byPolicy: boolean;

  constructor(path: string, message: string, byPolicy: boolean) {
    super(path, message);
    this.byPolicy = byPolicy;
  }
}

const MAX_TRIES = 5;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
const LONGEST_RETRY_AFTER_MS = 60_000;
/** After calls that asked in vain to the last: from twice the first to the longest, while none is answered. */
const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 4_000;
const BUSY = new Set([408, 429, 502, 503, 504]);
/** Rolled back, and worth another try: serialization, deadlock, a lock or a statement that took too long. */
const ROLLED_BACK = new Set(["40001", "40P01", "55P03", "57014"]);

/** Calls one PostgREST. */
export class RestClient {
  readonly #o: Required<Omit<RestClientOptions, "apiKey" | "stop">> & Pick<RestClientOptions, "apiKey" | "stop">;
  readonly #keys: KeyRing;
  /** What a server that is busy asked for, or one that is away is given: no call before. */
  #notBeforeMs = -Infinity;
  /** Calls that asked in vain to the last, one after the other. */
  #inVain = 0;

  /** @throws {SettingsError} The URL cannot be used. */
  constructor(options: RestClientOptions) {
    const defaults = { timeoutMs: 10_000, budgetMs: 30_000, maxBytes: 4 * 1024 * 1024, random: Math.random };
    this.#o = { ...defaults, ...options, url: checkRestUrl(options.url) };
    this.#keys = new KeyRing(this.#o);
  }

  /**
   * Makes a call. Repeats it, with growing pauses and full jitter, while the server is busy or out of reach.
   *
   * @throws {RestRefusal} The database refused what was written.
   * @throws {UnavailableError} No usable answer in time; `unknown` where a write may have taken effect.
   */
  async call(request: RestRequest): Promise<RestAnswer> {
    const { clock, budgetMs, stop } = this.#o;
    const untilMs = clock.monotonic() + budgetMs;
    let unsure = false;
    for (let tries = 1;; tries++) {
      const key = await this.#admit(request, untilMs).catch((error) => {
        throw unsure ? new UnavailableError(describeError(error), "unknown", { cause: error }) : error;
      });
      const met = await this.#once(request, key);
      if (met.answer !== undefined) {
        this.#inVain = 0;
        return { ...met.answer, unsure };
      }
      unsure ||= met.mayHaveRun && request.method !== "GET";
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS) * this.#o.random();
      const late = clock.monotonic() + pauseMs > untilMs;
      if (!met.again || tries >= MAX_TRIES || late || stop?.aborted) {
        if (met.again) this.#rest();
        throw met.error(unsure ? "unknown" : "not-executed");
      }
      await clock.sleep(pauseMs, stop);
    }
  }

  /** Waits for the server's rest to end, and gives the key of this try. @throws {UnavailableError} It is not to be made. */
  async #admit(request: RestRequest, untilMs: number): Promise<string> {
    await this.#waitForTurn(request, untilMs);
    return await this.#keys.key(rightOf(request));
  }

  /** A busy server's `Retry-After` holds for every call, or they would all ask in place of the one that was told. */
  async #waitForTurn(request: RestRequest, untilMs: number): Promise<void> {
    const waitMs = this.#notBeforeMs - this.#o.clock.monotonic();
    if (waitMs <= 0) return;
    if (this.#notBeforeMs > untilMs || this.#o.stop?.aborted) {
      const seconds = Math.ceil(waitMs / 1_000);
      throw new UnavailableError(`${named(request)}: the server is given ${seconds} s of rest`, "not-executed");
    }
    await this.#o.clock.sleep(waitMs * (1 + this.#o.random() / 10), this.#o.stop);
  }

  /** A server that is away is not asked all the more by whoever comes next: its fleet would meet it coming back. */
  #rest(): void {
    const restMs = Math.min(FIRST_REST_MS * 2 ** ++this.#inVain, LONGEST_REST_MS) * (0.5 + this.#o.random() / 2);
    this.#notBeforeMs = Math.max(this.#notBeforeMs, this.#o.clock.monotonic() + restMs);
  }

  async #once(request: RestRequest, key: string): Promise<Met> {
    const { url, timeoutMs, maxBytes, apiKey, stop } = this.#o;
    let told: Exchanged;
    try {
      told = await exchange(`${url}${request.path}?${toQuery(request.filters)}`, {
        method: request.method,
        headers: headersOf(request, { key, apiKey: apiKey ?? key }),
        body: request.body === undefined ? null : JSON.stringify(request.body),
        timeoutMs,
        maxBytes,
        stop,
      });
    } catch (cause) {
      return noAnswer(request, withoutUrl(cause, key));
    }
    return this.#judge(request, told, key);
  }

  #judge(request: RestRequest, told: Exchanged, key: string): Met {
    const { status, json } = told;
    if (status >= 200 && status < 300) {
      if (!isRows(json) && !(status !== 200 && told.empty)) {
        return noAnswer(request, new Error(`it answered ${status} with what is no list of rows`));
      }
      this.#keys.accepted(rightOf(request));
      return { answer: { rows: isRows(json) ? json : [], total: told.total } };
    }
    const { code, message } = saidBy(json);
    // A guarded write that met no row: so some versions say it.
    if ((status === 404 && Array.isArray(json)) || code === "PGRST116") return { answer: { rows: [], total: 0 } };
    const safe = boundText(message.replaceAll(key, "***"), 300);
    const text = `${named(request)}: the server answered ${status}${code === "" ? "" : ` ${code}`}` +
      (safe === "" ? "" : ` (${safe})`);
    const byPolicy = code === "42501" && message.includes("row-level security");
    if (status === 401 || (status === 403 && !byPolicy)) {
      this.#keys.refused(key, { right: status === 401 ? null : rightOf(request), text });
      return { again: false, mayHaveRun: false, error: () => new KeyRefusedError(text, "not-executed") };
    }
    if (BUSY.has(status) || ROLLED_BACK.has(code)) {
      const restMs = Math.min(told.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS);
      if (restMs > 0) this.#notBeforeMs = this.#o.clock.monotonic() + restMs;
      // With a code the server itself has spoken, and it rolls back what it reports as failed; a proxy has none.
      const mayHaveRun = code === "" && status !== 429;
      return { again: true, mayHaveRun, error: (outcome) => new UnavailableError(text, outcome) };
    }
    if (byPolicy || status === 400 || status === 409 || status === 413) {
      throw new RestRefusal(request.path, text, byPolicy);
    }
    const mayHaveRun = code === "" && status >= 500;
    return { again: false, mayHaveRun, error: (outcome) => new UnavailableError(text + hint(status), outcome) };
  }
}

/** How one try ended: with an answer, or with an error and whether another try is worth it. */
type Met =
  | { readonly answer: Omit<RestAnswer, "unsure"> }
  | {
    readonly answer?: undefined;
    readonly again: boolean;
    readonly mayHaveRun: boolean;
    readonly error: (outcome: Outcome) => UnavailableError;
  };

/** What is repeatable may be asked again at once; of another write it has to be found out first what became of it. */
function noAnswer(request: RestRequest, cause: Error): Met {
  const mayHaveRun = !/connection refused|dns error|tcp connect error|failed to lookup/i.test(describeError(cause));
  return {
    again: request.method === "GET" || request.repeatable === true,
    mayHaveRun,
    error: (outcome) => new UnavailableError(`${named(request)}: ${describeError(cause)}`, outcome, { cause }),
  };
}

// The values of its filters stand in the URL, which `fetch` quotes.
function withoutUrl(cause: unknown, key: string): Error {
  return new Error(describeError(cause).replaceAll(/https?:\/\/[^\s)]+/g, "the server").replaceAll(key, "***"));
}

function headersOf(request: RestRequest, { key, apiKey }: { readonly key: string; readonly apiKey: string }): Headers {
  const prefer = [request.method === "PATCH" ? "return=representation" : "", request.prefer ?? ""].filter((p) =>
    p !== ""
  );
  const headers = new Headers({
    accept: "application/json",
    "accept-profile": "queue",
    apikey: apiKey,
    authorization: `Bearer ${key}`,
  });
  if (request.body !== undefined) headers.set("content-type", "application/json");
  if (request.method !== "GET") headers.set("content-profile", "queue");
  if (prefer.length > 0) headers.set("prefer", prefer.join(","));
  return headers;
}

function named(request: RestRequest): string {
  return `Cannot ${rightOf(request)}`;
}

/** What a key needs a right to: a table's rows may be read by a key that may not write them. */
function rightOf({ method, path }: RestRequest): string {
  return `${method} ${path}`;
}

function hint(status: number): string {
  if (status === 404 || status === 406) return ": check the URL, that the schema queue is exposed, and run migrate up";
  if (status >= 300 && status < 400) {
    return ": redirects are not followed, as the key is for this server alone; fix the URL";
  }
  return "";
}

function isRows(json: unknown): json is RestRow[] {
  return Array.isArray(json) && json.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
}

function saidBy(json: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = (typeof json === "object" && json !== null ? json : {}) as Record<string, unknown>;
  return { code: typeof code === "string" ? code : "", message: typeof message === "string" ? message : "" };
}

/**
 * Checks the URL of a PostgREST, and takes a slash at its end away.
 *
 * @throws {SettingsError} It is none, would send the key in the clear, or holds a secret or a query itself.
 */
export function checkRestUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const refuse = (why: string) => new SettingsError(`Cannot use the REST URL ${shown(url)} as ${why}`);
  if (url === null) throw refuse("it is no URL: give https://HOST/PATH, where PostgREST answers");
  const loopback = ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && loopback)) {
    throw refuse("the key would travel in the clear: give an https URL (http is for this machine alone)");
  }
  if (url.username !== "" || url.password !== "") throw refuse("it holds a password: give the key in its own file");
  if (url.search !== "" || url.hash !== "") throw refuse("it has a query: give it without");
  return url.href.replace(/\/+$/, "");
}

function shown(url: URL | null): string {
  return url === null ? "" : `${url.protocol}//${url.host}${url.pathname}`;
}
