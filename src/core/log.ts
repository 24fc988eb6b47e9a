/**
 * Logs: one event a line, with fields. What is logged never holds a secret.
 *
 * @module
 */

/** Fields of a log line. Errors are given as `error: describeError(e)`, durations with their unit in the name. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Writes log lines. Never throws, never blocks on a full pipe. */
export interface Logger {
  /** For whoever looks for a fault. */
  debug(event: string, fields?: LogFields): void;
  /** What a healthy program tells. */
  info(event: string, fields?: LogFields): void;
  /** What somebody should look at one day. */
  warn(event: string, fields?: LogFields): void;
  /** What somebody should look at now. */
  error(event: string, fields?: LogFields): void;
}

/** A logger that drops everything; for tests and libraries that were given none. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
