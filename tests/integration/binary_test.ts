/**
 * The compiled binary of each worker: built, asked for its version, run on memory, and told to stop.
 */
import assert from "node:assert/strict";
import { ROOT } from "../house/source_files.ts";
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { waitFor } from "../support/wait_for.ts";

async function workers(): Promise<string[]> {
  const names: string[] = [];
  const entries = await Array.fromAsync(Deno.readDir(`${ROOT}workers`)).catch(() => []);
  for (const entry of entries) {
    const there = await Deno.stat(`${ROOT}workers/${entry.name}/worker.ts`).then(() => true, () => false);
    if (there) names.push(entry.name);
  }
  return names.sort();
}

async function digest(path: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", await Deno.readFile(path))).toHex();
}

async function serveAndStop(binary: string): Promise<void> {
  const child = startBinary(binary, ["--store", "memory", "--http-port", "0", "--log-format", "json"], {
    LANEWAY_CAPACTY: "3",
    SECRET_OF_THE_SHELL: "x",
  });
  try {
    const url = await waitFor("the worker to run", () => {
      const log = child.log();
      assert.equal(/process\.stray_error/.test(log), false, log);
      return log.includes("process.started") ? /http:\/\/127\.0\.0\.1:\d+/.exec(log)?.[0] : undefined;
    });
    for (const path of ["/healthz", "/readyz", "/livez", "/metrics"]) {
      const response = await fetch(url + path);
      assert.equal(response.status, 200, `${path}: ${await response.text()}`);
      await response.body?.cancel().catch(() => {});
    }
    assert.match(child.log(), /did you mean LANEWAY_CAPACITY\?/);
  } finally {
    child.kill("SIGTERM");
  }
  const { code } = await child.ended;
  assert.equal(code, 0, child.log());
}

/** Whether it works on a store of ours. What brings a source of its own is run by tests of its own (`tests/host`). */
async function hasStore(worker: string): Promise<boolean> {
  const { definition } = await import(`../../workers/${worker}/worker.ts`) as { definition: { open?: unknown } };
  return definition.open === undefined;
}

for (const worker of await workers()) {
  const onMemory = await hasStore(worker);
  const runs = onMemory ? ", runs on memory, drains at SIGTERM," : "";
  Deno.test(`the binary of ${worker} says its version${runs} and is built alike`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "laneway-binary-" });
    try {
      const binary = await buildBinary(worker, folder);
      if (binary === null) return;
      const version = await runBinary(binary, ["--version"]);
      assert.match(
        version.out,
        new RegExp(`^${worker} \\d+\\.\\d+\\.\\d+\\S* \\((?:[0-9a-f]{12}(?:-dirty)?|unknown)\\)`),
      );
      const bad = await runBinary(binary, ["--lease", "5"]);
      assert.deepEqual([bad.code, bad.errors.trim().split("\n").length], [2, 1], bad.errors);
      if (onMemory) await serveAndStop(binary);
      const first = await digest(binary);
      const again = await buildBinary(worker, folder);
      assert.equal(await digest(again ?? ""), first, "the same commit gives the same bytes");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}
