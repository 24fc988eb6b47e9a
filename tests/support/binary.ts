/**
 * Compiled workers for tests.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ROOT } from "../house/source_files.ts";

/** Builds a worker into `folder`; null, with the reason printed, where no runtime base can be had. */
export async function buildBinary(
  worker: string,
  folder: string,
  { profile }: { readonly profile?: string } = {},
): Promise<string | null> {
  const out = `${folder}/${worker}`;
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      `${ROOT}tools/compile.ts`,
      worker,
      "--out",
      out,
      ...(profile === undefined ? [] : ["--profile", profile]),
    ],
    cwd: ROOT,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  const said = new TextDecoder().decode(stderr);
  if (code !== 0 && said.includes("runtime base")) {
    console.log(`NOT RUN: ${said.trim()}`);
    return null;
  }
  assert.equal(code, 0, said);
  return out;
}

/** How a run of a binary ended, and what it said. */
export interface BinaryRun {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

/** Runs a binary to its end, with this environment and no other. */
export async function runBinary(
  binary: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<BinaryRun> {
  const { code, stdout, stderr } = await new Deno.Command(binary, {
    args: [...args],
    env: { ...env },
    clearEnv: true,
    stdin: "null",
  }).output();
  return { code, out: new TextDecoder().decode(stdout), errors: new TextDecoder().decode(stderr) };
}

/** A binary that runs. */
export interface RunningBinary {
  /** What it logged so far. */
  log(): string;
  kill(signal: Deno.Signal): void;
  readonly ended: Promise<{ readonly code: number; readonly signal: Deno.Signal | null }>;
}

/** Starts a binary, with this environment and no other. */
export function startBinary(
  binary: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningBinary {
  const child = new Deno.Command(binary, {
    args: [...args],
    env: { ...env },
    clearEnv: true,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let log = "";
  const reading = (async () => {
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) log += part;
  })();
  return {
    log: () => log,
    kill(signal) {
      try {
        child.kill(signal);
      } catch {
        // It has ended.
      }
    },
    ended: Promise.all([child.status, reading]).then(([{ code, signal }]) => ({ code, signal })),
  };
}
