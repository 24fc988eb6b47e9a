import assert from "node:assert/strict";
import { EMPTY_UUID } from "../core/ids.ts";
import { parseLine } from "./enqueue_request.ts";

const ORG = "018f0000-0000-7000-8000-000000000001";
const LINE = { org: ORG, kind: "A", key: "k", payload: { a: 1 } };

function parse(fields: Record<string, unknown>): ReturnType<typeof parseLine> {
  return parseLine(JSON.stringify({ ...LINE, ...fields }), {});
}

Deno.test("parseLine() reads a whole line, for the org itself when no user is named", () => {
  assert.deepEqual(parse({ lane: "l", priority: 3, delayMs: 5 }), {
    orgId: ORG,
    userId: EMPTY_UUID,
    item: { kind: "A", idempotencyKey: "k", payload: { a: 1 }, lane: "l", priority: 3 },
    options: { delayMs: 5 },
  });
});

Deno.test("parseLine() fills in defaults, and the line's own values go before them", () => {
  const request = parseLine(JSON.stringify({ kind: "B", key: "k", payload: {} }), { org: ORG, kind: "A", lane: "x" });
  assert.ok(typeof request !== "string");
  assert.deepEqual([request.orgId, request.item.kind, request.item.lane], [ORG, "B", "x"]);
});

Deno.test("parseLine() says what is wrong with a line, by the field's name", () => {
  assert.match(String(parseLine("{bad", {})), /^the line is no JSON: /);
  assert.equal(parseLine("[1]", {}), "the line is no JSON object");
  assert.equal(parse({ key: undefined }), "key is missing");
  assert.equal(parse({ key: undefined, kye: "k" }), 'unknown field "kye", did you mean key?');
  assert.match(String(parse({ org: "acme" })), /^org: must be a uuid/);
  assert.match(String(parse({ payload: [] })), /^payload: /);
  assert.match(String(parse({ notBefore: "tomorrow" })), /^notBefore: /);
  assert.match(String(parse({ delayMs: 1, notBefore: "2026-01-01T00:00:00Z" })), /exclude each other/);
});

Deno.test("a line's payload is handed on as it is, whatever its keys are called", () => {
  const line =
    `{"org":"01900000-0000-7000-8000-000000000001","kind":"K","key":"k","payload":{"__proto__":{"a":1},"b":2}}`;
  const request = parseLine(line, {});
  assert.ok(typeof request === "object", String(request));
  assert.equal(JSON.stringify(request.item.payload), `{"__proto__":{"a":1},"b":2}`);
});
