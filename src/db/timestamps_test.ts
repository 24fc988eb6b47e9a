import assert from "node:assert/strict";
import { parseTimestamp } from "./timestamps.ts";

Deno.test("times are read as the language reads them, in every form the server writes", () => {
  for (
    const text of [
      "2026-11-30 15:43:29+00",
      "2026-11-30 15:43:29.1+00",
      "2026-11-30 15:43:29.12+00",
      "2026-11-30 15:43:29.123+00",
      "2026-11-30 15:43:29.1239+00",
      "2026-11-30 15:43:29.999999+00",
      "1969-12-31 23:59:59.999999+00",
      "0100-02-28 00:00:00+00",
      "2024-02-29 00:00:00.5+00",
      "9999-12-31 23:59:59.999+00",
      "10000-01-01 00:00:00+00",
      "2026-11-30 15:43:29.123+05:30",
      "2026-11-30 15:43:29.123-08",
      "2026-11-30",
    ]
  ) {
    assert.equal(parseTimestamp(text).getTime(), new Date(text).getTime(), text);
    assert.ok(!Number.isNaN(parseTimestamp(text).getTime()), text);
  }
  // Years below 100 are not of the last century, and what is no time stays none.
  assert.equal(parseTimestamp("0044-03-15 00:00:00+00").getTime(), new Date("0044-03-15T00:00:00Z").getTime());
  assert.ok(Number.isNaN(parseTimestamp("infinity").getTime()));
});
