import assert from "node:assert/strict";
import { ValidationError } from "./errors.ts";
import { checkPark, DEFAULT_STAGGER, MAX_PARK_REASON, staggeredResume } from "./park.ts";

const AT = new Date("2026-01-02T03:04:05Z");

Deno.test("staggeredResume() lets the first go at once and each next one later, within the spread", () => {
  const policy = { spacingMs: 100, spreadMs: 1_000 };
  assert.equal(staggeredResume(0, policy, 0.99), 0);
  for (const random of [0, 0.5, 0.999_999]) {
    for (let index = 1; index < 9; index++) {
      const delay = staggeredResume(index, policy, random);
      assert.ok(delay >= index * 100 && delay < (index + 1) * 100, `${index}: ${delay}`);
    }
    for (const index of [10, 1_000, Number.MAX_SAFE_INTEGER]) {
      const delay = staggeredResume(index, policy, random);
      assert.ok(delay >= 0 && delay < 1_000 && Number.isInteger(delay), `${index}: ${delay}`);
    }
  }
  assert.notEqual(staggeredResume(1_000, policy, 0.1), staggeredResume(1_000, policy, 0.9));
  assert.ok(staggeredResume(5, DEFAULT_STAGGER, 0.3) > 0);
});

Deno.test("checkPark() takes any reason people can read, and refuses what could not be stored, naming the field", () => {
  for (const reason of ["x", "the endpoint 受取 is down 🚚", "🚚".repeat(MAX_PARK_REASON)]) {
    assert.equal(checkPark({ reason, resumeAt: AT, cursor: { page: 3 } }).reason, reason);
  }
  const refused: [Parameters<typeof checkPark>[0], string][] = [
    [{ reason: " ", resumeAt: AT }, "reason"],
    [{ reason: "x".repeat(MAX_PARK_REASON + 1), resumeAt: AT }, "reason"],
    [{ reason: "a\u0000b", resumeAt: AT }, "reason"],
    [{ reason: "\ud800", resumeAt: AT }, "reason"],
    [{ reason: "x", resumeAt: new Date(NaN) }, "resumeAt"],
    [{ reason: "x", resumeAt: AT, cursor: { at: [NaN] } }, "cursor.at[0]"],
    [{ reason: "x", resumeAt: AT, cursor: "x".repeat(20_000) }, "cursor"],
  ];
  for (const [request, field] of refused) {
    assert.throws(() => checkPark(request), (e) => e instanceof ValidationError && e.field === field, field);
  }
});
