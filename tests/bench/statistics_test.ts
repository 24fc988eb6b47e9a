import assert from "node:assert/strict";
import { median, medianAndRange, quantile, ratios, ratioText, rotated, table } from "./statistics.ts";

Deno.test("quantile() takes the sample at its place, whatever the order", () => {
  const samples = Array.from({ length: 100 }, (_, i) => 99 - i);
  assert.deepEqual([0, 0.5, 0.99, 1].map((q) => quantile(samples, q)), [0, 50, 99, 99]);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});

Deno.test("median() takes the middle, or the mean of the two in the middle", () => {
  assert.equal(median([5, 1, 3]), 3);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.ok(Number.isNaN(median([])));
});

Deno.test("medianAndRange() and table() write what people read", () => {
  assert.equal(medianAndRange([3, 1, 2], " ms"), "2.0 ms [1.0..3.0]");
  assert.equal(medianAndRange([12_345, 10_000, 20_000]), "12,345 [10,000..20,000]");
  assert.equal(medianAndRange([7]), "7.0");
  assert.equal(medianAndRange([]), "");
  assert.equal(table(["a", "b"], [["1", "2"]]), "| a | b |\n| --- | --- |\n| 1 | 2 |");
});

Deno.test("ratios() compares within a round and skips a round that lacks one side", () => {
  assert.deepEqual(ratios([10, null, 30, 40], [5, 5, null, 10]), [2, 4]);
  assert.deepEqual(ratios([10, 20], [5]), [2]);
});

Deno.test("ratioText() says that no difference is shown when the range holds 1, and tells a lone round", () => {
  assert.equal(ratioText([1.2, 1.5, 1.1]), "1.20 × [1.10..1.50]");
  assert.equal(ratioText([0.9, 1.1, 1.2]), "no difference shown: 1.10 × [0.90..1.20]");
  assert.equal(ratioText([0.8, 0.9]), "0.85 × [0.80..0.90]");
  assert.equal(ratioText([1.3]), "1.30 × (one round)");
  assert.equal(ratioText([]), "");
});

Deno.test("rotated() lets each entry come first once in as many rounds as there are entries, and loses none", () => {
  const entries = ["a", "b", "c"];
  const rounds = [0, 1, 2, 3].map((round) => rotated(entries, round).join(""));
  assert.deepEqual(rounds, ["abc", "bca", "cab", "abc"]);
  assert.deepEqual(rotated([], 2), []);
});
