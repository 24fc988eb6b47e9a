import assert from "node:assert/strict";
import { LONGEST_HINT_GAP_MS } from "../infra/hint_pace.ts";
import { Wakes } from "./wakes.ts";

const IN_VAIN = { found: 0, hinted: true } as const;
const POLLED = { found: 0, hinted: false } as const;
const at = (wakes: Wakes, hinted: boolean, listening = true) => wakes.lookAtMs({ hinted, listening });
const make = (random = 0.5) => new Wakes({ pollMs: 1_000, idlePollMs: 30_000, random: () => random });

Deno.test("a hint is followed at once, also after one look in vain", () => {
  const wakes = make();
  wakes.answered(100, POLLED);
  assert.ok(at(wakes, true) <= 100);
  wakes.answered(200, IN_VAIN);
  assert.ok(at(wakes, true) <= 200);
});

Deno.test("looks in vain leave hints for a growing, jittered moment, never beyond the poll; a find ends it", () => {
  for (const random of [0, 0.5, 1]) {
    const wakes = make(random);
    const waits: number[] = [];
    for (let n = 0; n < 12; n++) {
      wakes.answered(n * 10_000, IN_VAIN);
      waits.push(Math.max(at(wakes, true) - n * 10_000, 0));
    }
    assert.deepEqual(waits.slice(0, 4), [0, 10, 20, 40].map((ms) => ms * (0.5 + random)));
    assert.equal(waits.at(-1), 250 * (0.5 + random));
    wakes.answered(200_000, { found: 1, hinted: true });
    wakes.answered(200_100, IN_VAIN);
    assert.ok(at(wakes, true) <= 200_100, "the find ended it");
  }
  const short = new Wakes({ pollMs: 20, idlePollMs: 20, random: () => 1 });
  for (let n = 0; n < 12; n++) short.answered(n, IN_VAIN);
  assert.ok(at(short, true) - 11 <= 25, "a short poll stays the bound");
});

Deno.test("a stream is looked after for as long as a hint may be held back, then left to hints", () => {
  const wakes = make();
  wakes.answered(1_000, { found: 2, hinted: true });
  let nowMs = 1_000;
  let looks = 0;
  while (at(wakes, false) - nowMs < 100) {
    nowMs = at(wakes, false);
    wakes.answered(nowMs, POLLED);
    looks++;
  }
  assert.ok(nowMs - 1_000 >= LONGEST_HINT_GAP_MS, `${nowMs - 1_000} ms`);
  assert.ok(looks <= 8, `${looks} looks`);
});

Deno.test("a stream of single items is kept up with, also where each look takes a while", () => {
  const wakes = make();
  wakes.answered(0, { found: 2, hinted: true });
  for (let n = 1; n <= 10; n++) {
    wakes.answered(n * 15 - 5, POLLED);
    wakes.answered(n * 15, { found: 1, hinted: false });
    assert.ok(at(wakes, false) - n * 15 <= 1, `item ${n}`);
  }
});

Deno.test("one item now and then is no stream: nothing is asked behind it", () => {
  const wakes = make();
  for (let n = 1; n <= 10; n++) {
    wakes.answered(n * 20, { found: 1, hinted: true });
    assert.ok(at(wakes, false) - n * 20 >= 750);
  }
});

Deno.test("while hints arrive, polls in vain slow down to the bound and not beyond it; a hint or a find ends that", () => {
  for (const random of [0, 1]) {
    const wakes = make(random);
    const waits: number[] = [];
    for (let n = 0; n < 10; n++) {
      wakes.answered(0, POLLED);
      waits.push(at(wakes, false));
    }
    assert.ok((waits[0] ?? 0) <= 2_000);
    assert.ok(waits.every((ms, n) => n === 0 || ms >= (waits[n - 1] ?? 0)));
    assert.ok((waits.at(-1) ?? 0) >= 22_500 && (waits.at(-1) ?? 0) <= 30_000);
    assert.ok(at(wakes, false, false) <= 1_250, "without LISTEN the poll holds");
    wakes.hinted();
    assert.ok(at(wakes, false) <= 1_250);
  }
});
