import assert from "node:assert/strict";
import { medianAndRange, quantile, table } from "./statistics.ts";

Deno.test("quantile() takes the sample at its place, whatever the order", () => {
  const samples = Array.from({ length: 100 }, (_, i) => 99 - i);
  assert.deepEqual([quantile(samples, 0), quantile(samples, 0.5), quantile(samples, 0.99), quantile(samples, 1)], [
    0,
    50,
    99,
    99,
  ]);
  assert.ok(Number.isNaN(quantile([], 0.5)));
});

Deno.test("medianAndRange() and table() write what people read", () => {
  assert.equal(medianAndRange([3, 1, 2], " ms"), "2.0 ms [1.0..3.0]");
  assert.equal(medianAndRange([12_345, 10_000, 20_000]), "12,345 [10,000..20,000]");
  assert.equal(table(["a", "b"], [["1", "2"]]), "| a | b |\n| --- | --- |\n| 1 | 2 |");
});
