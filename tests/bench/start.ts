/**
 * How long a worker takes from its start to ready, and what it holds while idle: the compiled binary when there is one,
 * else the program from source.
 *
 * @module
 */
import { medianAndRange, table } from "./statistics.ts";

const BINARY = "dist/shipment-notifier";
const SOURCE = "workers/shipment-notifier/main.ts";
const ARGS = ["--store", "memory", "--http-port", "0", "--log-format", "json"];

/** Measures `rounds` starts and returns the table. */
export async function measureStart(rounds: number): Promise<string> {
  const compiled = await Deno.stat(BINARY).then(() => true, () => false);
  const readyMs: number[] = [];
  const idleMiB: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { ready, rss } = await startOnce(compiled);
    readyMs.push(ready);
    idleMiB.push(rss);
  }
  return table(["start on `:memory:`", "start → ready", "resident memory, idle"], [[
    compiled ? "compiled binary" : "from source (no binary in dist/)",
    medianAndRange(readyMs, " ms"),
    medianAndRange(idleMiB, " MiB"),
  ]]);
}

async function startOnce(compiled: boolean): Promise<{ ready: number; rss: number }> {
  const startMs = performance.now();
  const command = compiled
    ? new Deno.Command(BINARY, { args: ARGS, stderr: "piped", stdout: "null" })
    : new Deno.Command(Deno.execPath(), { args: ["run", "-A", SOURCE, ...ARGS], stderr: "piped", stdout: "null" });
  const child = command.spawn();
  try {
    const url = await httpUrl(child);
    while (!await isReady(`${url}/readyz`)) await new Promise((again) => setTimeout(again, 2));
    const ready = performance.now() - startMs;
    await new Promise((idle) => setTimeout(idle, 2_000));
    const status = await Deno.readTextFile(`/proc/${child.pid}/status`);
    return { ready, rss: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024 };
  } finally {
    child.kill("SIGTERM");
    await child.status;
  }
}

/** The address from the worker's own log; drains the rest of it. */
async function httpUrl(child: Deno.ChildProcess): Promise<string> {
  const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the worker ended before it listened:\n${text}`);
    text += value;
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
    if (url === undefined) continue;
    void (async () => {
      while (!(await reader.read()).done);
    })();
    return url;
  }
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => null);
  await response?.body?.cancel();
  return response?.ok ?? false;
}
