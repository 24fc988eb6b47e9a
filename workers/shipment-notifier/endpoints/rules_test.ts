import assert from "node:assert/strict";
import { DEFAULT_ENDPOINT_POLICY, hostOf, probeDelay } from "./rules.ts";

Deno.test("probeDelay() doubles with each failure past the bound, to its cap, and never overflows", () => {
  const policy = { downAfter: 3, probeMs: 5_000, probeCapMs: 900_000 };
  assert.deepEqual([1, 3, 4, 5, 10, 11, 1_000_000].map((failures) => probeDelay(failures, policy)), [
    5_000,
    5_000,
    10_000,
    20_000,
    640_000,
    900_000,
    900_000,
  ]);
});

Deno.test("the default bound is within an item's attempts, so that a lone shipment parks before it is given up", () => {
  assert.ok(DEFAULT_ENDPOINT_POLICY.downAfter <= 3);
});

Deno.test("hostOf() keeps path, query and what is no URL to itself", () => {
  assert.equal(hostOf("https://hooks.example:8443/key?token=1"), "hooks.example:8443");
  assert.equal(hostOf("HTTPS://Hooks.Example:443/"), "hooks.example");
  assert.equal(hostOf("no url"), "(no host)");
});
