import assert from "node:assert/strict";
import { guardStrayErrors } from "./stray_errors.ts";

Deno.test("guardStrayErrors() reports what nobody caught, from promises and timers, and the process lives", async () => {
  const seen: string[] = [];
  const unguard = guardStrayErrors((error) => seen.push(String(error)));
  try {
    void Promise.reject(new Error("a stray rejection"));
    setTimeout(() => {
      throw new Error("thrown by a timer");
    }, 0);
    for (let turns = 0; turns < 100 && seen.length < 2; turns++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  } finally {
    unguard();
  }
  assert.deepEqual(seen.toSorted(), ["Error: a stray rejection", "Error: thrown by a timer"]);
});
