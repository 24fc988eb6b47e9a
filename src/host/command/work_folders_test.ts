import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { SettingsError } from "../../core/errors.ts";
import { silentLogger } from "../../core/log.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { findMarked } from "./processes.ts";
import { WorkFolders } from "./work_folders.ts";

const SUPPORT = fileURLToPath(new URL("../../../tests/support/", import.meta.url));

async function temporary(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-work-" }));
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function names(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}

Deno.test("a runner that is killed leaves no process, and the next one clears its folders and what escaped", async () => {
  await temporary(async (folder) => {
    const runner = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", `${SUPPORT}command_runner.ts`, folder],
      stdin: "null",
      stdout: "null",
      stderr: "inherit",
    }).spawn();
    const started = await waitFor(
      "the command",
      () => Deno.readTextFile(`${folder}/started`).then((text) => text.trim() || undefined, () => undefined),
      { timeoutMs: 30_000 },
    );
    // The command, its child, the guard, and one that made a session of its own.
    assert.ok((await findMarked(started)).length >= 3);
    runner.kill("SIGKILL");
    await runner.status;
    await waitFor("the group's end", async () => (await findMarked(started)).length <= 1);
    const [left] = await names(`${folder}/work`);
    assert.match(left ?? "", /^runner-/);

    const folders = await WorkFolders.open({ base: `${folder}/work`, keepFailed: 0 }, silentLogger);
    assert.deepEqual(await findMarked(started), []);
    const now = await names(`${folder}/work`);
    assert.equal(now.length, 1);
    assert.notEqual(now[0], left);
    await folders.close();
    assert.deepEqual(await names(`${folder}/work`), []);
  });
});

Deno.test("a runner that lives is left alone, whoever looks", async () => {
  await temporary(async (folder) => {
    const settings = { base: `${folder}/work`, keepFailed: 0 };
    const one = await WorkFolders.open(settings, silentLogger);
    const run = await one.make("x");
    const two = await WorkFolders.open(settings, silentLogger);
    assert.equal(await two.clearLeftovers(), 0);
    assert.ok((await Deno.stat(run.work)).isDirectory);
    await one.close();
    await two.close();
    assert.deepEqual(await names(settings.base), []);
  });
});

Deno.test("a base that others could write to is refused", async () => {
  await temporary(async (folder) => {
    const base = `${folder}/open`;
    await Deno.mkdir(base);
    await Deno.chmod(base, 0o777);
    await assert.rejects(WorkFolders.open({ base, keepFailed: 0 }, silentLogger), (error: Error) => {
      return error instanceof SettingsError && /others than the runner's user/.test(error.message);
    });
  });
});

Deno.test("what a command left is removed whatever its modes are, and no link of it is followed", async () => {
  await temporary(async (folder) => {
    await Deno.mkdir(`${folder}/precious`);
    await Deno.writeTextFile(`${folder}/precious/file`, "kept");
    const folders = await WorkFolders.open({ base: `${folder}/work`, keepFailed: 0 }, silentLogger);
    const run = await folders.make("../../odd name");
    await Deno.mkdir(`${run.work}/a/b`, { recursive: true });
    await Deno.symlink(`${folder}/precious`, `${run.work}/a/link`);
    await Deno.chmod(`${run.work}/a/b`, 0o000);
    await Deno.chmod(`${run.work}/a`, 0o500);
    await folders.end(run, false);
    await assert.rejects(Deno.lstat(run.path), Deno.errors.NotFound);
    assert.equal(await Deno.readTextFile(`${folder}/precious/file`), "kept");
    await folders.close();
  });
});
