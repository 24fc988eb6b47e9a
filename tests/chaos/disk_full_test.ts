/**
 * The disk of a durable SQLite store fills: a small file system of its own, in a mount namespace that goes with the processes.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { buildTestWorkerIfCan } from "../support/test_worker.ts";
import { parseLog } from "./check.ts";
import { ORG } from "./worker.ts";

/**
 * All in one shell, as the file system is its namespace's own. Waits look at the log of the handlers, at most a minute. Says
 * what each step came to.
 */
const SCRIPT = `
set -u
mount -t tmpfs -o size=24m tmpfs "$DISK"
store="sqlite:$DISK/work.db"
lines() { i="$1"; while [ "$i" -le "$2" ]; do
  echo "{\\"org\\":\\"$ORG\\",\\"kind\\":\\"CHAOS\\",\\"key\\":\\"k$i\\",\\"payload\\":{\\"ms\\":0,\\"poison\\":false}}"; i=$((i + 1)); done; }
ends() { [ -f "$CHAOS_LOG" ] && grep -c ' end$' "$CHAOS_LOG" || true; }
until_ends() { n=0; while [ "$(ends)" -lt "$1" ] && [ "$n" -lt 200 ]; do sleep 0.1; n=$((n + 1)); done; }

"$BINARY" make-org --store "$store" --log-level error
"$BINARY" serve --store "$store" --http off --log-format json --lease 3s --poll 100ms --sweep 500ms --drain-grace 2s 2> "$CHAOS_LOG.worker" &
worker=$!
lines 1 200 | "$BINARY" enqueue --store "$store" --log-level error > "$CHAOS_LOG.first"; echo "first $?"
until_ends 200; echo "ended $(ends)"

cat /dev/zero > "$DISK/fill" 2> /dev/null
lines 201 4200 | "$BINARY" enqueue --store "$store" --log-level error > "$CHAOS_LOG.full" 2>&1; echo "full $?"
kill -0 "$worker" && echo "alive while full"

rm "$DISK/fill"
lines 201 4200 | "$BINARY" enqueue --store "$store" --log-level error > "$CHAOS_LOG.again"; echo "again $?"
until_ends 4200; echo "ended $(ends)"
kill -TERM "$worker"; wait "$worker"; echo "worker $?"
`;

async function canMount(): Promise<boolean> {
  if (Deno.uid() !== 0) return false;
  const probe = new Deno.Command("unshare", {
    args: ["--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
    stdout: "null",
    stderr: "null",
  });
  return await probe.output().then(({ success }) => success, () => false);
}

Deno.test("a full disk refuses what it cannot keep, in words, ends no worker, and loses nothing that was told as kept", async () => {
  if (!await canMount()) return void console.log("NOT RUN: a disk to fill needs root, and a mount namespace");
  const folder = await Deno.makeTempDir({ prefix: "laneway-disk-" });
  try {
    const binary = await buildTestWorkerIfCan(folder, { name: "chaos-worker", source: "tests/chaos/worker.ts" });
    if (binary === null) return;
    const log = join(folder, "log");
    await Deno.mkdir(join(folder, "disk"));
    const { stdout, stderr } = await new Deno.Command("unshare", {
      args: ["--mount", "--propagation", "private", "sh", "-c", SCRIPT],
      env: { BINARY: binary, DISK: join(folder, "disk"), CHAOS_LOG: log, ORG },
      stdin: "null",
    }).output();
    const read = (path: string) => Deno.readTextFile(path).catch(() => "");
    const [full, worker] = await Promise.all([read(`${log}.full`), read(`${log}.worker`)]);
    const said = new TextDecoder().decode(stdout).trim().split("\n");
    const all = [said.join("\n"), new TextDecoder().decode(stderr), full.slice(-2_000), worker.slice(-4_000)].join(
      "\n",
    );
    assert.deepEqual(
      said,
      ["first 0", "ended 200", "full 1", "alive while full", "again 0", "ended 4200", "worker 0"],
      all,
    );
    assert.match(full, /full|disk|space/i, all);
    assert.doesNotMatch(worker, /process\.stray_error|Uncaught/, all);
    const ends = parseLog(await Deno.readTextFile(log)).filter(({ what }) => what === "end");
    assert.equal(new Set(ends.map(({ item }) => item)).size, 4_200, "each item ran to its end");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
