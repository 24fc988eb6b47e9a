/**
 * Durations of a worker's own variables.
 *
 * @module
 */
import { parseDuration } from "../core/duration.ts";
import { UsageError } from "./usage_error.ts";

/** What holds where the variable says nothing, and what it may be; both ends count. As people write them: `10s`. */
export interface DurationBounds {
  /** What holds where the variable says nothing. */
  readonly standard: string;
  /** The shortest that is taken. */
  readonly min: string;
  /** The longest that is taken. */
  readonly max: string;
}

/**
 * Reads a variable that holds a duration, milliseconds. Unset and empty are its default.
 *
 * @throws {UsageError} It is no duration, or out of range.
 */
export function readEnvDuration(
  env: Readonly<Record<string, string>>,
  name: string,
  { standard, min, max }: DurationBounds,
): number {
  const text = env[name] || standard;
  let ms: number;
  try {
    ms = parseDuration(text, name);
  } catch (cause) {
    throw new UsageError(
      `Cannot use ${name} ${JSON.stringify(text)}: write a number and a unit (ms, s, m, h, d), for example ${standard}`,
      { cause },
    );
  }
  if (ms >= parseDuration(min, name) && ms <= parseDuration(max, name)) return ms;
  throw new UsageError(`Cannot use ${name} ${text}: it must be from ${min} to ${max}`);
}
