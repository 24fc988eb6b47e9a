import assert from "node:assert/strict";
import { FinalError } from "../../core/errors.ts";
import { commandRig, ORG_ID } from "../../../tests/support/command_rig.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { RunAborted } from "../../runtime/run.ts";
import { Deferral } from "../../work/types.ts";
import { findMarked } from "./processes.ts";

const sh = (script: string) => ["/bin/sh", "-c", script, "--"];

async function entries(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}

/** Folders of runs that are there now. */
async function runFolders(rig: { folder: string }): Promise<string[]> {
  const [runner] = (await entries(`${rig.folder}/work`)).filter((name) => name.startsWith("runner-"));
  return runner === undefined
    ? []
    : (await entries(`${rig.folder}/work/${runner}`)).filter((name) => name !== "owner.pid");
}

Deno.test("a command that exits with 0 completes its item, in a folder of its own that is gone afterwards", async () => {
  const rig = await commandRig({ GREET: { argv: [...sh('pwd; printf "%s" "$1"'), "{payload.name}"] } });
  try {
    const { error, returned, attempt } = await rig.run("GREET", { name: "Zoë" });
    assert.equal(error, null);
    assert.equal(returned, undefined);
    assert.deepEqual([attempt.outcome, attempt.reason, attempt.exitCode, attempt.signal], ["done", null, 0, null]);
    const [cwd, said] = attempt.stdoutTail.split("\n");
    assert.ok(cwd?.startsWith(`${rig.folder}/work/runner-`), cwd);
    assert.equal(said, "Zoë");
    assert.deepEqual(await runFolders(rig), []);
    assert.equal((await entries(`${rig.folder}/logs`)).length, 1);
  } finally {
    await rig.dispose();
  }
});

Deno.test("exits are read by the table: retry, final, defer, a signal", async () => {
  const rig = await commandRig({
    EXIT: {
      argv: [...sh("echo why >&2; exit $1"), "{payload.code}"],
      exits: { "3": "final", "4-5": { outcome: "defer", after: "5m", note: "quota" } },
    },
    DIE: { argv: sh("kill -SEGV $$") },
  });
  try {
    const retry = await rig.run("EXIT", { code: 1 });
    assert.ok(retry.error !== null && !(retry.error instanceof FinalError));
    assert.match(retry.error.message, /^exit_code: sh exited with 1 after .*why/);
    assert.deepEqual([retry.attempt.outcome, retry.attempt.reason], ["retry", "exit_code"]);
    const final = await rig.run("EXIT", { code: 3 });
    assert.ok(final.error instanceof FinalError);
    const data = await rig.run("EXIT", { code: 65 });
    assert.ok(data.error instanceof FinalError);
    const later = await rig.run("EXIT", { code: 5 });
    assert.ok(later.returned instanceof Deferral);
    assert.equal(later.returned.delayMs, 300_000);
    assert.match(later.returned.note ?? "", /quota/);
    assert.deepEqual([later.attempt.outcome, later.attempt.reason], ["defer", null]);
    const died = await rig.run("DIE", {});
    assert.deepEqual([died.attempt.outcome, died.attempt.reason, died.attempt.exitCode, died.attempt.signal], [
      "retry",
      "signal",
      null,
      "SIGSEGV",
    ]);
  } finally {
    await rig.dispose();
  }
});

Deno.test("a variable of any name reaches its command as it is: what begins the group has none of its own in the way", async () => {
  const names = ["in", "x", "shift"];
  const rig = await commandRig({
    ENV: { argv: ["/usr/bin/env"], env: Object.fromEntries(names.map((name) => [name, "mine"])), stdin: "payload" },
  });
  try {
    const { attempt } = await rig.run("ENV", {});
    const lines = attempt.stdoutTail.split("\n");
    assert.deepEqual(names.filter((name) => !lines.includes(`${name}=mine`)), []);
    assert.ok(!lines.some((line) => line.startsWith("LANEWAY_STDIN=")), "and leaves none of its own");
  } finally {
    await rig.dispose();
  }
});

Deno.test("the child has what the config names and what Laneway tells, and nothing of the runner's own", async () => {
  Deno.env.set("LANEWAY_TEST_ONLY_SECRET", "leak");
  const rig = await commandRig({
    ENV: {
      argv: ["/usr/bin/env"],
      env: {
        FIXED: "a {literal}",
        ROLE: { from: "payload.role", optional: true },
        MODEL: { from: "payload.model", else: "small" },
        NAME: { template: "{item.kind}-{payload.n}" },
        KEY: { fromEnv: "RUNNER_SECRET" },
        ABSENT: { fromEnv: "NOT_THERE", optional: true },
      },
      envFrom: { from: "payload.env", allow: ["APP_*"] },
    },
  });
  try {
    const { attempt, error } = await rig.run("ENV", { n: 5, env: { APP_MODE: "fast" } });
    assert.equal(error, null);
    const env = Object.fromEntries(attempt.stdoutTail.trim().split("\n").map((line) => line.split(/=(.*)/s)));
    const { LANEWAY_RUN, LANEWAY_PAYLOAD_FILE, LANEWAY_ITEM_ID, HOME, TMPDIR, ...rest } = env;
    assert.match(LANEWAY_RUN, /^runner-/);
    assert.match(LANEWAY_PAYLOAD_FILE, /payload\.json$/);
    assert.equal(LANEWAY_ITEM_ID, attempt.itemId);
    assert.equal(HOME, TMPDIR);
    assert.deepEqual(rest, {
      PATH: "/usr/local/bin:/usr/bin:/bin",
      LANG: "C.UTF-8",
      FIXED: "a {literal}",
      MODEL: "small",
      NAME: "ENV-5",
      KEY: "hidden",
      APP_MODE: "fast",
      LANEWAY_KIND: "ENV",
      LANEWAY_ATTEMPT: "1",
      LANEWAY_LANE: "default",
      LANEWAY_ORG_ID: ORG_ID,
      LANEWAY_WORKER: "host-runner@rig/1",
      LANEWAY_FENCE: "7",
    });
  } finally {
    await rig.dispose();
    Deno.env.delete("LANEWAY_TEST_ONLY_SECRET");
  }
});

Deno.test("standard input is empty at once, unless the kind takes its payload there", async () => {
  const rig = await commandRig({
    NONE: { argv: ["/bin/cat"] },
    PAYLOAD: { argv: ["/bin/cat"], stdin: "payload" },
  });
  try {
    assert.equal((await rig.run("NONE", { a: 1 })).attempt.stdoutTail, "");
    assert.equal((await rig.run("PAYLOAD", { a: "ü" })).attempt.stdoutTail, '{"a":"ü"}\n');
  } finally {
    await rig.dispose();
  }
});

Deno.test("at its end a run leaves no process: none in its group, none that made a session of its own", async () => {
  const rig = await commandRig({
    LEAVE: {
      argv: sh(
        "sleep 300 & (setsid sleep 301 >/dev/null 2>&1 &) ; while ! pgrep -f 'sleep 301' >/dev/null; do :; done; echo $LANEWAY_RUN",
      ),
    },
  });
  try {
    const { attempt } = await rig.run("LEAVE", {});
    assert.equal(attempt.outcome, "done");
    assert.match(attempt.stdoutTail, /^runner-/);
    assert.deepEqual(await findMarked(attempt.stdoutTail.trim()), []);
  } finally {
    await rig.dispose();
  }
});

Deno.test("a time limit ends the whole group: TERM, and KILL for whoever ignores it", async () => {
  const rig = await commandRig({
    DEAF: {
      argv: sh("trap '' TERM; echo $LANEWAY_RUN; (trap '' TERM; sleep 300; sleep 300) & sleep 300; sleep 300"),
      timeLimit: "1s",
      killGrace: "300ms",
    },
    POLITE: {
      argv: sh("trap 'echo bye; exit 0' TERM; sleep 300 & wait"),
      timeLimit: "1s",
      exits: { timeout: "final" },
    },
  });
  try {
    const [deaf, polite] = await Promise.all([rig.run("DEAF", {}), rig.run("POLITE", {})]);
    assert.deepEqual([deaf.attempt.outcome, deaf.attempt.reason, deaf.attempt.signal], [
      "retry",
      "timed_out",
      "SIGKILL",
    ]);
    assert.match(deaf.error?.message ?? "", /^timed_out: /);
    assert.deepEqual(await findMarked(deaf.attempt.stdoutTail.trim()), []);
    // It had its time: that it then ended well does not make it done.
    assert.deepEqual([polite.attempt.outcome, polite.attempt.reason], ["final", "timed_out"]);
    assert.equal(polite.attempt.stdoutTail, "bye\n");
  } finally {
    await rig.dispose();
  }
});

for (const [cause, reason] of [["LEASE_LOST", "lease_lost"], ["DRAINED", "drained"]] as const) {
  Deno.test(`a run whose signal fires (${reason}) ends with its grandchildren, however long its own grace is`, async () => {
    const rig = await commandRig({
      SLOW: {
        argv: [
          ...sh("trap '' TERM; echo $LANEWAY_RUN > \"$1\"; (trap '' TERM; sleep 300) & sleep 300"),
          "{payload.started}",
        ],
        killGrace: "10m",
      },
    });
    try {
      const stop = new AbortController();
      const started = `${rig.folder}/started`;
      const running = rig.run("SLOW", { started }, { signal: stop.signal });
      const read = () => Deno.readTextFile(started).then((text) => text.trim() || undefined, () => undefined);
      const mark = await waitFor("the command", read);
      assert.ok((await findMarked(mark)).length >= 2);
      stop.abort(new RunAborted(cause, "told to stop"));
      const { attempt } = await running;
      assert.deepEqual([attempt.outcome, attempt.reason, attempt.signal], ["aborted", reason, "SIGKILL"]);
      assert.deepEqual(await findMarked(mark), []);
      assert.deepEqual(await runFolders(rig), []);
    } finally {
      await rig.dispose();
    }
  });
}

Deno.test("a command that closes its output and runs on is judged by its exit", async () => {
  const rig = await commandRig({ QUIET: { argv: sh("exec >&- 2>&-; sleep 0.3; exit 3") } });
  try {
    const { attempt } = await rig.run("QUIET", {});
    assert.deepEqual([attempt.exitCode, attempt.reason], [3, "exit_code"]);
  } finally {
    await rig.dispose();
  }
});

Deno.test("a missing program is the host's fault: retried, with a reason", async () => {
  const rig = await commandRig({ GONE: { argv: ["no-such-program-anywhere"] } });
  try {
    const { attempt, error } = await rig.run("GONE", {});
    assert.deepEqual([attempt.outcome, attempt.reason, attempt.exitCode], ["retry", "not_started", null]);
    assert.match(error?.message ?? "", /^not_started: cannot start "no-such-program-anywhere": none of /);
  } finally {
    await rig.dispose();
  }
});

Deno.test("nice holds for the command", async () => {
  const rig = await commandRig({ NICE: { argv: ["nice"], nice: 7 } });
  try {
    assert.equal((await rig.run("NICE", {})).attempt.stdoutTail, "7\n");
  } finally {
    await rig.dispose();
  }
});

Deno.test("a failed run's folder is kept when the kind says so, the oldest beyond the bound are not", async () => {
  const rig = await commandRig(
    {
      FAIL: {
        argv: sh("mkdir -p ro/x; echo evidence > ro/x/file; chmod 500 ro; exit 1"),
        work: { name: "{payload.n}", keepOnFailure: true },
      },
    },
    { work: { base: "work", keepFailed: 2 } },
  );
  try {
    for (const n of [1, 2, 3]) await rig.run("FAIL", { n });
    const kept = await entries(`${rig.folder}/work/kept`);
    assert.deepEqual(kept.map((name) => /-(\d)\.[0-9a-f]+$/.exec(name)?.[1]), ["2", "3"]);
    assert.equal(await Deno.readTextFile(`${rig.folder}/work/kept/${kept[0]}/work/ro/x/file`), "evidence\n");
  } finally {
    await rig.dispose();
  }
});

Deno.test("the log holds the whole output of a run, and of a longer one its beginning and its end", async () => {
  const rig = await commandRig(
    {
      SAY: {
        argv: [
          "/bin/sh",
          "-c",
          "echo first; head -c \"$1\" /dev/zero | tr '\\0' x; echo; echo last",
          "--",
          "{payload.bytes}",
        ],
      },
    },
    { logs: { folder: "logs", perRunMiB: 1, runs: 2 } },
  );
  try {
    for (const bytes of [10, 20_000, 3_000_000]) await rig.run("SAY", { bytes });
    const names = await entries(`${rig.folder}/logs`);
    assert.equal(names.length, 2, "the oldest is gone");
    const short = await Deno.readTextFile(`${rig.folder}/logs/${names[0]}`);
    assert.match(short, /first\nx{20000}\nlast\n$/);
    const long = await Deno.readTextFile(`${rig.folder}/logs/${names[1]}`);
    assert.ok(long.length <= 1_048_576 + 100, `${long.length}`);
    assert.match(long, /first\nx+\n--- \d+ bytes are left out here\nx+\nlast\n$/);
  } finally {
    await rig.dispose();
  }
});
