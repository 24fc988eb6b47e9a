import assert from "node:assert/strict";
import { FinalError } from "../../core/errors.ts";
import { type CommandRig, commandRig } from "../../../tests/support/command_rig.ts";
import { git } from "../../../tests/support/git.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { RunAborted } from "../../runtime/run.ts";
import { checkCloneUrl, isRef } from "./git.ts";

/** A repository `origin/NAME` with two commits and a branch. */
async function makeOrigin(folder: string): Promise<string> {
  const path = `${folder}/origin/widget`;
  await Deno.mkdir(`${path}/prompts`, { recursive: true });
  await git(path, "init", "--quiet");
  await Deno.writeTextFile(`${path}/prompts/issue.md`, "first\n");
  await git(path, "add", "-A");
  await git(path, "commit", "--quiet", "-m", "one");
  await git(path, "branch", "topic");
  await Deno.writeTextFile(`${path}/prompts/issue.md`, "second\n");
  await git(path, "commit", "--quiet", "-a", "-m", "two");
  return path;
}

async function withRig(
  kinds: (folder: string) => Record<string, unknown>,
  use: (rig: CommandRig) => Promise<void>,
): Promise<void> {
  const origin = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-origin-" }));
  await makeOrigin(origin);
  const rig = await commandRig(kinds(origin), {
    folders: { prompts: { path: `${origin}/checkout`, refresh: { ref: "origin/main" } } },
  });
  try {
    await git(origin, "clone", "--quiet", `file://${origin}/origin/widget`, "checkout");
    await use(rig);
  } finally {
    await rig.dispose();
    await Deno.remove(origin, { recursive: true });
  }
}

Deno.test("a run works in a shallow clone of every branch, at the ref it names", async () => {
  await withRig((folder) => ({
    CLONE: {
      argv: [
        "/bin/sh",
        "-c",
        "git rev-list --count HEAD; git branch -r | grep -c origin/; cat prompts/issue.md; cat .git/config",
      ],
      clone: { url: `file://${folder}/origin/{payload.repo}`, ref: "{payload.ref}" },
    },
    PLAIN: { argv: ["/bin/cat", "prompts/issue.md"], clone: { url: `file://${folder}/origin/{payload.repo}` } },
  }), async (rig) => {
    const { attempt, error } = await rig.run("CLONE", { repo: "widget", ref: "topic" });
    assert.equal(error, null);
    const [commits, branches, said] = attempt.stdoutTail.split("\n");
    assert.equal(commits, "1");
    assert.ok(Number(branches) >= 2, attempt.stdoutTail);
    assert.equal(said, "first");
    assert.equal((await rig.run("PLAIN", { repo: "widget" })).attempt.stdoutTail, "second\n");
    const gone = await rig.run("PLAIN", { repo: "gadget" });
    assert.deepEqual([gone.attempt.outcome, gone.attempt.reason], ["retry", "clone"]);
    assert.match(gone.error?.message ?? "", /^clone: git clone exited with 128: /);
    assert.ok(!(gone.error instanceof FinalError));
  });
});

Deno.test("a prompt is by role with fallback, read after the folder was brought to its ref, also for many at once", async () => {
  await withRig(() => ({
    ASK: {
      argv: ["/bin/echo", "-n", "{run.prompt}"],
      prompt: {
        folder: "prompts",
        file: "prompts/issue.md",
        role: "payload.role",
        roleFile: "prompts/issue-{run.role}.md",
      },
    },
    FILE: {
      argv: ["/bin/sh", "-c", 'cat; cat "$LANEWAY_PROMPT_FILE"'],
      stdin: "prompt",
      prompt: { folder: "prompts", file: "prompts/issue.md" },
    },
  }), async (rig) => {
    const origin = rig.attempts; // nothing ran yet
    assert.equal(origin.length, 0);
    assert.equal((await rig.run("ASK", { role: "coder" })).attempt.stdoutTail, "second\n");
    assert.equal((await rig.run("FILE", {})).attempt.stdoutTail, "second\nsecond\n");
    const all = await Promise.all(Array.from({ length: 6 }, () => rig.run("ASK", {})));
    assert.deepEqual(all.map(({ attempt }) => attempt.stdoutTail), Array(6).fill("second\n"));
  });
});

Deno.test("a prompt that moved on in the origin, or was changed on the host, is what the ref says", async () => {
  let origin = "";
  await withRig((folder) => {
    origin = folder;
    return {
      ASK: {
        argv: ["/bin/echo", "-n", "{run.prompt}"],
        prompt: {
          folder: "prompts",
          file: "prompts/issue.md",
          role: "payload.role",
          roleFile: "prompts/issue-scoped.md",
        },
      },
      LOST: { argv: ["/bin/echo"], prompt: { folder: "prompts", file: "prompts/none.md" } },
    };
  }, async (rig) => {
    await Deno.writeTextFile(`${origin}/checkout/prompts/issue.md`, "meddled\n");
    await Deno.writeTextFile(`${origin}/origin/widget/prompts/issue-scoped.md`, "scoped\n");
    await git(`${origin}/origin/widget`, "add", "-A");
    await git(`${origin}/origin/widget`, "commit", "--quiet", "-m", "three");
    assert.equal((await rig.run("ASK", {})).attempt.stdoutTail, "second\n");
    assert.equal((await rig.run("ASK", { role: "dev-coder" })).attempt.stdoutTail, "scoped\n");
    const lost = await rig.run("LOST", {});
    assert.deepEqual([lost.attempt.outcome, lost.attempt.reason], ["retry", "prompt"]);
    await Deno.rename(`${origin}/origin`, `${origin}/away`);
    const stale = await rig.run("ASK", {});
    assert.deepEqual([stale.attempt.outcome, stale.attempt.reason], ["retry", "prompt"]);
    assert.match(stale.error?.message ?? "", /^prompt: git fetch exited with/);
  });
});

Deno.test("a clone that hangs ends with its run's time limit", async () => {
  // Accepts connections and says nothing.
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const held: Deno.Conn[] = [];
  const accepting = (async () => {
    for await (const connection of listener) held.push(connection);
  })();
  const rig = await commandRig({
    HANG: {
      argv: ["/bin/true"],
      timeLimit: "1s",
      clone: { url: `https://127.0.0.1:${listener.addr.port}/x.git` },
    },
  });
  try {
    const { attempt } = await rig.run("HANG", {});
    assert.deepEqual([attempt.outcome, attempt.reason], ["retry", "timed_out"]);
  } finally {
    await rig.dispose();
    listener.close();
    for (const connection of held) connection.close();
    await accepting;
  }
});

Deno.test("a refresh that hangs holds up no run that is to end: it does not wait for its turn", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-hang-" }));
  await Deno.mkdir(`${folder}/bin`);
  await Deno.mkdir(`${folder}/checkout/.git`, { recursive: true });
  await Deno.writeTextFile(`${folder}/bin/git`, `#!/bin/sh\ntouch ${folder}/fetching\nexec sleep 300\n`, {
    mode: 0o755,
  });
  const rig = await commandRig({
    ASK: { argv: ["/bin/true"], killGrace: "0s", prompt: { folder: "prompts", file: "p.md" } },
  }, {
    env: { PATH: `${folder}/bin:/usr/bin:/bin` },
    folders: { prompts: { path: `${folder}/checkout`, refresh: { ref: "origin/main" } } },
  });
  const [one, two] = [new AbortController(), new AbortController()];
  const running = [one, two].map(({ signal }) => rig.run("ASK", {}, { signal }));
  const ended: number[] = [];
  running.forEach((run, n) => void run.then(() => ended.push(n)));
  try {
    await waitFor("the fetch", () => Deno.stat(`${folder}/fetching`).then(() => true, () => undefined));
    two.abort(new RunAborted("DRAINED", "told to stop"));
    await waitFor("the second run's end", () => ended.includes(1) || undefined);
    assert.deepEqual(ended, [1]);
  } finally {
    one.abort(new RunAborted("DRAINED", "told to stop"));
    for (const { attempt } of await Promise.all(running)) assert.equal(attempt.outcome, "aborted");
    await rig.dispose();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("checkCloneUrl() takes https, ssh and git@host:path, and a folder only where the config says so", () => {
  assert.deepEqual(checkCloneUrl("https://Git.Example.org/a/b.git", false), { host: "git.example.org" });
  assert.deepEqual(checkCloneUrl("ssh://git@git.example.org/a", false), { host: "git.example.org" });
  assert.deepEqual(checkCloneUrl("git@git.example.org:a/b.git", false), { host: "git.example.org" });
  assert.deepEqual(checkCloneUrl("file:///srv/a", true), { host: "" });
  for (
    const url of ["file:///srv/a", "git://h/a", "ext::sh", "https://u@h/a", "ssh://u:p@h/a", "https://h/a b", "-x"]
  ) {
    assert.equal(typeof checkCloneUrl(url, false), "string", url);
  }
});

Deno.test("isRef() takes branches, tags and commits, nothing git could read otherwise", () => {
  for (const ref of ["main", "origin/main", "v1.2.3", "feature/x-1", "abcdef0"]) assert.ok(isRef(ref), ref);
  for (const ref of ["-x", "--all", "a..b", "a b", "a@{1}", "/a", "a/", "a.lock", "a:b", "a~1", ""]) {
    assert.ok(!isRef(ref), ref);
  }
});
