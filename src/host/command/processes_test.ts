import assert from "node:assert/strict";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { findMarked, killMarked, RUN_MARK, signalGroup } from "./processes.ts";

const HERE = new URL(".", import.meta.url).href;

function marked(run: string): Deno.ChildProcess {
  return new Deno.Command("/bin/sleep", {
    args: ["300"],
    clearEnv: true,
    env: { A: "1", [RUN_MARK]: run },
    detached: true,
    stdin: "null",
  }).spawn();
}

/** What `findMarked` finds in a process that may read files and run programs, but not all of /proc. */
async function findNarrowly(runs: readonly string[]): Promise<unknown> {
  const script = await Deno.makeTempFile({ prefix: "laneway-narrow-", suffix: ".ts" });
  try {
    await Deno.writeTextFile(
      script,
      `import { findMarked } from "${HERE}processes.ts";
       console.log(JSON.stringify(await Promise.all(Deno.args.map((run) => findMarked(run)))));`,
    );
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--no-check", "--allow-run", "--allow-read", script, ...runs],
      stdin: "null",
      stderr: "inherit",
    }).output();
    return JSON.parse(new TextDecoder().decode(stdout));
  } finally {
    await Deno.remove(script);
  }
}

Deno.test("a mark finds a run's processes and those of all of a runner, and no other's", async () => {
  const runner = `runner-test-${crypto.randomUUID()}`;
  const one = marked(`${runner}/a.1`);
  const two = marked(`${runner}/a.12`);
  const other = marked(`${runner}x/a.1`);
  try {
    await waitFor("both", async () => (await findMarked(`${runner}/`)).length === 2);
    assert.deepEqual(await findMarked(`${runner}/a.1`), [one.pid]);
    assert.equal(await killMarked(`${runner}/a.1`), 1);
    assert.equal((await one.status).signal, "SIGKILL");
    assert.deepEqual(await findMarked(`${runner}/`), [two.pid]);
    // A build without every permission asks another program.
    assert.deepEqual(await findNarrowly([`${runner}/a.12`, `${runner}/a.1`, `${runner}/`]), [[two.pid], [], [two.pid]]);
  } finally {
    for (const { pid } of [two, other]) signalGroup(pid, "SIGKILL");
    await Promise.all([two.status, other.status]);
  }
});
