import assert from "node:assert/strict";
import { InvariantError, SettingsError } from "../core/errors.ts";
import type { Migration } from "./chain.ts";
import { assertMigratable, compareChain, prepareChain } from "./migration_rules.ts";

function steps(count: number): Migration[] {
  return Array.from({ length: count }, (_, i) => ({
    version: i + 1,
    name: `step_${i + 1}`,
    up: `select ${i + 1}`,
    down: "select 0",
  }));
}

Deno.test("compareChain() tells the five states apart", async () => {
  const known = await prepareChain("queue", steps(2));
  const three = await prepareChain("queue", steps(3));
  assert.equal(compareChain("queue", known, null).state, "not-migrated");
  assert.equal(compareChain("queue", known, []).state, "not-migrated");
  assert.equal(compareChain("queue", known, known.slice(0, 1)).state, "behind");
  assert.deepEqual(compareChain("queue", known, known.slice(0, 1)).pending, ["0002_step_2"]);
  assert.equal(compareChain("queue", known, known).state, "current");
  assert.equal(compareChain("queue", known, three).state, "newer");
  const changed = known.map((step) => ({ ...step, checksum: "0" }));
  assert.equal(compareChain("queue", known, changed).state, "changed");
});

Deno.test("assertMigratable() refuses newer, changed and gaps, and names them", async () => {
  const known = await prepareChain("queue", steps(2));
  const three = await prepareChain("queue", steps(3));
  assertMigratable("queue", known, []);
  assertMigratable("queue", known, known);
  assert.throws(() => assertMigratable("queue", known, three), /version 3 \(queue 0003_step_3\).*up to version 2/);
  assert.throws(() => assertMigratable("queue", known, three), SettingsError);
  assert.throws(() => assertMigratable("queue", three, three.slice(1)), /queue 0002_step_2 was changed/);
});

Deno.test("prepareChain() refuses gaps, odd names, and scripts that end their own transaction", async () => {
  const one = (over: Partial<Migration>) => [{ version: 1, name: "a", up: "select 1", down: "", ...over }];
  await assert.rejects(prepareChain("queue", one({ version: 2 })), InvariantError);
  await assert.rejects(prepareChain("queue", one({ name: "a'; drop" })), InvariantError);
  await assert.rejects(prepareChain("Queue", one({})), InvariantError);
  await assert.rejects(prepareChain("queue", one({ up: "create table x ();\ncommit;\nselect 1" })), InvariantError);
  await prepareChain("queue", one({ up: "-- commit; is only spoken of here\nselect 1" }));
});
