import assert from "node:assert/strict";
import { definition } from "../worker.ts";

Deno.test("the worker serves its kind on its lane under its own name", () => {
  const { name, kinds, flagDefaults } = definition;
  assert.equal(name, "sample-worker");
  assert.ok(kinds.some((kind) => kind.name === "HANDLE_SAMPLE_RECORD"));
  assert.deepEqual([flagDefaults?.lane, flagDefaults?.kinds], ["sample-lane", "HANDLE_SAMPLE_RECORD"]);
});
