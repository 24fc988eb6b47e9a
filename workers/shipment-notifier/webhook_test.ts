import assert from "node:assert/strict";
import { parseRetryAfter } from "./webhook.ts";

const NOW = Date.parse("Tue, 22 Sep 2026 10:00:00 GMT");

Deno.test("parseRetryAfter() reads seconds and HTTP dates, and nothing else", () => {
  assert.equal(parseRetryAfter("0", NOW), 0);
  assert.equal(parseRetryAfter(" 120 ", NOW), 120_000);
  assert.equal(parseRetryAfter("Tue, 22 Sep 2026 10:02:00 GMT", NOW), 120_000);
  assert.equal(parseRetryAfter("Tue, 22 Sep 2026 09:00:00 GMT", NOW), 0);
  for (const text of [null, "", "soon", "-1", "1.5", "1e9", "2026-09-22", "99999999999"]) {
    assert.equal(parseRetryAfter(text, NOW), null, String(text));
  }
});
