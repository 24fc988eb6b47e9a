import assert from "node:assert/strict";
import { readEnvDuration } from "./env_duration.ts";
import { UsageError } from "./usage_error.ts";

const BOUNDS = { standard: "10s", min: "1s", max: "1m" };

Deno.test("a variable's duration is its default while unset or empty, and both ends of its range are in it", () => {
  const read = (text?: string) => readEnvDuration(text === undefined ? {} : { WAIT: text }, "WAIT", BOUNDS);
  assert.deepEqual([read(), read(""), read("1s"), read("60s")], [10_000, 10_000, 1_000, 60_000]);
});

Deno.test("a variable's duration that cannot be used is a usage error with its name, value and fix", () => {
  const says = (text: string) => {
    try {
      return String(readEnvDuration({ WAIT: text }, "WAIT", BOUNDS));
    } catch (error) {
      return error instanceof UsageError ? error.message : `no usage error: ${error}`;
    }
  };
  assert.match(says("soon"), /^Cannot use WAIT "soon": write a number and a unit .* for example 10s$/);
  for (const out of ["999ms", "61s"]) assert.match(says(out), /^Cannot use WAIT .*: it must be from 1s to 1m$/);
});
