/**
 * What a command reads and writes, so that tests can give their own.
 *
 * @module
 */
import { type Clock, systemClock } from "../core/clock.ts";
import type { WorkerDefinition } from "../runtime/definition.ts";
import { knownVariables } from "../runtime/settings.ts";
import { listenForStop, type StopRequest } from "../runtime/signals.ts";

/** The outside of a command. */
export interface CliIo {
  /** The environment, as far as this process may see it. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Writes a line on standard output. */
  print(line: string): void;
  /** Writes a line on standard error. */
  printError(line: string): void;
  /** Standard input. */
  stdin(): AsyncIterable<Uint8Array>;
  /** Starts listening to stop signals. */
  listenForStop(onSignal: (signal: string, count: number) => void): StopRequest;
}

/** The process's own. */
export function systemIo(definition: WorkerDefinition): CliIo {
  return {
    env: readEnv([...knownVariables(), ...definition.env ?? []]),
    clock: systemClock,
    print: (line) => writeAll(Deno.stdout, line),
    printError: (line) => writeAll(Deno.stderr, line),
    stdin: () => Deno.stdin.readable,
    listenForStop,
  };
}

// A compiled binary may read its declared variables only; asking for the whole environment is then refused.
function readEnv(names: readonly string[]): Record<string, string> {
  try {
    return Deno.env.toObject();
  } catch {
    const env: Record<string, string> = {};
    for (const name of names) {
      const value = Deno.env.get(name);
      if (value !== undefined) env[name] = value;
    }
    return env;
  }
}

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, line: string): void {
  const bytes = new TextEncoder().encode(`${line}\n`);
  try {
    for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
  } catch {
    // The reader has gone (`| head`): nothing is left to tell it.
  }
}
