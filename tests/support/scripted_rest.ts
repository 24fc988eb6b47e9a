/**
 * A server in front of a real PostgREST that does what one will not do on demand: it loses answers, is busy, redirects.
 *
 * @module
 */

/** What becomes of one request. */
export type Fate =
  /** Handed on, and its answer too. */
  | "pass"
  /** Handed on; its answer is cut off midway. */
  | "lose"
  /** Handed on; its answer never comes. */
  | "late"
  /** Not handed on, and never answered. */
  | "hang"
  /** Not handed on; an answer that is cut off midway. */
  | "drop"
  /** Not handed on. */
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** Handed on, but this is answered. */
  | { readonly then: number };

/** A request as it came. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string;
  readonly headers: Headers;
  readonly body: string;
}

/** The server. */
export interface ScriptedRest {
  readonly url: string;
  readonly seen: Seen[];
  /** Decides each request's fate, in order of their arrival. */
  script: (request: Seen) => Fate | Promise<Fate>;
  stop(): Promise<void>;
}

/** Starts a server that passes everything on. */
export function scriptedRest(target: string): ScriptedRest {
  const seen: Seen[] = [];
  const over = new AbortController();
  const never = async () => {
    if (!over.signal.aborted) await new Promise((resolve) => over.signal.addEventListener("abort", resolve));
    return new Response("");
  };
  const handle = async (request: Request): Promise<Response> => {
    const { pathname, search, searchParams } = new URL(request.url);
    const body = await request.text();
    const authorization = request.headers.get("authorization") ?? "";
    const { method, headers: sent } = request;
    const one: Seen = { method, path: pathname, query: searchParams, authorization, headers: sent, body };
    seen.push(one);
    const fate = await server.script(one);
    if (fate === "drop") return cutOff();
    if (fate === "hang") return await never();
    if (typeof fate === "object" && "status" in fate) {
      return new Response(fate.body ?? null, { status: fate.status, headers: fate.headers ?? {} });
    }
    const headers = new Headers(request.headers);
    headers.delete("host");
    const passed = await fetch(`${target}${pathname}${search}`, {
      ...{ method: request.method, headers, redirect: "manual" },
      ...(body === "" ? {} : { body }),
    });
    const text = await passed.text();
    if (fate === "lose") return cutOff();
    if (fate === "late") return await never();
    if (typeof fate === "object") return new Response("", { status: fate.then });
    const bodyless = passed.status === 204 || passed.status === 304;
    return new Response(bodyless ? null : text, { status: passed.status, headers: passed.headers });
  };
  const http = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {}, onError: () => cutOff() }, handle);
  const server: ScriptedRest = {
    url: `http://127.0.0.1:${http.addr.port}`,
    seen,
    script: () => "pass",
    stop: async () => {
      over.abort();
      await http.shutdown();
    },
  };
  return server;
}

/** Half an answer: the connection breaks before the rest of it. */
function cutOff(): Response {
  let sent = false;
  const body = new ReadableStream({
    pull(controller) {
      if (sent) return controller.error(new Error("cut off"));
      sent = true;
      controller.enqueue(new TextEncoder().encode("[{"));
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}
