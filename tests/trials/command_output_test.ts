/**
 * Trial B49: whatever a child writes, the runner neither hangs nor grows. Sizes that take seconds; set LANEWAY_TRIAL_FULL=1
 * for those of the trial (5 GB, 10 minutes, 5,000 children).
 */
import assert from "node:assert/strict";
import { type CommandRig, commandRig } from "../support/command_rig.ts";

const FULL = Deno.env.get("LANEWAY_TRIAL_FULL") === "1";
const BYTES = FULL ? 5_000_000_000 : 300_000_000;
const CHILDREN = FULL ? 5_000 : 200;
const SECONDS = FULL ? 600 : 3;
const MIB = 1_048_576;

/** Runs `work` while a heartbeat ticks; the longest gap between ticks, and how much memory grew at most. */
async function watched(work: () => Promise<unknown>): Promise<{ gapMs: number; grownBytes: number }> {
  let last = performance.now();
  let gapMs = 0;
  const before = Deno.memoryUsage().rss;
  let peak = before;
  const timer = setInterval(() => {
    gapMs = Math.max(gapMs, performance.now() - last);
    last = performance.now();
    peak = Math.max(peak, Deno.memoryUsage().rss);
  }, 20);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return { gapMs, grownBytes: peak - before };
}

async function openFiles(): Promise<number> {
  return (await Array.fromAsync(Deno.readDir(`/proc/${Deno.pid}/fd`))).length;
}

async function withRig(
  kinds: Readonly<Record<string, unknown>>,
  use: (rig: CommandRig) => Promise<void>,
): Promise<void> {
  const rig = await commandRig(kinds, { logs: { folder: "logs", perRunMiB: 1 } });
  try {
    // The first run loads code; what is measured is what grows afterwards.
    await rig.run("WARM", {});
    await use(rig);
  } finally {
    await rig.dispose();
  }
}

const WARM = { argv: ["/bin/sh", "-c", "head -c 30000000 /dev/zero"] };
const sh = (script: string) => ({ argv: ["/bin/sh", "-c", script, "sh", "{payload.n}"], timeLimit: "none" });

Deno.test("B49: output without end is read with bounded memory, counted, and judged by the exit", async () => {
  await withRig({
    WARM,
    LINES: sh(`yes "a line of output" | head -c "$1"; exit 3`),
    UNBROKEN: sh(`head -c "$1" /dev/zero | tr '\\0' x >&2`),
  }, async (rig) => {
    for (const kind of ["LINES", "UNBROKEN"]) {
      const { gapMs, grownBytes } = await watched(async () => {
        const { attempt } = await rig.run(kind, { n: BYTES });
        const lines = kind === "LINES";
        assert.deepEqual([attempt.exitCode, attempt.outcome], lines ? [3, "retry"] : [0, "done"]);
        const [tail, cut] = lines
          ? [attempt.stdoutTail, attempt.stdoutCutBytes]
          : [attempt.stderrTail, attempt.stderrCutBytes];
        assert.equal(tail.length, 8_192);
        assert.equal(cut, BYTES - 8_192);
      });
      assert.ok(grownBytes < 50 * MIB, `${kind}: memory grew by ${(grownBytes / MIB).toFixed(0)} MiB`);
      assert.ok(gapMs < 2_000, `${kind}: heartbeats paused for ${gapMs.toFixed(0)} ms`);
    }
  });
});

Deno.test("B49: invalid UTF-8 and control codes are stored as text that no terminal obeys", async () => {
  await withRig({
    WARM,
    ODD: sh(
      `printf '\\377\\376ok\\303\\050 \\033[31mred\\033]0;title\\007 \\000nul\\r\\n\\302\\233 \\342\\200\\256rtl \\360\\237\\230\\200'`,
    ),
  }, async (rig) => {
    const { attempt } = await rig.run("ODD", { n: 0 });
    assert.equal(attempt.stdoutTail, "��ok�( ␛[31mred␛]0;title␇ ␀nul\n� �rtl 😀");
    assert.equal(attempt.stdoutCutBytes, 0);
  });
});

Deno.test("B49: a child that trickles, one that closes its output and runs on, one that reads its input", async () => {
  await withRig({
    WARM,
    TRICKLE: sh(`i=0; while [ $i -lt "$1" ]; do printf .; sleep 1; i=$((i + 1)); done`),
    CLOSED: sh(`exec >&- 2>&-; sleep 1; exit 5`),
    READS: sh(`cat; read -r line || exit 6`),
  }, async (rig) => {
    const { gapMs } = await watched(async () => {
      const [trickle, closed, reads] = await Promise.all([
        rig.run("TRICKLE", { n: SECONDS }),
        rig.run("CLOSED", { n: 0 }),
        rig.run("READS", { n: 0 }),
      ]);
      assert.equal(trickle.attempt.stdoutTail, ".".repeat(SECONDS));
      assert.equal(closed.attempt.exitCode, 5);
      assert.equal(reads.attempt.exitCode, 6);
    });
    assert.ok(gapMs < 2_000);
  });
});

Deno.test("B49: after many short children open files and memory are what they were", async () => {
  await withRig({ WARM, SHORT: sh("echo $1") }, async (rig) => {
    for (let i = 0; i < 50; i++) await rig.run("SHORT", { n: i });
    const files = await openFiles();
    const { grownBytes } = await watched(async () => {
      for (let done = 0; done < CHILDREN; done += 4) {
        await Promise.all([0, 1, 2, 3].map((i) => rig.run("SHORT", { n: done + i })));
      }
    });
    assert.equal(await openFiles(), files);
    assert.ok(grownBytes < 50 * MIB, `memory grew by ${(grownBytes / MIB).toFixed(0)} MiB`);
    assert.equal((await Array.fromAsync(Deno.readDir(`${rig.folder}/work`))).length, 1);
  });
});
