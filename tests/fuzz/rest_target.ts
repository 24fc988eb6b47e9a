/**
 * Answers of a REST server that is not what it should be: cut off, of other types, huge, deep, busy, no JSON at all. A host
 * then gets items that are whole, or an error of the closed set; never anything else, and in bounded time.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Clock } from "../../src/core/clock.ts";
import { LanewayError } from "../../src/core/errors.ts";
import { silentLogger } from "../../src/core/log.ts";
import { DatabaseTime } from "../../src/host/database_time.ts";
import { RestClient } from "../../src/host/rest_client.ts";
import { createRestHostApi } from "../../src/host/rest_host_api.ts";
import { RestWorkStorage } from "../../src/host/rest_storage.ts";
import { parseWindows } from "../../src/host/windows.ts";
import type { HostApi } from "../../src/host/types.ts";
import type { OwnedItem } from "../../src/work/storage.ts";
import { bytesOf, make, oddText, type Recipe, recipes } from "./recipes.ts";
import type { Session, Target } from "./target.ts";

interface Input {
  /** One after the other, by one host: what an earlier answer told is used by the next call. */
  readonly calls: readonly Call[];
  /** To the first request, the second and so on; the last one to all after it. */
  readonly answers: readonly Answer[];
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  /** The connection breaks after so many bytes of the body; null: it does not. */
  readonly cut: number | null;
}

/** Rows as they should be with some columns changed, any JSON, bytes, or something deep. */
type Body =
  | {
    readonly rows: readonly {
      readonly changed: Readonly<Record<string, Recipe>>;
      readonly without: readonly string[];
    }[];
  }
  | { readonly json: Recipe }
  | { readonly bytes: string }
  | { readonly deep: number };

const CALLS = [
  "claim",
  "readClaimed",
  "done",
  "failed",
  "retry",
  "back",
  "extend",
  "readClaims",
  "beat",
  "read",
] as const;
type Call = (typeof CALLS)[number];
const ID = "01900000-0000-7000-8000-000000000001";
const TIME = "2026-01-01T00:00:00.123456+00:00";
const ROW: Readonly<Record<string, unknown>> = {
  ...{ org_id: ID, id: ID, created_at: TIME, updated_at: TIME, created_by: ID, updated_by: ID, kind: "FUZZ" },
  ...{ target_id: null, idempotency_key: "key", payload: { a: 1 }, lane: "default", status: "claimed", priority: 10 },
  ...{ weight: "light", host_preference: null, available_at: TIME, claimed_by: "w", claim_token: ID },
  ...{ lease_expires_at: TIME, attempts: 1, max_attempts: 3, claims: 1, expiries: 0, last_error: null, note: null },
  ...{
    audit_id: null,
    request_id: null,
    traceparent: null,
    name: "host",
    enabled: true,
    org_ids: [ID],
    kinds: ["FUZZ"],
  },
  ...{ weights: ["light"], priority_floor: 5, windows: [], last_heartbeat_at: TIME, current_workers: 0 },
};
const COLUMNS = Object.keys(ROW);

const odd: fc.Arbitrary<Recipe> = fc.oneof(
  recipes(1),
  oddText,
  fc.constantFrom<Recipe>(
    ...["", "infinity", "-infinity", "9999-99-99", "275760-09-13T00:00:00Z", "claimed", "done", "failed", "queued"],
    ...[null, [], {}, true, 0, 1.5, -1, [null]],
    ...["+275760-09-13T00:00:00Z", "-271821-04-20T00:00:00Z"],
  ),
);

const row = fc.record({
  changed: fc.dictionary(fc.constantFrom(...COLUMNS), odd, { maxKeys: 2 }),
  without: fc.oneof(
    { weight: 4, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.subarray(COLUMNS, { maxLength: 2 }) },
  ),
});

const body: fc.Arbitrary<Body> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ rows: fc.array(row, { maxLength: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ json: fc.oneof(recipes(1), fc.array(odd, { maxLength: 3 })) }) },
  { weight: 1, arbitrary: fc.record({ json: fc.record({ code: oddText, message: oddText }) as fc.Arbitrary<Recipe> }) },
  {
    weight: 1,
    arbitrary: fc.record({ bytes: fc.string({ unit: "binary-ascii", maxLength: 60 }).map((s) => `${s}\xff`) }),
  },
  { weight: 1, arbitrary: fc.record({ deep: fc.constantFrom(10, 1_000, 100_000) }) },
);

const answer: fc.Arbitrary<Answer> = fc.record({
  status: fc.oneof(
    { weight: 6, arbitrary: fc.constant(200) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(200, 201, 204, 206, 300, 302, 304, 400, 401, 403, 404, 406, 409, 413, 429),
    },
    { weight: 1, arbitrary: fc.constantFrom(500, 502, 503, 504, 522, 599) },
  ),
  headers: fc.dictionary(
    fc.constantFrom("retry-after", "content-range", "date", "content-type", "location", "content-encoding"),
    fc.constantFrom(
      "",
      "1",
      "-1",
      "99999999999999",
      "x",
      "*/5",
      "0-1/*",
      "gzip",
      "Thu, 01 Jan 1970 00:00:00 GMT",
      "http://x/",
    ),
    { maxKeys: 2 },
  ),
  body,
  cut: fc.option(fc.nat({ max: 300 }), { freq: 8 }),
});

/** The target. */
export const restTarget: Target<Input> = {
  name: "rest",
  behaviour:
    "whatever a REST server answers, a host gets items that are whole or an error of the closed set, in bounded time",
  inputs: fc.record({
    calls: fc.array(fc.constantFrom(...CALLS), { minLength: 1, maxLength: 3 }),
    answers: fc.array(answer, { minLength: 1, maxLength: 4 }),
  }),
  open,
};

/** More than every try of a call may take. */
const LONGEST_MS = 10_000;
const MAX_BYTES = 500_000;

function open(): Session<Input> {
  let answers: readonly Answer[] = [];
  let asked = 0;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {}, onError: () => new Response() },
    async (request) => {
      await request.text();
      const one = answers[Math.min(asked++, answers.length - 1)];
      return one === undefined ? new Response("[]") : respond(one);
    },
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  return {
    async run(input) {
      answers = input.answers;
      asked = 0;
      const startedMs = performance.now();
      const host = makeHost(url);
      for (const name of input.calls) await check(() => call(host, name));
      assert.ok(performance.now() - startedMs < LONGEST_MS, "it took too long");
    },
    close: () => server.shutdown(),
  };
}

async function check(call: () => Promise<unknown>): Promise<void> {
  try {
    checkResult(await call());
  } catch (error) {
    assert.ok(error instanceof LanewayError, `a ${(error as Error)?.name}: ${(error as Error)?.stack}`);
    assert.ok(error.message.length < 3_000, `a message of ${error.message.length} characters`);
    assert.ok(!error.message.includes("SECRET"), "the key is told");
  }
}

/** A clock whose pauses are over at once, though it says that they took their time. */
function hurried(): Clock {
  let ahead = 0;
  return {
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
    sleep: (ms) => {
      ahead += ms;
      return Promise.resolve();
    },
  };
}

interface Host {
  readonly storage: RestWorkStorage;
  readonly api: HostApi;
}

function makeHost(url: string): Host {
  const clock = hurried();
  const readKey = () => "SECRET";
  const notifier = { notify: () => {}, close: () => Promise.resolve() };
  const client = new RestClient({
    ...{ url, readKey, clock, logger: silentLogger, notifier: notifier as never },
    ...{ timeoutMs: 2_000, budgetMs: 60_000, maxBytes: MAX_BYTES },
  });
  const time = new DatabaseTime(clock);
  time.note(Date.UTC(2026, 0, 1));
  const allowed = { host: "host", limit: 2, kinds: ["FUZZ"], orgIds: [ID], weights: ["light"], priorityFloor: 5 };
  const storage = new RestWorkStorage({ client, time, gate: { allow: () => allowed as never } });
  const api = createRestHostApi({ client, host: "host", clock, time, parseWindows });
  return { storage, api };
}

async function call({ storage, api }: Host, name: Call): Promise<unknown> {
  const ref = { orgId: ID, id: ID, token: ID };
  switch (name) {
    case "claim":
      return await storage.claim({
        lane: "default",
        kinds: ["FUZZ"],
        worker: "w",
        leaseMs: 30_000,
        limit: 2,
        token: ID,
      });
    case "readClaimed":
      return await storage.readClaimed(ID);
    case "done":
      return await storage.settle([{ ...ref, to: "done" }]);
    case "failed":
      return await storage.settle([{ ...ref, to: "failed", error: "e", auditId: ID }]);
    case "retry":
      return await storage.settle([{ ...ref, to: "retry", delayMs: 5, error: "e" }]);
    case "back":
      return await storage.settle([{ ...ref, to: "back", delayMs: 0, note: null, ran: false }]);
    case "extend":
      return await storage.extendLeases([ref], 30_000);
    case "readClaims":
      return await storage.readClaims([ref]);
    case "beat":
      return await api.beat(1);
    case "read":
      return await api.read();
  }
}

const OUTCOMES = ["WRITTEN", "ALREADY", "REFUSED"];

/** What was brought is whole. */
function checkResult(result: unknown): void {
  if (!Array.isArray(result)) return;
  for (const one of result as (OwnedItem | string)[]) {
    if (typeof one === "string") assert.ok(OUTCOMES.includes(one), one);
    else if (typeof one === "object" && one !== null && "item" in one) checkItem(one);
  }
}

function checkItem({ orgId, item }: OwnedItem): void {
  assert.equal(typeof orgId, "string");
  for (const [name, value] of Object.entries(item)) {
    const fits = value === null || typeof value === "string" || Number.isFinite(value) ||
      value instanceof Date && !Number.isNaN(value.getTime()) || name === "payload";
    assert.ok(fits, `${name} is ${String(value)}`);
  }
  assert.ok(
    typeof item.payload === "object" && item.payload !== null && !Array.isArray(item.payload),
    "its payload is no object",
  );
}

function respond({ status, headers, body, cut }: Answer): Response {
  if (status === 204 || status === 304) return new Response(null, { status, headers });
  const bytes = bytesOfBody(body);
  if (cut === null) return new Response(bytes, { status, headers });
  const half = new ReadableStream({
    pull(controller) {
      controller.enqueue(bytes.subarray(0, cut + 1));
      controller.error(new Error("cut off"));
    },
  });
  return new Response(half, { status, headers });
}

function bytesOfBody(body: Body): Uint8Array<ArrayBuffer> {
  if ("bytes" in body) return bytesOf(body.bytes);
  if ("deep" in body) return bytesOf(`[{"payload":${"[".repeat(body.deep)}${"]".repeat(body.deep)}}]`);
  if ("json" in body) return new TextEncoder().encode(asJson(make(body.json)));
  const rows = body.rows.map(({ changed, without }) => {
    const made = Object.entries(changed).map(([name, recipe]) => [name, make(recipe)]);
    const kept = Object.entries({ ...ROW, ...Object.fromEntries(made) }).filter(([name]) => !without.includes(name));
    return Object.fromEntries(kept);
  });
  return new TextEncoder().encode(asJson(rows));
}

function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "[null]";
  }
}
