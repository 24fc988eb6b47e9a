import assert from "node:assert/strict";
import { HintPace, LONGEST_HINT_GAP_MS } from "./hint_pace.ts";

/** Asks every `everyMs` for a while, sends when the wait is over, and says when hints left. */
function paced(everyMs: number, forMs: number, pace = new HintPace(), fromMs = 0): number[] {
  const left: number[] = [];
  let dueMs: number | null = null;
  for (let nowMs = fromMs; nowMs < fromMs + forMs; nowMs += everyMs) {
    if (dueMs !== null && dueMs <= nowMs) {
      pace.left(dueMs);
      left.push(dueMs);
      dueMs = null;
    }
    const waitMs = pace.ask(nowMs);
    if (dueMs !== null) continue;
    if (waitMs === 0) {
      pace.left(nowMs);
      left.push(nowMs);
    } else dueMs = nowMs + waitMs;
  }
  if (dueMs !== null) {
    pace.left(dueMs);
    left.push(dueMs);
  }
  return left;
}

Deno.test("hints that come one at a time leave at once, four hundred a second too", () => {
  for (const everyMs of [2.5, 10, 50, 1_000]) {
    assert.deepEqual(paced(everyMs, everyMs * 20), Array.from({ length: 20 }, (_, n) => n * everyMs));
  }
});

Deno.test("a thousand hints in a second leave as a hundred, the last behind the last that was asked for", () => {
  const left = paced(1, 1_000);
  assert.equal(left[0], 0, "the first at once");
  assert.ok(left.length <= 125, `${left.length} left`);
  assert.ok((left.at(-1) ?? 0) >= 999);
  for (let n = 1; n < left.length; n++) {
    assert.ok((left[n] ?? 0) - (left[n - 1] ?? 0) <= LONGEST_HINT_GAP_MS);
  }
});

Deno.test("after a burst, hints that come one at a time soon leave at once again", () => {
  const pace = new HintPace();
  const burst = paced(1, 1_000, pace);
  const after = paced(20, 1_000, pace, (burst.at(-1) ?? 0) + 1);
  assert.ok(after.slice(-10).every((ms, n, all) => n === 0 || ms - (all[n - 1] ?? 0) === 20));
});

Deno.test("the rows of a batch are one: batches that come one at a time leave at once", () => {
  const pace = new HintPace();
  for (let batch = 0; batch < 20; batch++) {
    const atMs = batch * 60;
    assert.equal(pace.ask(atMs), 0, `batch ${batch}`);
    pace.left(atMs);
    const rows = Array.from({ length: 1_000 }, (_, row) => atMs + row / 1_000);
    const left = rows.filter((rowMs) => pace.take(rowMs)).length;
    assert.ok(left <= 4, `${left} left with its rows`);
    assert.ok(pace.ask(atMs + 1) > 0);
    pace.left(atMs + 5);
  }
});

Deno.test("no rate makes more than five hundred hints a second leave", () => {
  for (let everyMs = 0.25; everyMs <= 5; everyMs += 0.05) {
    const left = paced(everyMs, 2_000);
    assert.ok(left.length <= 1_000, `${left.length} left in two seconds, asked for every ${everyMs} ms`);
  }
});

Deno.test("four hundred a second leave at once also where they come in pairs", () => {
  const pace = new HintPace();
  for (let nowMs = 0; nowMs < 1_000; nowMs += 5) {
    assert.equal(pace.take(nowMs), true, `at ${nowMs} ms`);
    assert.equal(pace.ask(nowMs + 0.2), 0, `its second one, at ${nowMs} ms`);
    pace.left(nowMs + 0.2);
  }
});

Deno.test("a place is taken when one may leave at once; a few in a row then hold up the next one", () => {
  const pace = new HintPace();
  for (let n = 0; n < 4; n++) assert.equal(pace.take(0), true, `place ${n}`);
  assert.equal(pace.take(1), false);
  assert.ok(pace.ask(1) > 0);
  assert.equal(pace.take(20), true);
  let taken = 0;
  for (let nowMs = 100; nowMs < 1_100; nowMs++) if (pace.take(nowMs)) taken++;
  assert.ok(taken <= 520, `${taken} taken of a thousand`);
});
