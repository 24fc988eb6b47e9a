import assert from "node:assert/strict";
import { EMPTY_UUID } from "../core/ids.ts";
import { FakeClock } from "../core/fake_clock.ts";
import type { ClaimedItem } from "../work/types.ts";
import { ClaimAhead, LONGEST_WAIT_MS } from "./claim_ahead.ts";
import { Run } from "./run.ts";

function run(id: string): Run {
  const claimed = { ctx: { orgId: EMPTY_UUID }, item: { id } } as unknown as ClaimedItem;
  return new Run(claimed, new FakeClock(), { monotonicMs: 0, wallMs: 0 });
}

/** Ends `perMs` handlers a millisecond for `forMs`, asking every 20 ms; what was allowed each time. */
function allowedWith(ahead: ClaimAhead, perMs: number, forMs: number, fromMs = 0): number[] {
  const allowed: number[] = [];
  for (let nowMs = fromMs + 20; nowMs <= fromMs + forMs; nowMs += 20) {
    for (let n = 0; n < perMs * 20; n++) ahead.ended();
    allowed.push(ahead.allowed(nowMs));
  }
  return allowed;
}

Deno.test("quick handlers are claimed ahead for, doubling up to what they end in the time given", () => {
  const ahead = new ClaimAhead(50);
  ahead.allowed(0);
  assert.deepEqual(allowedWith(ahead, 2, 120), [10, 20, 40, 80, 100, 100]);
});

Deno.test("however quick the handlers are, what is claimed ahead is bounded", () => {
  const ahead = new ClaimAhead(1_000);
  ahead.allowed(0);
  assert.equal(allowedWith(ahead, 100, 400).at(-1), 1_000);
});

Deno.test("handlers that take longer than the time given are not claimed ahead for, nor is anything when it is 0", () => {
  const slow = new ClaimAhead(50);
  slow.allowed(0);
  for (let nowMs = 1_000; nowMs < 10_000; nowMs += 1_000) {
    for (let n = 0; n < 10; n++) slow.ended();
    assert.equal(slow.allowed(nowMs), 0);
  }
  const off = new ClaimAhead(0);
  off.allowed(0);
  assert.deepEqual([...new Set(allowedWith(off, 10, 200))], [0]);
});

Deno.test("when handlers become slow, less is claimed ahead at the next look", () => {
  const ahead = new ClaimAhead(50);
  ahead.allowed(0);
  allowedWith(ahead, 2, 200);
  ahead.ended();
  assert.equal(ahead.allowed(300), 0);
});

Deno.test("items wait in order, and all of them are taken out once the first has waited too long", () => {
  const ahead = new ClaimAhead(50);
  const [a, b, c] = [run("a"), run("b"), run("c")];
  ahead.push(a, 0);
  ahead.push(b, 0);
  assert.equal(ahead.shift(), a);
  ahead.push(c, 900);
  assert.deepEqual(ahead.takeOverdue(LONGEST_WAIT_MS - 1), []);
  assert.deepEqual(ahead.takeOverdue(LONGEST_WAIT_MS), [b, c]);
  assert.deepEqual([ahead.waiting, ahead.shift()], [0, undefined]);
});
