/**
 * The closed set of errors Laneway throws on purpose, each with a stable `code`. Anything else that surfaces is a bug
 * or comes from a handler.
 *
 * @module
 */

/** The stable code of each error class. */
export type ErrorCode =
  | "VALIDATION"
  | "SETTINGS"
  | "NOT_FOUND"
  | "CONFLICT"
  | "UNAVAILABLE"
  | "FINAL"
  | "INVARIANT";

/** Base of every error Laneway throws on purpose. */
export abstract class LanewayError extends Error {
  /** Which member of the closed set this is. */
  abstract readonly code: ErrorCode;

  /** Names the error by its class. */
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Input was refused before anything was written. `field` names what to change. */
export class ValidationError extends LanewayError {
  /** Always `VALIDATION`. */
  override readonly code = "VALIDATION";
  /** The field or path that was refused, for example `payload.a[0].b`. */
  readonly field: string;

  /** Names the field beside the message. */
  constructor(field: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}

/** A setting is missing, malformed or does not fit another; the message says which and how to mend it. */
export class SettingsError extends LanewayError {
  /** Always `SETTINGS`. */
  override readonly code = "SETTINGS";
}

/** What was asked for does not exist, is gone, or belongs to another org. */
export class NotFoundError extends LanewayError {
  /** Always `NOT_FOUND`. */
  override readonly code = "NOT_FOUND";
}

/** The write was refused because another claim, version or state holds the row. Nothing was changed. */
export class ConflictError extends LanewayError {
  /** Always `CONFLICT`. */
  override readonly code = "CONFLICT";
}

/** How sure an `UnavailableError` is about the statement that met it. */
export type Outcome = "not-executed" | "unknown";

/** The database is out of reach, or did not answer in time. Retrying may help. */
export class UnavailableError extends LanewayError {
  /** Always `UNAVAILABLE`. */
  override readonly code = "UNAVAILABLE";
  /** `unknown` when the statement may have taken effect: read back before telling anybody. */
  readonly outcome: Outcome;

  /** Says with the message how sure it is. */
  constructor(message: string, outcome: Outcome, options?: ErrorOptions) {
    super(message, options);
    this.outcome = outcome;
  }
}

/** Thrown by a handler to dead-letter its item at once, whatever attempts are left. */
export class FinalError extends LanewayError {
  /** Always `FINAL`. */
  override readonly code = "FINAL";
}

/**
 * `instanceof` that survives anything that can be thrown: a revoked proxy throws when it is asked what it is.
 */
export function isInstance<T>(value: unknown, type: abstract new (...args: never[]) => T): value is T {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

/** A condition that must hold does not: a bug in Laneway, never an input's fault. */
export class InvariantError extends LanewayError {
  /** Always `INVARIANT`. */
  override readonly code = "INVARIANT";
}

/**
 * Asserts what must be true of our own code.
 *
 * @throws {InvariantError} When `condition` is false.
 */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
