/**
 * The worker's HTTP side: probes and metrics, and nothing that changes anything.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import { SettingsError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { ScrapableMetrics } from "../core/prom_metrics.ts";
import type { Probe } from "./types.ts";

/** What the server answers from. */
export interface HttpOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** `<name>@<release>`, shown by the index. */
  readonly version: string;
  readonly logger: Logger;
  readonly metrics: ScrapableMetrics;
  /** In-memory health. */
  health(): Probe;
  /** Asks the storage. */
  ready(): Promise<Probe>;
  /** The longest `/readyz` waits for an answer, milliseconds. Default 2 000. */
  readonly readyTimeoutMs?: number;
}

/** A listening server. */
export interface HttpServer {
  /** `http://host:port`, as a person would open it on this machine. */
  readonly url: string;
  /** Where it listens: `0.0.0.0:9464`, which others reach too, is told apart from `127.0.0.1:9464`. */
  readonly address: string;
  readonly port: number;
  /** Stops listening; open requests get one second. Whoever holds half a request then is left to the end of the process. */
  stop(): Promise<void>;
}

const STOP_MS = 1_000;

/**
 * Starts listening.
 *
 * @throws {SettingsError} The port is taken or may not be had; the message names the flags.
 */
export function startHttp(options: HttpOptions): HttpServer {
  const server = listen(options);
  const port = server.addr.port;
  const at = (host: string) => `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    url: `http://${at(reachableHost(options.host))}`,
    address: at(options.host),
    port,
    async stop() {
      // A client that never ends its request holds `shutdown` up for ever, and an abort then throws where nobody catches it.
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => timer = setTimeout(resolve, STOP_MS));
      await Promise.race([server.shutdown().catch(() => {}), late]);
      clearTimeout(timer);
      server.unref();
    },
  };
}

/** The host to call a server under that listens on `host`: a wildcard is reached over loopback. */
export function reachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}

function listen(options: HttpOptions): Deno.HttpServer<Deno.NetAddr> {
  try {
    return Deno.serve({
      hostname: options.host,
      port: options.port,
      onListen: () => {},
      onError: (error) => {
        options.logger.error("http.failed", { error: describeError(error) });
        return answer(500, { ok: false, reasons: ["the handler failed; see the log"] });
      },
    }, (request) => route(request, options));
  } catch (cause) {
    throw new SettingsError(`Cannot listen on ${options.host}:${options.port}: ${explain(cause)}`, { cause });
  }
}

function explain(cause: unknown): string {
  if (cause instanceof Deno.errors.AddrInUse) {
    return "another program has the port; use another --http-port (0 for any free one) or --http off";
  }
  if (cause instanceof Deno.errors.PermissionDenied) {
    return "the system does not allow this port; use a --http-port above 1023";
  }
  if (cause instanceof Deno.errors.AddrNotAvailable) {
    return "this machine does not have the address; use another --http-host, such as 127.0.0.1 or 0.0.0.0";
  }
  return `${describeError(cause)}; check --http-host and --http-port`;
}

async function route(request: Request, options: HttpOptions): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return answer(405, { ok: false, reasons: ["only GET and HEAD are answered here"] }, { allow: "GET, HEAD" });
  }
  switch (URL.parse(request.url)?.pathname) {
    case undefined:
      // Whatever its Host header says stands in there.
      return answer(400, { ok: false, reasons: ["the request names no address that can be read"] });
    case "/":
      return answer(200, { worker: options.version, paths: ["/healthz", "/livez", "/readyz", "/metrics"] });
    case "/livez":
      return probe({ ok: true, reasons: [] });
    case "/healthz":
      return probe(options.health());
    case "/readyz":
      return probe(await readyInTime(options));
    case "/metrics":
      return new Response(await options.metrics.text(), {
        headers: { "content-type": options.metrics.contentType, "cache-control": "no-store" },
      });
    default:
      return answer(404, { ok: false, reasons: ["there is no such path; see /"] });
  }
}

async function readyInTime(options: HttpOptions): Promise<Probe> {
  const limitMs = options.readyTimeoutMs ?? 2_000;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Probe>((resolve) => {
    timer = setTimeout(
      () => resolve({ ok: false, reasons: [`the storage did not answer within ${limitMs} ms`] }),
      limitMs,
    );
  });
  try {
    return await Promise.race([options.ready(), late]);
  } catch (error) {
    return { ok: false, reasons: [describeError(error)] };
  } finally {
    clearTimeout(timer);
  }
}

function probe(result: Probe): Response {
  return answer(result.ok ? 200 : 503, { ok: result.ok, reasons: result.reasons });
}

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body) + "\n", {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
  });
}
