import assert from "node:assert/strict";
import fc from "fast-check";
import { workItem } from "../../../tests/support/command_rig.ts";
import { type ArgvEntry, buildArgv, checkTotal, MAX_ARGUMENT_BYTES, parseArgument } from "./argv.ts";
import { isAllowed, isSteering } from "./environment.ts";
import { CommandFailure } from "./failure.ts";
import { type FieldScope, FIXED_FIELDS, parseField, readField } from "./fields.ts";
import { isPlainPath, slug } from "./safe_path.ts";

function scope(payload: Readonly<Record<string, unknown>>): FieldScope {
  const item = workItem("RUN", payload);
  return { item, orgId: "org", host: "box", worker: "w", fence: 7, run: {} };
}

function entry(text: string, before: readonly string[]): ArgvEntry {
  const parsed = parseArgument(text, before);
  assert.ok(typeof parsed !== "string", String(parsed));
  return parsed;
}

Deno.test("any text is one argument, byte for byte, or refuses its item; unglued it is never an option", async () => {
  const bare = entry("{payload.x}", ["tool"]);
  const glued = entry("--x={payload.x}", ["tool"]);
  const behind = entry("{payload.x}", ["tool", "--"]);
  const within = entry("a-{payload.x}-b", ["tool"]);
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), async (x) => {
      const given = scope({ x });
      const storable = !x.includes("\0") && x.isWellFormed();
      const build = (of: ArgvEntry) => buildArgv([of], given);
      if (!storable) return await assert.rejects(build(glued), CommandFailure);
      assert.deepEqual(await build(glued), [`--x=${x}`]);
      assert.deepEqual(await build(behind), [x]);
      assert.deepEqual(await build(within), [`a-${x}-b`]);
      if (x.startsWith("-")) await assert.rejects(build(bare), /read as an option/);
      else assert.deepEqual(await build(bare), [x]);
    }),
    { numRuns: 500 },
  );
});

Deno.test("no interpreter is given an item's value as program text, however it is spelled or started", () => {
  const words: readonly (readonly [text: string, before: readonly string[]])[] = [
    ["{payload.x}", ["/bin/sh", "-c"]],
    ["echo {payload.x}", ["bash", "-ec"]],
    ["--eval={payload.x}", ["node"]],
    ["--command=echo {payload.x}", ["/usr/bin/fish"]],
    ["{payload.x}", ["env", "A=b", "python3", "-c"]],
    ["{payload.x}", ["timeout", "10", "/bin/bash", "-c"]],
  ];
  for (const [text, before] of words) {
    assert.match(String(parseArgument(text, before)), /would run the item's values as program text/, text);
  }
  entry("{payload.x}", ["sh", "-c", 'echo "$1"', "--"]);
  entry("--eval={payload.x}", ["tool"]);
});

Deno.test("two placeholders that make a dash together are refused as one that brings it", async () => {
  const joined = entry("{payload.a}{payload.b}", ["tool"]);
  await assert.rejects(buildArgv([joined], scope({ a: "", b: "--force" })), /read as an option/);
  assert.deepEqual(await buildArgv([joined], scope({ a: "x", b: "--force" })), ["x--force"]);
});

Deno.test("an argument may be as long as Linux takes one, and no byte longer", async () => {
  const of = entry("{payload.x}", ["tool"]);
  const longest = "é".repeat((MAX_ARGUMENT_BYTES - 2) / 2) + "x";
  assert.deepEqual(await buildArgv([of], scope({ x: longest })), [longest]);
  await assert.rejects(buildArgv([of], scope({ x: `${longest}x` })), /131072 bytes long/);
});

Deno.test("optional arguments are left out when the item has no such field, or an empty one", async () => {
  const when = parseField("payload.model");
  assert.ok(typeof when !== "string");
  const optional: ArgvEntry = { type: "optional", when, entries: [entry("--model={payload.model}", ["tool"])] };
  assert.deepEqual(await buildArgv([optional], scope({})), []);
  assert.deepEqual(await buildArgv([optional], scope({ model: null })), []);
  assert.deepEqual(await buildArgv([optional], scope({ model: "" })), []);
  assert.deepEqual(await buildArgv([optional], scope({ model: "m" })), ["--model=m"]);
});

Deno.test("checkTotal() refuses what no program start can carry", () => {
  checkTotal(["a".repeat(1_000_000)], { B: "b".repeat(400_000) });
  assert.throws(() => checkTotal(["a".repeat(1_000_000)], { B: "b".repeat(600_000) }), /LANEWAY_PAYLOAD_FILE/);
});

Deno.test("fields of the payload are its own, at any depth; what objects inherit is none", () => {
  const given = scope({ a: { "b-c": [{ d: 1 }, true] }, n: null });
  const read = (text: string) => {
    const field = parseField(text);
    assert.ok(typeof field !== "string", String(field));
    return readField(given, field);
  };
  assert.equal(read("payload.a.b-c[0].d"), "1");
  assert.equal(read("payload.a.b-c[1]"), "true");
  for (const none of ["payload.n", "payload.x.y", "payload.constructor", "payload.__proto__", "payload.a.b-c[9]"]) {
    assert.equal(read(none), null, none);
  }
  assert.throws(() => read("payload.a"), /is an object/);
  for (const name of FIXED_FIELDS) assert.ok(typeof parseField(name) !== "string", name);
  for (const bad of ["payload", "payload.", "payload..a", "item", "item.payload", "run.x", "env.PATH", "payload.a b"]) {
    assert.equal(typeof parseField(bad), "string", bad);
  }
});

Deno.test("whatever an item names a folder, the name is one plain segment", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    const name = slug(text);
    assert.match(name, /^(?:[A-Za-z0-9_][A-Za-z0-9._-]*)?$/);
    assert.ok(name.length <= 80 && !name.includes(".."));
  }));
  assert.equal(slug("p24/infra #6094"), "p24-infra-6094");
  for (const path of ["a", "org/.github", "a.b/c_d-e"]) assert.ok(isPlainPath(path), path);
  for (const path of ["", ".", "..", "a//b", "a/", "/a", "-a", "a/-b", "a/../b", "a b", "a\0"]) {
    assert.ok(!isPlainPath(path), JSON.stringify(path));
  }
});

Deno.test("no allow list lets an item steer what is run, in any case of letters", () => {
  for (
    const name of ["LD_PRELOAD", "Path", "bash_env", "IFS", "NODE_OPTIONS", "http_proxy", "PYTHONPATH", "LANEWAY_RUN"]
  ) {
    assert.ok(isSteering(name), name);
    assert.ok(!isAllowed(name, [name, "*", `${name}*`]), name);
  }
  assert.ok(isAllowed("APP_MODE", ["APP_*"]) && !isAllowed("APPMODE", ["APP_*"]));
  assert.ok(!isAllowed("A B", ["A B"]) && !isAllowed("", ["*"]) && !isAllowed("1A", ["1A"]));
});
