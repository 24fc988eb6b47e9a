import assert from "node:assert/strict";
import { UsageError } from "../../runtime/usage_error.ts";
import { exitLines } from "./classify.ts";
import { kindsOf, loadCommandConfig, parseCommandConfig } from "./load.ts";

/** A config with one kind, as text. */
function config(kind: unknown, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ work: { base: "work" }, logs: { folder: "logs" }, kinds: { RUN: kind }, ...more });
}

const parse = (text: string) => parseCommandConfig(text, "/etc/laneway/commands.json");

Deno.test("a config says what it does: defaults, absolute paths, kinds whose limit lies beyond the command's", () => {
  const read = parse(config({ argv: ["tool", "--id={item.id}"], timeLimit: "2h", killGrace: "30s" }));
  assert.equal(read.work.base, "/etc/laneway/work");
  assert.equal(read.logs.folder, "/etc/laneway/logs");
  const [kind] = kindsOf(read);
  assert.equal(kind?.name, "RUN");
  assert.equal(kind?.timeoutMs, 7_200_000 + 30_000 + 120_000);
  assert.equal(kindsOf(parse(config({ argv: ["tool"], timeLimit: "none" })))[0]?.timeoutMs, 0);
});

const REFUSED: readonly (readonly [what: string, text: string, says: RegExp])[] = [
  ["no JSON", "{", /it is no JSON/],
  ["no kinds", JSON.stringify({ work: { base: "w" }, logs: { folder: "l" }, kinds: {} }), /kinds \{\}.*names no kind/],
  [
    "a misspelt key",
    config({ argv: ["a"], timelimit: "1s" }),
    /kinds\.RUN .*no key "timelimit": did you mean "timeLimit"/,
  ],
  ["a misspelt field", config({ argv: ["a", "{item.idd}"] }), /argv\[1\] "\{item\.idd\}" .*did you mean \{item\.id\}/],
  ["a single brace", config({ argv: ["a", "{x"] }), /write "\{\{" for one/],
  ["no program", config({ argv: [] }), /kinds\.RUN\.argv \[\] .*must name a program/],
  ["a program of the item's", config({ argv: ["{payload.tool}"] }), /argv\[0\].*program must be a literal/],
  ["program text for a shell", config({ argv: ["sh", "-c", "echo {payload.x}"] }), /argv\[2\].*as program text/],
  ["program text for python", config({ argv: ["/usr/bin/python3", "-c", "{payload.x}"] }), /as program text/],
  ["a part of an option", config({ argv: ["a", "-{payload.x}"] }), /option's name/],
  ["a kind's name", config({}, { kinds: { "dev-issue": { argv: ["a"] } } }), /kinds\.dev-issue .*upper snake case/],
  ["no duration", config({ argv: ["a"], timeLimit: "soon" }), /timeLimit "soon" .*number and a unit/],
  ["a duration out of range", config({ argv: ["a"], timeLimit: "1ms" }), /timeLimit "1ms" .*from 1000 ms/],
  ["nice", config({ argv: ["a"], nice: 20 }), /kinds\.RUN\.nice 20 .*: it must be at most 19$/],
  ["a number as text", config({ argv: ["a"], nice: "5" }), /nice "5" .*: it must be a number$/],
  ["a kind without a command", config({}), /kinds\.RUN\.argv of .*: it is missing: it must be a list$/],
  ["a way there is not", config({ argv: ["a"], stdin: "file" }), /stdin "file" .*one of "none", "payload", "prompt"$/],
  [
    "a log that takes more than all may",
    config({ argv: ["a"] }, { logs: { folder: "l", totalMiB: 4, perRunMiB: 8 } }),
    /logs\.perRunMiB 8 .*more than totalMiB/,
  ],

  [
    "a loader's variable",
    config({ argv: ["a"], env: { LD_PRELOAD: { from: "payload.x" } } }),
    /env\.LD_PRELOAD of .*no item/,
  ],
  ["PATH of the item's", config({ argv: ["a"], env: { PATH: { template: "{payload.x}" } } }), /env\.PATH of .*no item/],
  ["a variable of ours", config({ argv: ["a"], env: { LANEWAY_ORG_ID: "x" } }), /Laneway's own/],
  ["a key of ours", config({ argv: ["a"], env: { KEY: { fromEnv: "LANEWAY_HOST_KEY" } } }), /not handed on/],
  ["an allow list too wide", config({ argv: ["a"], envFrom: { from: "payload.e", allow: ["*"] } }), /allow\[0\] "\*"/],
  ["an allowed loader", config({ argv: ["a"], envFrom: { from: "payload.e", allow: ["LD_*"] } }), /allow\[0\] "LD_\*"/],
  ["credentials", config({ argv: ["a"], clone: { url: "https://me:key@h/x" } }), /clone\.url.*credentials/],
  [
    "credentials before a placeholder",
    config({ argv: ["a"], clone: { url: "https://key@h/{payload.r}" } }),
    /credentials/,
  ],
  ["a free host", config({ argv: ["a"], clone: { url: "{payload.url}" } }), /choose the host/],
  ["a free host behind a scheme", config({ argv: ["a"], clone: { url: "https://{payload.h}/x" } }), /choose the host/],
  [
    "an unknown folder",
    config({ argv: ["a"], prompt: { folder: "p", file: "x" } }),
    /prompt\.folder "p" .*no such folder/,
  ],
  ["a prompt that is none", config({ argv: ["a", "{run.prompt}"] }), /\{run\.prompt\} needs a prompt/],
  ["a signal that is done", config({ argv: ["a"], exits: { signal: "done" } }), /exits\.signal "done" .*never done/],
  ["a shell's signal that is done", config({ argv: ["a"], exits: { "137": "done" } }), /never done/],
  ["no end", config({ argv: ["a"], exits: { "300": "retry" } }), /exit code 0 to 255/],
  [
    "a defer without after",
    config({ argv: ["a"], exits: { "3": { outcome: "defer" } } }),
    /"after" belongs to "defer"/,
  ],
];

for (const [what, text, says] of REFUSED) {
  Deno.test(`a config is refused in one line that names place, value and fix: ${what}`, () => {
    assert.throws(() => parse(text), (error: Error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, says);
      assert.ok(error.message.includes("/etc/laneway/commands.json"));
      assert.ok(!error.message.includes("\n"));
      return true;
    });
  });
}

Deno.test("of a URL that is refused for its credentials none stands in the error, which goes into a log", () => {
  for (const url of ["https://me:hunter2@h/x", "https://hunter2@h/{payload.r}", "https://h/x?key=hunter2&b=hunter2"]) {
    assert.throws(() => parse(config({ argv: ["a"], clone: { url } })), (error: Error) => {
      assert.ok(!error.message.includes("hunter2"), error.message);
      assert.match(error.message, /clone\.url "https:\/\/.*h\/.*" of .*leave (?:them|it) (?:in|out)/);
      return true;
    });
  }
});

Deno.test("no value of a variable stands in an error: it may be a secret", () => {
  const text = config({ argv: ["a"], env: { "BAD-NAME": "secret-value" } });
  assert.throws(() => parse(text), (error: Error) => !error.message.includes("secret-value"));
});

Deno.test("a config that anybody could write to is refused, as is one that is not there", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-config-" });
  try {
    const path = `${folder}/commands.json`;
    await assert.rejects(loadCommandConfig(path), /Cannot read the command config/);
    await Deno.writeTextFile(path, config({ argv: ["a"] }));
    await Deno.chmod(path, 0o606);
    await assert.rejects(loadCommandConfig(path), /anybody could write to it/);
    await Deno.chmod(path, 0o600);
    assert.equal((await loadCommandConfig(path)).path, path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("README's table of ends is the one that holds", async () => {
  const read = parse(config({ argv: ["a"] }));
  const readme = await Deno.readTextFile(new URL("README.md", import.meta.url));
  const exits = read.kinds.RUN?.exits;
  assert.ok(exits !== undefined);
  for (const { end, outcome, reason } of exitLines(exits)) {
    const line = `| ${end} | ${outcome} | ${reason === "" ? "" : `\`${reason}\``} |`;
    assert.ok(readme.includes(line), `README lacks: ${line}`);
  }
});
