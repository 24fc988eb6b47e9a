/**
 * The worker's HTTP port: whatever bytes come, in whatever pieces and however many at once, it neither ends nor hangs nor
 * says that it failed; probes are answered afterwards, and it stops within its time.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { createMetrics } from "../../src/core/prom_metrics.ts";
import type { Logger } from "../../src/core/log.ts";
import { type HttpServer, startHttp } from "../../src/runtime/http.ts";
import { bytesOf } from "./recipes.ts";
import type { Session, Target } from "./target.ts";

interface Input {
  /** What is sent, each on a connection of its own, all at once; a character is a byte. */
  readonly requests: readonly Sent[];
}

interface Sent {
  readonly bytes: string;
  /** Adds so many bytes of one header. */
  readonly header: number;
  /** Sent in so many pieces. */
  readonly pieces: number;
  /** What comes behind it: the end of the sending side, a broken connection, or nothing. */
  readonly then: "end" | "break" | "wait";
}

/** Whoever says nothing more is given up here: so long a test waits for an answer that need not come. */
const WAIT_MS = 60;
/** Held open over the whole run with half a request, as a slow client is. */
const SLOW_CLIENTS = 150;
const PROBE_MS = 5_000;
const STOP_MS = 5_000;

const word = fc.oneof(
  fc.constantFrom("GET", "HEAD", "POST", "get", "OPTIONS", "CONNECT", "TRACE", "PRI", "G\x00T", "GET\t", "DELETE"),
  fc.string({ unit: "binary-ascii", maxLength: 8 }),
);
const path = fc.oneof(
  fc.constantFrom(
    "/livez",
    "/healthz",
    "/readyz",
    "/metrics",
    "/",
    "*",
    "//",
    "/..%2f..",
    "/%",
    "/%00",
    "http://[",
    "/a?b#c",
  ),
  fc.constantFrom("http://x:99999/", "//[::1", "http://user:pw@h/livez", "\\\\x", "/livez/../metrics"),
  fc.string({ unit: "binary-ascii", maxLength: 20 }),
  fc.integer({ min: 1, max: 70_000 }).map((n) => `/${"a".repeat(n)}`),
);
const header = fc.oneof(
  fc.constantFrom(
    ...["Host: x", "Host: [", "Host: a b", "Host: x:99999", "Host:", "Content-Length: 5", "Content-Length: -1"],
    ...["Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked, gzip"],
    ...["Expect: 100-continue", "Connection: upgrade", "Upgrade: websocket", "Connection: close", "Range: bytes=0-"],
    ...["X: \xff", "X : y", ": y", " folded", "X: a\x00b", "Accept-Encoding: *", "Host: x\r\nHost: y"],
  ),
  fc.string({ unit: "binary-ascii", maxLength: 30 }),
);
const body = fc.oneof(
  fc.constant(""),
  fc.constantFrom("5\r\nhello\r\n0\r\n\r\n", "zz\r\n", "fffffffffffffffff\r\n", "hello", "0\r\nX: y\r\n\r\n"),
  fc.string({ unit: "binary-ascii", maxLength: 40 }),
);

const sent: fc.Arbitrary<Sent> = fc.record({
  bytes: fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(
        word,
        path,
        fc.constantFrom("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9", "", "\x00"),
        fc.array(header, { maxLength: 4 }),
        body,
      )
        .map(([method, target, version, headers, rest]) =>
          `${method} ${target} ${version}\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n${rest}`
        ),
    },
    { weight: 1, arbitrary: fc.string({ unit: "binary-ascii", maxLength: 200 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00",
      ),
    },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 1, max: 300 }).map((n) => "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n".repeat(n)),
    },
  ),
  header: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 600_000 }),
  }),
  pieces: fc.constantFrom(1, 2, 5),
  then: fc.constantFrom("end" as const, "break" as const, "wait" as const),
});

/** The target. */
export const httpTarget: Target<Input> = {
  name: "http",
  behaviour: "the worker's port survives any bytes, slow clients and many, and answers its probes afterwards",
  inputs: fc.record({ requests: fc.array(sent, { minLength: 1, maxLength: 12 }) }),
  open,
};

async function open(): Promise<Session<Input>> {
  const failures: string[] = [];
  const note = () => {};
  const logger: Logger = {
    debug: note,
    info: note,
    warn: note,
    error: (event, f) => failures.push(`${event} ${f?.error}`),
  };
  const well = { ok: true, reasons: [] };
  const server = startHttp({
    ...{ host: "127.0.0.1", port: 0, version: "fuzz@1", logger, metrics: createMetrics() },
    ...{ health: () => well, ready: () => Promise.resolve(well) },
  });
  const slow = await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => slowClient(server.port)));
  return {
    async run({ requests }) {
      await Promise.all(requests.map((request) => send(server.port, request)));
      await probe(server);
      assert.deepEqual(failures.splice(0), [], "it says that its own part failed");
    },
    async close() {
      await within(STOP_MS, "it stops", server.stop());
      for (const connection of slow) connection.close();
    },
  };
}

async function slowClient(port: number): Promise<Deno.Conn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(bytesOf("GET /livez HTTP/1.1\r\nHost: x\r\nX: a"));
  return connection;
}

async function send(port: number, { bytes, header: more, pieces, then }: Sent): Promise<void> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const all = bytesOf(more === 0 ? bytes : bytes.replace("\r\n", `\r\nX-Long: ${"y".repeat(more)}\r\n`));
  const timer = setTimeout(() => hangUp(connection), then === "break" ? 0 : PROBE_MS);
  try {
    const size = Math.ceil(all.length / pieces) || 1;
    const read = then === "break" ? Promise.resolve("") : readAnswer(connection);
    for (let at = 0; at < all.length; at += size) await writeAll(connection, all.subarray(at, at + size));
    if (then === "end") await connection.closeWrite();
    checkAnswer(await read);
  } catch (error) {
    // A connection that the other side has ended; what was read of it is judged all the same.
    if (error instanceof assert.AssertionError) throw error;
  } finally {
    clearTimeout(timer);
    hangUp(connection);
  }
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
}

/** All that comes until it ends, or says nothing for a while. */
async function readAnswer(connection: Deno.Conn): Promise<string> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  for (;;) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<null>((resolve) => timer = setTimeout(() => resolve(null), WAIT_MS));
    const read = connection.read(buffer).catch(() => null);
    const length = await Promise.race([read, silence]);
    clearTimeout(timer);
    if (length === null) return text;
    text += String.fromCharCode(...buffer.subarray(0, Math.min(length, 2_000)));
  }
}

function checkAnswer(text: string): void {
  // Frames of HTTP/2, which was asked for.
  if (text === "" || text.startsWith("\0\0")) return;
  const status = /^HTTP\/1\.[01] (\d{3}) /.exec(text)?.[1];
  assert.ok(status !== undefined, `no answer of HTTP: ${JSON.stringify(text.slice(0, 100))}`);
  assert.notEqual(status, "500", text.slice(0, 300));
}

async function probe(server: HttpServer): Promise<void> {
  for (const path of ["/livez", "/healthz", "/readyz", "/metrics"]) {
    const response = await within(PROBE_MS, `it answers ${path}`, fetch(server.url + path));
    assert.equal(response.status, 200, path);
    await response.text();
  }
}

async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({ message: `not within ${ms} ms: ${what}` })), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function hangUp(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It was closed already.
  }
}
