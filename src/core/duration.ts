/**
 * Durations as people write them: a number and a unit, `500ms`, `30s`, `15m`, `1h`, `7d`.
 *
 * @module
 */
import { quoteText } from "./describe_error.ts";
import { ValidationError } from "./errors.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/**
 * Reads a duration such as `1.5s` into whole milliseconds.
 *
 * @param field Named in the error.
 * @throws {ValidationError} The text has no unit, another unit, a sign, or is no whole number of milliseconds.
 */
export function parseDuration(text: string, field: string): number {
  const match = FORM.exec(text.trim());
  if (match === null) {
    throw new ValidationError(
      field,
      `Cannot read ${field} ${
        quoteText(text)
      } as a duration: write a number and a unit (ms, s, m, h, d), for example 30s`,
    );
  }
  const ms = Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? NaN);
  const whole = Math.round(ms);
  if (!Number.isSafeInteger(whole) || Math.abs(whole - ms) > 1e-6) {
    throw new ValidationError(
      field,
      `Cannot use ${field} ${quoteText(text)}: it is not a whole number of milliseconds`,
    );
  }
  return whole;
}

/** Writes milliseconds in the largest unit that divides them: `90000` is `90s`, `604800000` is `7d`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  for (const unit of ["d", "h", "m", "s"]) {
    const size = UNIT_MS[unit] ?? 1;
    if (ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}
