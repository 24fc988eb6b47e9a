import assert from "node:assert/strict";
import { ClaimFloors } from "./claim_floors.ts";

const place = (priority: number, ms: number, kind = "A") => ({ kind, priority, availableAt: new Date(ms) });
const whole = (kind: string) => ({ kind, low: 0, from_at: "-infinity", high: 32_767 });
const SLOW = { startMs: 1_000, endMs: 1_100, limit: 100 };

/** Floors after one slow look from the beginning that brought `places`. */
function afterSlowLook(...places: ReturnType<typeof place>[]): ClaimFloors {
  const floors = new ClaimFloors();
  floors.claimed(floors.ranges(["A"], 0), places, SLOW);
  return floors;
}

Deno.test("as long as looking is quick and claims come back short, every claim looks from the beginning", () => {
  const floors = new ClaimFloors();
  for (let nowMs = 0; nowMs < 1_000; nowMs += 10) {
    const look = floors.ranges(["A", "B"], nowMs);
    assert.deepEqual(look, { all: true, ranges: [whole("A"), whole("B")] });
    floors.claimed(look, [place(10, nowMs)], { startMs: nowMs, endMs: nowMs + 5, limit: 2 });
  }
});

Deno.test("a long look is not slow when it brings many rows", () => {
  const floors = new ClaimFloors();
  const rows = Array.from({ length: 500 }, (_, n) => place(10, n));
  floors.claimed(floors.ranges(["A"], 0), rows, { startMs: 0, endMs: 100, limit: 501 });
  assert.equal(floors.ranges(["A"], 100).all, true);
});

Deno.test("after a slow look, claims begin at the last place of each priority for ten times as long, then look again", () => {
  const floors = afterSlowLook(place(5, 70), place(10, 80), place(10, 90));
  const { all, ranges } = floors.ranges(["A"], 1_101);
  assert.equal(all, false);
  assert.deepEqual(ranges, [
    { kind: "A", low: 0, from_at: "-infinity", high: 4 },
    { kind: "A", low: 5, from_at: "1970-01-01T00:00:00.070Z", high: 5 },
    { kind: "A", low: 6, from_at: "-infinity", high: 9 },
    { kind: "A", low: 10, from_at: "1970-01-01T00:00:00.090Z", high: 10 },
    { kind: "A", low: 11, from_at: "-infinity", high: 32_767 },
  ]);
  floors.claimed({ all }, [place(10, 95)], { startMs: 1_101, endMs: 1_102, limit: 100 });
  assert.equal(floors.ranges(["A"], 2_099).ranges[3]?.from_at, "1970-01-01T00:00:00.095Z");
  assert.deepEqual(floors.ranges(["A"], 2_100), { all: true, ranges: [whole("A")] });
});

Deno.test("ranges leave no gap and do not overlap, whatever priorities are known", () => {
  const floors = afterSlowLook(...[0, 32_767, 1, 40, 41].map((priority) => place(priority, priority)));
  let next = 0;
  for (const { low, high } of floors.ranges(["A"], 1_101).ranges) {
    assert.equal(low, next);
    assert.ok(high >= low);
    next = high + 1;
  }
  assert.equal(next, 32_768);
});

Deno.test("a kind whose places are unknown is looked at from its beginning, and few priorities are kept", () => {
  const floors = afterSlowLook(...Array.from({ length: 50 }, (_, n) => place(n, n)));
  assert.deepEqual(floors.ranges(["B"], 1_101).ranges, [whole("B")]);
  assert.ok(floors.ranges(["A"], 1_101).ranges.length <= 17);
});

Deno.test("a look is taken from the beginning every five seconds, however slow it is", () => {
  const floors = new ClaimFloors();
  floors.claimed({ all: true }, [place(10, 1)], { startMs: 0, endMs: 60_000, limit: 100 });
  assert.equal(floors.ranges(["A"], 64_999).all, false);
  assert.equal(floors.ranges(["A"], 65_000).all, true);
});

Deno.test("while claims come back full, one in 100 ms looks from the beginning", () => {
  const floors = new ClaimFloors();
  const times = (ms: number) => ({ startMs: ms, endMs: ms + 1, limit: 2 });
  const looks: boolean[] = [];
  for (let nowMs = 0; nowMs < 300; nowMs += 20) {
    const look = floors.ranges(["A"], nowMs);
    looks.push(look.all);
    assert.equal(floors.claimed(look, [place(10, nowMs), place(10, nowMs + 1)], times(nowMs)), false);
  }
  assert.deepEqual(looks.flatMap((all, n) => all ? [n * 20] : []), [0, 120, 240]);
});

Deno.test("a claim that comes back short from the floors is made up from the beginning at once", () => {
  const floors = new ClaimFloors();
  const full = { startMs: 0, endMs: 1, limit: 1 };
  floors.claimed(floors.ranges(["A"], 0), [place(10, 0)], full);
  const look = floors.ranges(["A"], 2);
  assert.equal(look.all, false);
  assert.equal(floors.claimed(look, [], { startMs: 2, endMs: 3, limit: 1 }), true);
  assert.equal(floors.ranges(["A"], 3).all, true);
});

Deno.test("where looking is slow, a short claim is not made up", () => {
  const floors = afterSlowLook(place(10, 0));
  assert.equal(floors.claimed(floors.ranges(["A"], 1_101), [], { startMs: 1_101, endMs: 1_102, limit: 1 }), false);
  assert.equal(floors.ranges(["A"], 1_102).all, false);
});
