/**
 * How a command ends: one line and an exit code, never a stack.
 *
 * @module
 */
import { CommanderError } from "commander";
import { describeError, oneLine } from "../core/describe_error.ts";
import { LanewayError, ValidationError } from "../core/errors.ts";
import { UsageError } from "../runtime/usage_error.ts";

/** The exit codes every command uses. README's table is generated from here. */
export const EXIT_CODES = {
  0: "Done. For a worker: drained cleanly, also when items were handed back.",
  1: "Failed: the world did not allow it (no database, wrong password, port in use), items were refused, or a drain left items to expire.",
  2: "Wrong usage: a flag, a variable or a command that does not exist or does not fit. Nothing was done.",
} as const;

/** An exit code. */
export type ExitCode = keyof typeof EXIT_CODES;

/** One line for a failure and the code to exit with. A code of 0 means that help or the version was shown. */
export function describeFailure(error: unknown): { readonly line: string; readonly code: ExitCode } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { line: "", code: 0 };
    return { line: usageLine(error), code: 2 };
  }
  if (error instanceof UsageError || error instanceof ValidationError) return { line: oneLine(error.message), code: 2 };
  return { line: oneLine(error instanceof LanewayError ? error.message : describeError(error)), code: 1 };
}

// Commander suggests a near name where it finds one; else help is what helps.
function usageLine(error: CommanderError): string {
  const line = oneLine(error.message.replace(/^error: /, ""));
  const known = !error.code.startsWith("commander.") || line.includes("Did you mean");
  return known ? line : `${line}; --help lists what there is`;
}
