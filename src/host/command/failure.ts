/**
 * Why a run's command did not end well, before it is written down.
 *
 * @module
 */
import type { AttemptOutcome, FailureReason } from "../types.ts";

/** A step of a run failed; what becomes of the item is decided already. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly reason: FailureReason;
  readonly outcome: Extract<AttemptOutcome, "retry" | "final">;

  constructor(
    reason: FailureReason,
    outcome: Extract<AttemptOutcome, "retry" | "final">,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.reason = reason;
    this.outcome = outcome;
  }
}

/** The item itself cannot be run, now or later. */
export function invalidItem(message: string): CommandFailure {
  return new CommandFailure("invalid_item", "final", message);
}
