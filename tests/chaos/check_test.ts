import assert from "node:assert/strict";
import { type Finished, judge, parseLog, type SeenLine } from "./check.ts";

const DONE = { status: "done", lastError: null } as const;
const FAULT = { what: "SIGKILL", pid: 1, fromMs: 1_000, toMs: 1_000 };

function judged(lines: string, finished: readonly Finished[], more: { faults?: boolean; poisoned?: string[] } = {}) {
  const seen: SeenLine[] = parseLog(lines).map((line) => ({ ...line, seenMs: 1_500 }));
  const { runs: _runs, secondRuns: _second, doubleEnds: _ends, ...lists } = judge({
    enqueued: ["a", "b"],
    poisoned: new Set(more.poisoned ?? []),
    lines: seen,
    finished,
    faults: more.faults === true ? [FAULT] : [],
    echoMs: 1_000,
  });
  return Object.fromEntries(Object.entries(lists).filter(([, found]) => found.length > 0));
}

const GOOD = "a 1 1 start\na 1 1 end\nb 1 2 start\nb 1 2 end\n";
const BOTH = [{ id: "a", claims: 1, ...DONE }, { id: "b", claims: 1, ...DONE }];

Deno.test("the judge finds nothing where each item ended once, by a run that came to its end", () => {
  assert.deepEqual(judged(GOOD, BOTH), {});
});

Deno.test("the judge finds each wrong it is there for", () => {
  const failed = { id: "b", claims: 1, status: "failed", lastError: "x" } as const;
  assert.deepEqual(judged(GOOD, BOTH.slice(0, 1)), { lost: ["b"] });
  assert.deepEqual(judged(GOOD, [...BOTH, failed]), { twice: ["b"] });
  assert.deepEqual(judged("a 1 1 start\na 1 1 end\nb 1 2 start\n", BOTH), { unearned: ["b"] });
  assert.deepEqual(judged(GOOD, [BOTH[0] as Finished, failed]), { innocents: ["b"] });
  assert.deepEqual(judged(GOOD, BOTH, { poisoned: ["b"] }), { undead: ["b"] });
  assert.deepEqual(judged(`${GOOD}b 1 3 start\n`, BOTH), { sameClaim: ["b"] });
});

Deno.test("a second run to the end is explained by what was done to its process, and by nothing else", () => {
  const lines = `${GOOD}a 2 3 start\na 2 3 end\n`;
  const finished = [{ id: "a", claims: 2, ...DONE }, BOTH[1] as Finished];
  assert.deepEqual(judged(lines, finished), { unexplained: ["a"] });
  assert.deepEqual(judged(lines, finished, { faults: true }), {});
});

Deno.test("a line that a death cut is no line", () => {
  assert.deepEqual(parseLog("a 1 1 start\na 1 1 en").length, 1);
});
