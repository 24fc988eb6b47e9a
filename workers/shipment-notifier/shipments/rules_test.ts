import assert from "node:assert/strict";
import { DEFAULT_STAGGER, newId, ValidationError } from "../../../mod.ts";
import { checkNewShipment, isWebhookUrl, planResume } from "./rules.ts";
import type { DueParked, Shipment } from "./types.ts";

const GOOD = {
  id: "01A22C06-0E87-77B1-BAED-71881F3638F9",
  carrier: "日本郵便",
  trackingNumber: "1Z 999AA1-01",
  recipientName: `D'Angelo "Zed" 🚚`,
  destination: "Łódź, PL",
  webhookUrl: "https://hooks.example:8443/a?b=1",
};

Deno.test("checkNewShipment() takes names of any script, and lowers the id", () => {
  assert.deepEqual(checkNewShipment(GOOD), { ...GOOD, id: GOOD.id.toLowerCase() });
  assert.deepEqual(checkNewShipment({ ...GOOD, lane: "express" }).lane, "express");
});

const BAD: [string, unknown, RegExp][] = [
  ["id", "nope", /uuid/],
  ["carrier", "", /blank/],
  ["carrier", "x".repeat(61), /60/],
  ["carrier", undefined, /missing/],
  ["trackingNumber", "1", /4 to 40/],
  ["trackingNumber", "12345\n", /4 to 40/],
  ["trackingNumber", 12345, /text/],
  ["recipientName", "Nul\0", /control/],
  ["recipientName", "half \ud800", /surrogate/],
  ["recipientName", "two\nlines", /control/],
  ["recipientName", null, /text/],
  ["destination", "   ", /blank/],
  ["webhookUrl", "ftp://a.example", /http/],
  ["webhookUrl", `https://a.example/${"x".repeat(2_000)}`, /2000/],
  ["lane", "no lane", /lane|letters/],
];

for (const [field, value, why] of BAD) {
  Deno.test(`checkNewShipment() refuses ${field} ${JSON.stringify(value)?.slice(0, 30)}, naming it`, () => {
    assert.throws(() => checkNewShipment({ ...GOOD, [field]: value }), (error: unknown) => {
      assert.ok(error instanceof ValidationError);
      assert.equal(error.field, field);
      assert.match(error.message, why);
      return true;
    });
  });
}

Deno.test("checkNewShipment() refuses what is no object, and names a field that means nothing", () => {
  for (const value of [null, 1, "x", [], undefined]) assert.throws(() => checkNewShipment(value), ValidationError);
  assert.throws(() => checkNewShipment({ ...GOOD, trackingNumbr: "x" }), /trackingNumbr/);
});

Deno.test("isWebhookUrl() takes http and https without user, password and fragment", () => {
  for (const url of ["http://a", "https://127.0.0.1:1/x", "https://[::1]/"]) assert.equal(isWebhookUrl(url), true, url);
  const bad = ["", "a", "//a", "https://", "https://u@a/", "https://u:p@a/", "https://a/#f", "javascript:1", newId()];
  for (const url of bad) assert.equal(isWebhookUrl(url), false, url);
});

function due(url: string, probeInMs: number | null, host: string | null = null): DueParked {
  return { shipment: { webhookUrl: url } as Shipment, host, probeInMs };
}

Deno.test("planResume() lets shipments of one host go one after the other, and those of another beside them", () => {
  const options = { stagger: { spacingMs: 100, spreadMs: 10_000 }, probeHoldMs: 60_000, random: () => 0.5 };
  const plans = planResume([
    due("https://a.example/1", null),
    due("https://a.example/2", null, "a.example"),
    due("https://b.example/", null),
    due("https://a.example/3", null),
  ], options);
  assert.deepEqual(plans.map(({ startMs }) => startMs), [0, 150, 0, 250]);
  assert.ok(plans.every(({ postponeMs }) => postponeMs === 0));
});

Deno.test("planResume() sends one to try an endpoint that is down, once it may be tried; the others wait on", () => {
  const options = { stagger: DEFAULT_STAGGER, probeHoldMs: 60_000, random: () => 0 };
  const plans = planResume([
    due("https://a.example/1", -5, "a.example"),
    due("https://a.example/2", 0, "a.example"),
    due("https://b.example/1", 1_200.4, "b.example"),
    due("https://c.example/1", null, "c.example"),
  ], options);
  assert.deepEqual(plans.map(({ startMs, postponeMs }) => [startMs, postponeMs]), [
    [0, 0],
    [null, 60_000],
    [null, 1_201],
    [0, 0],
  ]);
});
