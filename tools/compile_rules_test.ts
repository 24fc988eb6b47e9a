import assert from "node:assert/strict";
import { compileArgs, profileFor, PROFILES, refuseTarget } from "./compile_rules.ts";
import { countTests } from "./junit.ts";

const BUILD = { bundle: "b.js", out: "w", target: undefined, env: ["WEBHOOK_SECRET"] };

Deno.test("no profile but the host's allows running programs, foreign code, prompts or undeclared variables", () => {
  for (const profile of PROFILES.filter((name) => name !== "host")) {
    const args = compileArgs({ ...BUILD, profile });
    assert.equal(args.some((arg) => /^--allow-(all|run|ffi|import)|^-A$/.test(arg)), false);
    assert.ok(args.includes("--no-prompt") && args.includes("--ignore-env"));
    assert.ok(args.includes("--allow-env=LANEWAY_*,WEBHOOK_SECRET"));
  }
});

Deno.test("the host's profile runs programs, and neither loads foreign code nor asks", () => {
  const args = compileArgs({ ...BUILD, profile: "host" });
  assert.ok(args.includes("--allow-run") && args.includes("--no-prompt"));
  assert.equal(args.some((arg) => /^--allow-(all|ffi|import)|^-A$/.test(arg)), false);
});

Deno.test("the container profile writes nothing and reads mounted secrets alone", () => {
  const args = compileArgs({ ...BUILD, profile: "container" });
  assert.ok(args.includes("--allow-read=/run/secrets"));
  assert.equal(args.some((arg) => arg.startsWith("--allow-write")), false);
});

Deno.test("a worker that starts programs is built with the host's profile, and no other worker is", () => {
  assert.deepEqual([profileFor(undefined, true), profileFor(undefined, false)], ["host", "general"]);
  assert.equal(profileFor("container", false), "container");
  assert.throws(() => profileFor("general", true), /--profile host/);
  assert.throws(() => profileFor("host", false), /general or container/);
  assert.throws(() => profileFor("hosts", true), /general or container or host/);
});

Deno.test("a cross target is refused where it would silently come out wrong", () => {
  assert.doesNotThrow(() => refuseTarget(undefined, "x86", "/denort"));
  assert.doesNotThrow(() => refuseTarget("x86", "x86", "/denort"));
  assert.doesNotThrow(() => refuseTarget("arm", "x86", undefined));
  assert.throws(() => refuseTarget("arm", "x86", "/denort"), /DENORT_BIN/);
});

Deno.test("countTests() adds up the suites of a report", () => {
  const xml = '<testsuites name="deno test" tests="9" failures="1"><testsuite name="a" tests="6" disabled="1" ' +
    'errors="0" failures="1"></testsuite><testsuite name="b" tests="3" disabled="0" errors="0" failures="0"/></testsuites>';
  assert.deepEqual(countTests(xml), { passed: 7, failed: 1, skipped: 1 });
});
