import assert from "node:assert/strict";
import fc from "fast-check";
import { formatDuration, parseDuration } from "./duration.ts";
import { ValidationError } from "./errors.ts";

Deno.test("a duration that is written is read back as the same", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (ms) => {
    assert.equal(parseDuration(formatDuration(ms), "lease"), ms);
  }));
  for (const ms of [0, 1, 999, 1_000, 90_000, 3_600_000, 604_800_000]) {
    assert.equal(parseDuration(formatDuration(ms), "lease"), ms);
  }
});

Deno.test("parseDuration() reads a fraction that is whole in milliseconds, in any unit", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: 10_000_000_000 }), (ms) => {
    assert.equal(parseDuration(`${(ms / 1_000).toFixed(3)}s`, "lease"), ms);
  }));
  assert.equal(parseDuration(" 1.5h ", "lease"), 5_400_000);
  assert.equal(parseDuration("0.25d", "lease"), 21_600_000);
});

Deno.test("parseDuration() refuses all else, naming field and value", () => {
  const texts = [
    "",
    "5",
    "s",
    "-5s",
    "+5s",
    "5 s",
    "1e3s",
    "5sec",
    "5S",
    "٥s",
    "0.0001ms",
    "1.2345ms",
    "NaNs",
    "Infinitys",
    "9".repeat(150) + "d",
    "5s5s",
    ".5s",
    "5.s",
    "0x5s",
  ];
  for (const text of texts) {
    assert.throws(
      () => parseDuration(text, "lease"),
      (error) => error instanceof ValidationError && error.field === "lease" && error.message.includes(`"${text}"`),
      text,
    );
  }
});
