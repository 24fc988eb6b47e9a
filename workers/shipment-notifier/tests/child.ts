/**
 * The worker as a process of its own.
 *
 * @module
 */
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));

/** A running child. */
export interface Child {
  /** What it has printed so far. */
  stdout(): string;
  /** What it has logged so far. */
  stderr(): string;
  kill(signal: Deno.Signal): void;
  /** Resolves once it has ended and all it wrote is read. */
  readonly ended: Promise<{ readonly code: number; readonly signal: Deno.Signal | null }>;
}

/** Starts `main.ts` with these arguments. Its environment is this one's, without settings of a worker. */
export function startChild(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Child {
  const inherited = Object.entries(Deno.env.toObject()).filter(([name]) => !name.startsWith("LANEWAY_"));
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", MAIN, ...args],
    clearEnv: true,
    cwd,
    env: { ...Object.fromEntries(inherited), ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const [stdout, stderr] = [collect(process.stdout), collect(process.stderr)];
  const ended = Promise.all([process.status, stdout.done, stderr.done]).then(([{ code, signal }]) => ({
    code,
    signal,
  }));
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    kill(signal) {
      try {
        process.kill(signal);
      } catch {
        // It has ended.
      }
    },
    ended,
  };
}

/** Runs it to its end. */
export async function runChild(
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
  cwd?: string,
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const child = startChild(args, env, cwd);
  const { code } = await child.ended;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

function collect(stream: ReadableStream<Uint8Array<ArrayBuffer>>): { text(): string; readonly done: Promise<void> } {
  let text = "";
  const read = async () => {
    for await (const part of stream.pipeThrough(new TextDecoderStream())) text += part;
  };
  return { text: () => text, done: read() };
}
