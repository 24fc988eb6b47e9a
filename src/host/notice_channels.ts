/**
 * Where notices go. Every error is put in words of this file: what a platform says of a failed request holds its URL, and
 * a webhook's URL is a secret.
 *
 * @module
 */
import { boundText } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";

/** A notice as a channel words it. */
export interface ChannelNotice {
  /** What it is counted by. */
  readonly cause: string;
  /** What happened. */
  readonly text: string;
  /** How many like it were held back since the last. */
  readonly held: number;
  /** When it happened, by the host's clock. */
  readonly at: Date;
  /** Who speaks. */
  readonly source: string;
}

/** Sends a request and reads its answer as JSON; null where it holds none. */
export type NoticeRequest = (request: {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}) => Promise<unknown>;

/** One way to tell people. */
export interface NoticeChannel {
  /** For the log: `webhook`, `github`. */
  readonly name: string;
  /** Sends one notice. @throws {NoticeRefused} */
  send(notice: ChannelNotice, request: NoticeRequest): Promise<void>;
}

/** A notice that was not taken. Its message names no URL. */
export class NoticeRefused extends Error {
  override readonly name = "NoticeRefused";
  /** Whether another try may be taken. */
  readonly transient: boolean;
  /** When the server asked to be tried again, milliseconds from now; null when it did not say. */
  readonly retryAfterMs: number | null;

  /** Says with the message whether another try makes sense. */
  constructor(message: string, options: { readonly transient: boolean; readonly retryAfterMs?: number | null }) {
    super(message);
    this.transient = options.transient;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

// The longest texts Discord takes are 256 and 4 096 characters, 6 000 in all.
const MAX_TITLE = 256;
const MAX_DESCRIPTION = 4_000;
const RED = 0xd83a3a;
// A page of issues with long bodies: cut off it would be no list, and every notice a new issue.
const MAX_ANSWER_BYTES = 8_388_608;
/** Open bugs looked through, the newest first, for one of the same title. */
const [A_PAGE, MAX_PAGES] = [50, 10];
const AGENT = "laneway-host-runner";

/** A Discord webhook, or whatever takes its embeds. */
export function webhookChannel(url: string): NoticeChannel {
  return {
    name: "webhook",
    async send({ cause, text, held, at, source }, request) {
      const fields = [{ name: "from", value: source, inline: true }];
      if (held > 0) fields.push({ name: "held back", value: String(held), inline: true });
      const embed = {
        title: boundText(cause, MAX_TITLE),
        description: boundText(text, MAX_DESCRIPTION),
        color: RED,
        timestamp: at.toISOString(),
        fields,
      };
      // What an error says must ring nobody's bell.
      await request({ method: "POST", url, body: { embeds: [embed], allowed_mentions: { parse: [] } } });
    },
  };
}

/** How issues are opened. */
export interface GithubOptions {
  /** `owner/name`. */
  readonly repo: string;
  /** May read and write issues of that repository alone. */
  readonly token: string;
  /** Default `https://api.github.com`. */
  readonly apiUrl?: string;
}

/** One issue a cause and source, labelled `bug`; while it is open it is not opened again, by whatever process. */
export function githubChannel({ repo, token, apiUrl = "https://api.github.com" }: GithubOptions): NoticeChannel {
  const url = `${apiUrl}/repos/${repo}/issues`;
  const headers = {
    authorization: `Bearer ${token}`,
    accept: "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
  };
  return {
    name: "github",
    async send({ cause, text, at, source }, request) {
      const title = boundText(`[${source}] ${cause}`, MAX_TITLE);
      for (let page = 1; page <= MAX_PAGES; page++) {
        const query = `state=open&labels=bug&per_page=${A_PAGE}${page === 1 ? "" : `&page=${page}`}`;
        const open = await request({ method: "GET", url: `${url}?${query}`, headers });
        if (!Array.isArray(open)) throw new NoticeRefused("its open issues came as no list", { transient: false });
        if (open.some((issue) => titleOf(issue) === title)) return;
        if (open.length < A_PAGE) break;
      }
      // Indented, so that nothing in it is read as markup or rings a bell.
      const quoted = text.split("\n").map((line) => `    ${line}`).join("\n");
      const body = `${source}, first seen ${at.toISOString()}:\n\n${quoted}\n`;
      await request({ method: "POST", url, headers, body: { title, body, labels: ["bug"] } });
    },
  };
}

function titleOf(issue: unknown): unknown {
  return typeof issue === "object" && issue !== null && "title" in issue ? issue.title : null;
}

/** Requests of one notice: bounded in time and size, and never redirected with what they carry. */
export function noticeRequest(
  options: { readonly fetch: typeof fetch; readonly timeoutMs: number; readonly stop: AbortSignal },
): NoticeRequest {
  return async ({ method, url, headers, body }) => {
    using bounded = eitherOf(options.stop, AbortSignal.timeout(options.timeoutMs));
    const { signal } = bounded;
    let response: Response;
    let text: string;
    try {
      response = await options.fetch(url, {
        method,
        redirect: "manual",
        signal,
        headers: {
          "user-agent": AGENT,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      text = await boundedText(response);
    } catch {
      const why = signal.aborted ? `it did not answer within ${options.timeoutMs} ms` : "it could not be reached";
      throw new NoticeRefused(`the server did not take it: ${why}`, { transient: true });
    }
    if (!response.ok) throw refusal(response);
    return parsed(text);
  };
}

function refusal(response: Response): NoticeRefused {
  const { status } = response;
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return new NoticeRefused(`the server answered ${status}`, {
    transient: status === 429 || status >= 500,
    retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : null,
  });
}

async function boundedText(response: Response): Promise<string> {
  if (response.body === null) return "";
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of response.body) {
    bytes += chunk.length;
    // Leaving the loop cancels what is left of the body.
    if (bytes > MAX_ANSWER_BYTES) break;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
