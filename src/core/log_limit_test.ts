import assert from "node:assert/strict";
import { FakeClock } from "./fake_clock.ts";
import type { LogFields, Logger } from "./log.ts";
import { limitRepeats } from "./log_limit.ts";

function recorder(): Logger & { lines: [string, LogFields][] } {
  const lines: [string, LogFields][] = [];
  const take = (event: string, fields: LogFields = {}) => void lines.push([event, fields]);
  return { lines, debug: take, info: take, warn: take, error: take };
}

Deno.test("limitRepeats() writes one line an interval for each event and counts those left out", async () => {
  const clock = new FakeClock();
  const inner = recorder();
  const logger = limitRepeats(inner, { clock });
  for (let i = 0; i < 5; i++) logger.warn("claim.failed", { i });
  logger.warn("other");
  assert.deepEqual(inner.lines, [["claim.failed", { i: 0 }], ["other", {}]]);
  await clock.tick(1_000);
  logger.warn("claim.failed", { i: 9 });
  assert.deepEqual(inner.lines[2], ["claim.failed", { i: 9, suppressed: 4 }]);
});

Deno.test("limitRepeats() tells keys and levels apart", () => {
  const inner = recorder();
  const logger = limitRepeats(inner, { clock: new FakeClock(), key: (event, fields) => `${event} ${fields.kind}` });
  logger.warn("failed", { kind: "A" });
  logger.warn("failed", { kind: "B" });
  logger.error("failed", { kind: "A" });
  logger.error("failed", { kind: "A" });
  assert.equal(inner.lines.length, 3);
});

Deno.test("limitRepeats() keeps a bounded number of keys", () => {
  const inner = recorder();
  const logger = limitRepeats(inner, { clock: new FakeClock() });
  for (let i = 0; i < 1_001; i++) logger.info(`event ${i}`);
  logger.info("event 0");
  assert.equal(inner.lines.length, 1_002, "the oldest key was forgotten, so it is written again");
});
