import assert from "node:assert/strict";
import { bar, noCounts, Progress, summary } from "./progress.ts";

Deno.test("bar() is never wider than its terminal, and full only when all is done", () => {
  const counts = { ...noCounts(), wanted: 200, delivered: 50, deadLettered: 1, retried: 7 };
  assert.equal(bar(counts, 80), `[${"#".repeat(8)}${"-".repeat(24)}] 51/200 shipments, 7 retried, 1 dead-lettered`);
  for (let columns = 0; columns < 200; columns++) {
    assert.ok(bar(counts, columns).length <= Math.max(columns - 1, 0), String(columns));
  }
  assert.match(bar({ ...noCounts(), wanted: 3, delivered: 3 }, 100), /^\[#{40}\] 3\/3/);
  assert.match(bar(noCounts(), 100), /^\[-{40}\] 0\/0/);
});

Deno.test("summary() tells of earlier runs only when there were any", () => {
  const counts = { ...noCounts(), delivered: 3, retried: 1, deadLettered: 1, skipped: 2 };
  assert.equal(summary(counts, 1_249), "3 delivered, 1 retried, 1 dead-lettered, 2 skipped in 1.2 s");
  assert.equal(
    summary({ ...noCounts(), already: 5, deadBefore: 1 }, 0),
    "0 delivered, 0 retried, 0 dead-lettered, 0 skipped in 0.0 s (5 already notified, 1 dead-lettered before)",
  );
});

Deno.test("Progress updates one line on a terminal, and writes a line an event elsewhere, without color", () => {
  const shown = (terminal: boolean) => {
    let text = "";
    const progress = new Progress({ terminal, columns: () => 80, write: (part) => text += part }, noCounts());
    progress.event("delivered one");
    progress.line("line 3 skipped");
    progress.event("delivered two");
    progress.end();
    return text;
  };
  assert.equal(shown(false), "delivered one\nline 3 skipped\ndelivered two\n");
  assert.doesNotMatch(shown(true), /delivered/);
  const [, first = "", second = ""] = shown(true).split("\r\u001b[K");
  assert.match(first, /0\/0 shipments/);
  assert.ok(second.startsWith("line 3 skipped\n"), JSON.stringify(second));
  // deno-lint-ignore no-control-regex -- color is what must not be there.
  assert.doesNotMatch(shown(true), /\x1b\[[0-9;]*m/);
});
