import assert from "node:assert/strict";
import fc from "fast-check";
import { ValidationError } from "../core/errors.ts";
import { defineKind } from "./kinds.ts";
import { checkRange, isExhausted, isStale, RANGES, RETRY_FLOOR_MS, retryDelay } from "./rules.ts";
import { z } from "zod";

Deno.test("retryDelay() stays between its floor and its ceiling, grows with the attempt and never overflows", () => {
  const policy = fc.record({
    baseMs: fc.integer({ min: 1, max: 86_400_000 }),
    capMs: fc.integer({ min: RETRY_FLOOR_MS, max: 30 * 86_400_000 }),
  });
  const attempt = fc.integer({ min: -10, max: 2_147_483_647 });
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(fc.property(policy, attempt, random, (retry, n, by) => {
    const delay = retryDelay(n, retry, by);
    assert.ok(Number.isSafeInteger(delay) && delay >= RETRY_FLOOR_MS);
    assert.ok(delay <= Math.max(retry.capMs, RETRY_FLOOR_MS));
    assert.ok(delay <= retryDelay(n + 1, retry, by), "never shorter at the next attempt");
  }));
});

Deno.test("isExhausted() and isStale() hold at their edges", () => {
  assert.deepEqual([isExhausted(2, 3), isExhausted(3, 3), isExhausted(4, 3)], [false, true, true]);
  assert.deepEqual([isStale(1_001, 1_000), isStale(1_000, 1_000), isStale(999, 1_000)], [false, true, true]);
});

Deno.test("checkRange() takes both ends and nothing beyond, and names field, value and range", () => {
  for (const field of Object.keys(RANGES) as (keyof typeof RANGES)[]) {
    const [min, max] = RANGES[field];
    assert.deepEqual([checkRange(field, min), checkRange(field, max)], [min, max]);
    for (const value of [min - 1, max + 1, NaN, Infinity, min + 0.5, String(min), null, undefined, {}, [min], 5n]) {
      assert.throws(
        () => checkRange(field, value),
        (error) =>
          error instanceof ValidationError && error.field === field && error.message.includes(String(value)) &&
          error.message.includes(`${min} to ${max}`),
      );
    }
  }
  for (const value of [Symbol("s"), Object.create(null)]) {
    assert.throws(() => checkRange("priority", value), { field: "priority" });
  }
});

Deno.test("defineKind() refuses a bad name, policy and timeout, naming each", () => {
  const schema = z.looseObject({});
  for (const name of ["", "lower", "1ST", "A-B", "A".repeat(64), "A B", "É"]) {
    assert.throws(() => defineKind(name, { schema }), { field: "kind" }, name);
  }
  assert.throws(() => defineKind("A", { schema, retry: { baseMs: 0 } }), { field: "retry.baseMs" });
  assert.throws(() => defineKind("A", { schema, retry: { capMs: RETRY_FLOOR_MS - 1 } }), { field: "retry.capMs" });
  for (const timeoutMs of [-1, 0.5, NaN, Infinity]) {
    assert.throws(() => defineKind("A", { schema, timeoutMs }), { field: "timeoutMs" });
  }
});
