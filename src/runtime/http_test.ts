import assert from "node:assert/strict";
import { SettingsError } from "../core/errors.ts";
import { silentLogger } from "../core/log.ts";
import { createMetrics } from "../core/prom_metrics.ts";
import { type HttpOptions, type HttpServer, startHttp } from "./http.ts";

function start(options: Partial<HttpOptions> = {}): HttpServer {
  return startHttp({
    host: "127.0.0.1",
    port: 0,
    version: "test@1",
    logger: silentLogger,
    metrics: createMetrics(),
    health: () => ({ ok: true, reasons: [] }),
    ready: () => Promise.resolve({ ok: true, reasons: [] }),
    ...options,
  });
}

async function ask(server: HttpServer, path: string, init?: RequestInit): Promise<[number, unknown]> {
  const response = await fetch(server.url + path, init);
  return [response.status, await response.json()];
}

Deno.test("it says where it listens, and where a person on this machine would open it", async () => {
  for (
    const [host, address, url] of [
      ["127.0.0.1", "127.0.0.1", "http://127.0.0.1"],
      ["0.0.0.0", "0.0.0.0", "http://127.0.0.1"],
      ["::", "[::]", "http://[::1]"],
    ] as const
  ) {
    const server = start({ host });
    try {
      assert.deepEqual([server.address, server.url], [`${address}:${server.port}`, `${url}:${server.port}`]);
    } finally {
      await server.stop();
    }
  }
});

Deno.test("each probe answers from its own source, 503 with reasons when it is not well", async () => {
  const sick = (reason: string) => ({ ok: false, reasons: [reason] });
  const server = start({ health: () => sick("the loop is stuck"), ready: () => Promise.resolve(sick("draining")) });
  try {
    assert.deepEqual(await ask(server, "/healthz"), [503, sick("the loop is stuck")]);
    assert.deepEqual(await ask(server, "/readyz"), [503, sick("draining")]);
    assert.deepEqual(await ask(server, "/livez"), [200, { ok: true, reasons: [] }]);
  } finally {
    await server.stop();
  }
});

Deno.test("/readyz answers within its limit when the storage does not, and when it throws", async () => {
  const gate = Promise.withResolvers<never>();
  const slow = start({ ready: () => gate.promise, readyTimeoutMs: 5 });
  const broken = start({ ready: () => Promise.reject(new Error("no route")) });
  try {
    assert.deepEqual(await ask(slow, "/readyz"), [503, {
      ok: false,
      reasons: ["the storage did not answer within 5 ms"],
    }]);
    assert.deepEqual(await ask(broken, "/readyz"), [503, { ok: false, reasons: ["no route"] }]);
  } finally {
    await slow.stop();
    await broken.stop();
  }
});

Deno.test("/metrics is exposition text; other paths and methods are refused", async () => {
  const server = start();
  try {
    const response = await fetch(`${server.url}/metrics`);
    assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    assert.match(await response.text(), /^# HELP laneway_/m);
    assert.equal((await ask(server, "/nope"))[0], 404);
    assert.equal((await ask(server, "/healthz", { method: "POST", body: "x" }))[0], 405);
  } finally {
    await server.stop();
  }
});

Deno.test("a handler that fails answers 500 without telling what failed", async () => {
  const server = start({
    health: () => {
      throw new Error("password s3cret");
    },
  });
  try {
    const [status, body] = await ask(server, "/healthz");
    assert.equal(status, 500);
    assert.equal(JSON.stringify(body).includes("s3cret"), false);
  } finally {
    await server.stop();
  }
});

Deno.test("it stops though a client holds half a request, or an answer never comes", async () => {
  const halves = ["", "GET /livez HTTP/1.1\r\nHost: x\r\nX: a", "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"];
  const gate = Promise.withResolvers<never>();
  const server = start({ ready: () => gate.promise, readyTimeoutMs: 60_000 });
  const clients: Deno.Conn[] = [];
  for (const half of halves) {
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    await client.write(new TextEncoder().encode(half));
    clients.push(client);
  }
  await ask(server, "/livez");
  // Would hang here.
  await server.stop();
  await assert.rejects(Deno.connect({ hostname: "127.0.0.1", port: server.port }), "it does not listen any more");
  gate.reject(new Error("over"));
  for (const client of clients) client.close();
});

Deno.test("a request that is under way as it stops is answered whole", async () => {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const reasons = ["x".repeat(1_000_000)];
  const server = start({
    ready: async () => {
      asked.resolve();
      await gate.promise;
      return { ok: false, reasons };
    },
  });
  const answer = ask(server, "/readyz");
  await asked.promise;
  const stopped = server.stop();
  gate.resolve();
  assert.deepEqual(await answer, [503, { ok: false, reasons }]);
  await stopped;
});

Deno.test("a taken port is one line that names the port and the flags", async () => {
  const server = start();
  try {
    assert.throws(
      () => start({ port: server.port }),
      (error) =>
        error instanceof SettingsError && error.message.includes(`127.0.0.1:${server.port}`) &&
        error.message.includes("--http-port") && !error.message.includes("\n"),
    );
  } finally {
    await server.stop();
  }
});
