/**
 * A runner with several commands is killed again and again: each next one clears what the one before left, and at the end
 * nothing is left. Set LANEWAY_TRIAL_FULL=1 for more rounds.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { findMarked } from "../../src/host/command/processes.ts";
import { WorkFolders } from "../../src/host/command/work_folders.ts";
import { silentLogger } from "../../src/core/log.ts";
import { waitFor } from "../support/wait_for.ts";

const RUNNER = fileURLToPath(new URL("../support/command_runner.ts", import.meta.url));
const ROUNDS = Deno.env.get("LANEWAY_TRIAL_FULL") === "1" ? 40 : 4;

function start(folder: string): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", RUNNER, folder, "4"],
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
}

async function names(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder)).catch(() => [])).map(({ name }) => name);
}

Deno.test("runners killed at any moment leave no process and no work directory behind the next one", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-kills-" }));
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const runner = start(folder);
      // Another moment each round: before the first command, among them, when all run.
      await waitFor(
        "a runner's folder",
        async () => (await names(`${folder}/work`)).some((name) => /^runner-/.test(name)),
      );
      const wanted = round % 4;
      await waitFor(`${wanted} commands`, async () => (await names(`${folder}/started`)).length >= wanted, {
        timeoutMs: 30_000,
        everyMs: 2,
      });
      runner.kill("SIGKILL");
      await runner.status;
      await Deno.remove(`${folder}/started`, { recursive: true }).catch(() => {});
    }
    const left = (await names(`${folder}/work`)).filter((name) => name.startsWith("runner-"));
    assert.ok(left.length >= 1, "the last one left its folder");
    const last = await WorkFolders.open({ base: `${folder}/work`, keepFailed: 0 }, silentLogger);
    for (const runner of left) assert.deepEqual(await findMarked(`${runner}/`), []);
    await last.close();
    assert.deepEqual((await names(`${folder}/work`)).filter((name) => !name.startsWith(".new-")), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
