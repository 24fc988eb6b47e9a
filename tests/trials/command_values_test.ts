/**
 * Trial B46: values of an item never become program text, options, variables or paths of their own choosing.
 */
import assert from "node:assert/strict";
import { FinalError } from "../../src/core/errors.ts";
import { commandRig, type Ended } from "../support/command_rig.ts";

const RECORD = 'out=$1; shift; printf "%s\\0" "$@" > "$out"';

function values(canary: string): Readonly<Record<string, string>> {
  return {
    "a semicolon": `; touch ${canary}`,
    "a substitution": `$(touch ${canary})`,
    backticks: "`touch " + canary + "`",
    "a pipe": `| sh -c 'touch ${canary}'`,
    "a newline": `x\ntouch ${canary}\n`,
    "an option": `--output=${canary}`,
    "a short option": `-o${canary}`,
    "two dashes": "--",
    "a dash": "-",
    percent: "%s%n%d",
    "single quotes": `'; touch ${canary}; '`,
    "double quotes": `"; touch ${canary}; "`,
    "odd quotes": "«“”‘’\"'`\\\\",
    braces: "{payload.other} {{}} ${HOME} {item.id}",
    glob: "* ? [a-z] ~",
    unicode: "naïve 東京 \u{1F600} \u202e",
    blanks: "  leading\tand trailing  ",
    empty: "",
    long: "y".repeat(131_000 - 8),
  };
}

function refused({ error, attempt }: Ended, what: RegExp): void {
  assert.ok(error instanceof FinalError, `it was not refused: ${error?.message}`);
  assert.match(error.message, /^invalid_item: /);
  assert.match(error.message, what);
  assert.deepEqual([attempt.outcome, attempt.reason], ["final", "invalid_item"]);
}

Deno.test("B46: each value is one argument, byte for byte, or refuses its item; nothing is ever run of it", async () => {
  const rig = await commandRig({
    BARE: { argv: ["/bin/sh", "-c", RECORD, "sh", "{payload.out}", "{payload.value}", "end"] },
    GLUED: { argv: ["/bin/sh", "-c", RECORD, "sh", "{payload.out}", "--value={payload.value}", "end"] },
    BEHIND: { argv: ["/bin/sh", "-c", RECORD, "sh", "{payload.out}", "--", "{payload.value}", "end"] },
    ENV: {
      argv: ["/bin/sh", "-c", `printf "%s\\0" "$VALUE" end > "$1"`, "sh", "{payload.out}"],
      env: { VALUE: { from: "payload.value", else: "" } },
    },
  });
  const canary = `${rig.folder}/CANARY`;
  try {
    for (const [name, value] of Object.entries(values(canary))) {
      const expected: Readonly<Record<string, string>> = {
        BARE: `${value}\0end\0`,
        GLUED: `--value=${value}\0end\0`,
        BEHIND: `--\0${value}\0end\0`,
        ENV: `${value}\0end\0`,
      };
      for (const [kind, written] of Object.entries(expected)) {
        const out = `${rig.folder}/out`;
        const ended = await rig.run(kind, { value, out });
        if (kind === "BARE" && value.startsWith("-")) refused(ended, /would be read as an option/);
        else {
          assert.equal(ended.error, null, `${kind}, ${name}: ${ended.error?.message}`);
          assert.ok(await Deno.readTextFile(out) === written, `${kind}, ${name}: not byte for byte`);
          await Deno.remove(out);
        }
        assert.ok(!await exists(canary), `${kind}, ${name}: it was run`);
      }
    }
    for (const kind of ["BARE", "GLUED", "BEHIND", "ENV"]) {
      refused(await rig.run(kind, { value: "a\0b", out: "/dev/null" }), /NUL/);
      refused(await rig.run(kind, { value: "z".repeat(200_000), out: "/dev/null" }), /200\d\d\d bytes long/);
      refused(await rig.run(kind, { value: ["a", "b"], out: "/dev/null" }), /is a list/);
    }
    refused(await rig.run("BARE", { out: "/dev/null" }), /the item has no payload\.value/);
  } finally {
    await rig.dispose();
  }
});

Deno.test("B46: variables that an item names are those of the allow list, whatever their case", async () => {
  const rig = await commandRig({
    ENV: { argv: ["/usr/bin/env"], envFrom: { from: "payload.env", allow: ["APP_*", "MODEL", "G*", "L*"] } },
  });
  try {
    const names = [
      ...[
        "LD_PRELOAD",
        "ld_preload",
        "PATH",
        "BASH_ENV",
        "IFS",
        "ENV",
        "NODE_OPTIONS",
        "GIT_SSH_COMMAND",
        "GCONV_PATH",
      ],
      ...["LANEWAY_ORG_ID", "LANEWAY_RUN", "OTHER", "APP_X=1 PATH", "APP_\n", "", "BASH_FUNC_ls%%", "__proto__"],
    ];
    for (const name of names) {
      const env = JSON.parse(`{${JSON.stringify(name)}: "/tmp/evil"}`);
      refused(await rig.run("ENV", { env }), /not on the allow list/);
    }
    const { error, attempt } = await rig.run("ENV", { env: { APP_X: "1", MODEL: "m" } });
    assert.equal(error, null);
    assert.match(attempt.stdoutTail, /^APP_X=1$/m);
  } finally {
    await rig.dispose();
  }
});

Deno.test("B46: names of prompts, folders and repositories stay under their base, symbolic links resolved", async () => {
  const rig = await commandRig({
    PROMPT: {
      argv: ["/bin/echo", "{run.prompt}"],
      prompt: { folder: "prompts", file: "{payload.name}.md", role: "payload.role", roleFile: "{run.role}.md" },
    },
    EXISTING: {
      argv: ["/usr/bin/env"],
      env: { FILE: { existingFile: "{payload.name}.md", folder: "prompts" } },
    },
    NAMED: { argv: ["/bin/pwd"], work: { name: "{payload.name}" } },
    REPO: { argv: ["/bin/ls"], clone: { url: "https://localhost:1/{payload.name}.git" } },
    ANY: { argv: ["/bin/ls"], clone: { url: "{payload.name}", hosts: ["git.example.org"] } },
    REF: { argv: ["/bin/ls"], clone: { url: "https://localhost:1/a.git", ref: "{payload.name}" } },
  }, { folders: { prompts: { path: "prompts" } } });
  try {
    await Deno.mkdir(`${rig.folder}/prompts`);
    await Deno.writeTextFile(`${rig.folder}/prompts/good.md`, "good");
    await Deno.writeTextFile(`${rig.folder}/x.md`, "outside");
    await Deno.symlink(`${rig.folder}/x.md`, `${rig.folder}/prompts/link.md`);
    assert.equal((await rig.run("PROMPT", { name: "good" })).attempt.stdoutTail, "good\n");
    for (const kind of ["PROMPT", "EXISTING"]) {
      for (const name of ["../x", "../../../../tmp/x", `${rig.folder}/x`, "a/../../x", "link", "good\0"]) {
        refused(await rig.run(kind, { name }), /leads out of its folder|NUL/);
      }
    }
    refused(await rig.run("PROMPT", { name: "good", role: "../x" }), /is no name/);
    for (
      const name of ["../../evil", "/etc", "a/../../b", "..", "-rf", "x\n$(id)", "日本", "\u0000", ".", "a".repeat(300)]
    ) {
      const { attempt, error } = await rig.run("NAMED", { name });
      assert.equal(error, null, `${JSON.stringify(name)}: ${error?.message}`);
      assert.match(
        attempt.stdoutTail,
        new RegExp(`^${rig.folder}/work/runner-[\\w-]+/[A-Za-z0-9_][\\w.-]{0,100}/work\n$`),
      );
    }
    for (const name of ["--upload-pack=touch", "../x", "a b", "x?token=1", "x#y", "", "a/", "a@b:c"]) {
      refused(await rig.run("REPO", { name }), /is no plain path/);
    }
    const urls: readonly (readonly [string, RegExp])[] = [
      ["--upload-pack=touch /tmp/CANARY", /cannot clone from/],
      ["ext::sh -c touch%20CANARY", /cannot clone from/],
      ["file:///etc", /only https and ssh/],
      ["/etc", /no URL/],
      ["http://git.example.org/a", /only https and ssh/],
      ["https://user:key@git.example.org/a", /credentials/],
      ["https://key@git.example.org/a", /credentials/],
      ["https://evil.example/a", /the hosts are git\.example\.org/],
      ["git@evil.example:a", /the hosts are/],
      ["ssh://-oProxyCommand=touch/a", /cannot clone from/],
    ];
    for (const [name, why] of urls) refused(await rig.run("ANY", { name }), why);
    assert.ok(!(await rig.run("ANY", { name: "https://user:key@git.example.org/a" })).error?.message.includes("key@"));
    for (const name of ["--orphan", "-b", "a..b", "@{u}", "x.lock", "a b"]) {
      refused(await rig.run("REF", { name }), /no name of a branch/);
    }
  } finally {
    await rig.dispose();
  }
});

async function exists(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}
