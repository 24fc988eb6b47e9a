/**
 * A worker program for tests of the command line, and its outside in the test's hands.
 *
 * @module
 */
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { runProgram } from "../../src/cli/program.ts";
import type { CliIo } from "../../src/cli/io.ts";
import type { WorkerDefinition } from "../../src/runtime/definition.ts";
import { defineKind } from "../../src/work/kinds.ts";

/** A worker of one kind, which records the items it handled. */
export function testWorker(handled: string[] = []): WorkerDefinition {
  const kind = defineKind("ECHO", { schema: z.object({ text: z.string() }) });
  return {
    name: "test-worker",
    release: "1.2.3",
    commit: "abc123",
    kinds: [kind],
    build: () => ({ handlers: [{ kind, handle: (_ctx, item) => void handled.push(item.idempotencyKey) }] }),
  };
}

/** What a run of the program said and how it ended. */
export interface CliResult {
  readonly code: number;
  readonly out: string[];
  readonly errors: string[];
}

/** Signals in the test's hands. */
export class TestStop {
  readonly #stopping = new AbortController();
  readonly #hurrying = new AbortController();
  readonly stopping: AbortSignal = this.#stopping.signal;
  readonly hurrying: AbortSignal = this.#hurrying.signal;

  /** The first signal. */
  stop(): void {
    this.#stopping.abort();
  }

  dispose(): void {}
}

/** Runs the program with `args` and an environment of its own. */
export async function runCli(
  args: readonly string[],
  options: { env?: Record<string, string>; stdin?: string; definition?: WorkerDefinition; stop?: TestStop } = {},
): Promise<CliResult> {
  const [out, errors]: [string[], string[]] = [[], []];
  const io: CliIo = {
    env: options.env ?? {},
    clock: systemClock,
    print: (line) => void out.push(...line.split("\n")),
    printError: (line) => void errors.push(line),
    stdin: () => new Blob([options.stdin ?? ""]).stream(),
    listenForStop: () => options.stop ?? new TestStop(),
  };
  const code = await runProgram(options.definition ?? testWorker(), args, io);
  return { code, out, errors };
}
