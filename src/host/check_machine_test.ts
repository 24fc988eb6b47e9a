import assert from "node:assert/strict";
import { checkDisk, checkMachine } from "./check_machine.ts";
import { parseCommandConfig } from "./command/load.ts";

/** The findings about one kind, whose program is a script of the test's own, as `state name: said`. */
async function findings(kind: Record<string, unknown>, more: Record<string, unknown> = {}): Promise<string[]> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-machine-" });
  try {
    const config = parseCommandConfig(
      JSON.stringify({
        work: { base: `${folder}/work/deep` },
        logs: { folder: `${folder}/logs` },
        kinds: { DEV_ISSUE: { argv: ["true"], ...kind } },
        ...more,
      }),
      `${folder}/commands.json`,
    );
    return (await checkMachine(config)).map(({ name, state, said }) => `${state} ${name}: ${said}`)
      .map((line) => line.replaceAll(folder, "FOLDER"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a program on the command's PATH is found, and disks are looked at where folders are still to be made", async () => {
  const [command, work, logs, ...more] = await findings({});
  assert.match(command ?? "", /^ok command DEV_ISSUE: \/(usr\/)?bin\/true$/);
  assert.match(work ?? "", /^(ok|warn) work disk: \d+ MiB free on FOLDER$/);
  assert.match(logs ?? "", /^(ok|warn) log disk: \d+ MiB free on FOLDER$/);
  assert.equal(more.length, 1);
  assert.match(more[0] ?? "", /^ok tools: \/bin\/sh$/);
});

Deno.test("what the runner itself starts is looked for: nice where a kind sets it", async () => {
  const lines = await findings({ nice: 5 });
  assert.match(lines.at(-1) ?? "", /^ok tools: \/bin\/sh, \/(usr\/)?bin\/nice$/);
});

Deno.test("a work folder that a start would refuse fails the check too: a file, or one that others may write to", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-machine-" });
  try {
    await Deno.writeTextFile(`${folder}/file`, "");
    await Deno.mkdir(`${folder}/open`);
    await Deno.chmod(`${folder}/open`, 0o777);
    const of = async (base: string) =>
      (await findings({}, { work: { base } })).filter((line) => line.includes("work folder")).join();
    assert.match(await of(`${folder}/file`), /^fail work folder: .*\/file cannot be used: it is no folder/);
    assert.match(await of(`${folder}/open`), /^fail work folder: .*others than the runner's user could write to it/);
    assert.equal(await of(folder), "");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a folder that runs refresh must be a checkout that the runner's user owns", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-machine-" });
  try {
    const of = async () =>
      (await findings({}, { folders: { prompts: { path: folder, refresh: { ref: "origin/main" } } } }))
        .find((line) => line.includes("folder prompts"));
    assert.match(await of() ?? "", /^fail folder prompts: .* is no git checkout/);
    await Deno.mkdir(`${folder}/.git`);
    assert.match(await of() ?? "", /^ok folder prompts: .*, brought to origin\/main$/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a program that its PATH lacks fails with the PATH", async () => {
  const [missing] = await findings({ argv: ["claude"], env: { PATH: "/usr/bin:/bin" } });
  assert.match(missing ?? "", /^fail command DEV_ISSUE: there is no program claude on its PATH \(\/usr\/bin:\/bin\)/);
});

Deno.test("a login test runs in the command's own environment, without the runner's", async () => {
  Deno.env.set("LANEWAY_MACHINE_TEST", "the runner's own");
  try {
    const script = '[ "$TOKEN_KIND" = narrow ] && [ -z "$LANEWAY_MACHINE_TEST" ] && [ "$HOME" != "" ]';
    const [, login] = await findings({ env: { TOKEN_KIND: "narrow" }, loginTest: { argv: ["sh", "-c", script] } });
    assert.equal(login, "ok login DEV_ISSUE: sh says that it is logged in");
  } finally {
    Deno.env.delete("LANEWAY_MACHINE_TEST");
  }
});

Deno.test("a login test that fails, hangs or is missing says what it said and what to do", async () => {
  const of = async (argv: string[]) => (await findings({ loginTest: { argv, timeLimit: "1s" } }))[1] ?? "";
  const failed = await of(["sh", "-c", "echo not logged in >&2; exit 3"]);
  assert.match(failed, /^fail login DEV_ISSUE: sh exited with 3: not logged in: log in on this host itself/);
  assert.match(await of(["sh", "-c", "sleep 60 & sleep 60"]), /did not end within 1000 ms/);
  assert.match(await of(["no-such-program"]), /there is no program no-such-program/);
});

Deno.test("a variable that the host lacks fails, naming it", async () => {
  const [command] = await findings({ env: { TOKEN: { fromEnv: "NO_SUCH_VARIABLE_OF_TESTS" } } });
  assert.match(command ?? "", /^fail command DEV_ISSUE: .*NO_SUCH_VARIABLE_OF_TESTS/);
});

Deno.test("git and the config's folders are looked at where they are used", async () => {
  const lines = await findings(
    { clone: { url: "https://example.org/a.git" } },
    { folders: { prompts: { path: "/no/such/folder" } } },
  );
  assert.ok(lines.some((line) => /^ok git: /.test(line)), lines.join("\n"));
  assert.ok(lines.some((line) => line.startsWith("fail folder prompts: /no/such/folder is no folder")));
});

Deno.test("a disk without room fails: a folder of /proc has none", async () => {
  const { state, said } = await checkDisk("disk", "/proc/no/such");
  assert.equal(state, "fail");
  assert.match(said, /^0 MiB free on \/proc: too little/);
});
