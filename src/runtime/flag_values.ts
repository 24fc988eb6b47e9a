/**
 * Reads one flag's text into its value, refusing what its entry in the table does not allow.
 *
 * @module
 */
import { quoteText } from "../core/describe_error.ts";
import { parseDuration } from "../core/duration.ts";
import { ValidationError } from "../core/errors.ts";
import type { FlagSpec } from "./flags.ts";
import { UsageError } from "./usage_error.ts";

/** A flag's parsed value. */
export type FlagValue = string | number | readonly string[];

/**
 * Parses `text` as `spec` says.
 *
 * @param label What the person wrote, for the error: `--lease` or `LANEWAY_LEASE`.
 * @throws {UsageError} Naming the label, the value and what is accepted.
 */
export function parseFlag(spec: FlagSpec, text: string, label: string): FlagValue {
  switch (spec.type) {
    case "int":
      return parseInt_(spec.min, spec.max, text, label);
    case "duration":
      return parseUnit(spec, text, label, readDuration);
    case "size":
      return parseUnit(spec, text, label, parseSize);
    case "enum":
      if (!spec.values.includes(text)) throw refuse(label, text, `it must be one of ${spec.values.join(", ")}`);
      return text;
    case "text":
      if (!spec.pattern.test(text)) throw refuse(label, text, `it must be ${spec.form}`);
      return text;
    case "list": {
      const entries = [...new Set(text.split(",").map((entry) => entry.trim()).filter((entry) => entry !== ""))];
      if (entries.length === 0) throw refuse(label, text, `it must be ${spec.form}`);
      const bad = entries.find((entry) => !spec.pattern.test(entry));
      if (bad !== undefined) throw refuse(label, bad, `it must be ${spec.form}`);
      return entries;
    }
  }
}

function parseInt_(min: number, max: number, text: string, label: string): number {
  const value = /^-?\d{1,15}$/.test(text.trim()) ? Number(text) : NaN;
  if (!(value >= min && value <= max)) {
    throw refuse(label, text, `it must be a whole number from ${min} to ${max}`);
  }
  return value;
}

type UnitSpec = Extract<FlagSpec, { min: string }>;

function parseUnit(
  spec: UnitSpec,
  text: string,
  label: string,
  read: (text: string, label: string) => number,
): number {
  const value = read(text, label);
  if (value < read(spec.min, label) || value > read(spec.max, label)) {
    throw refuse(label, text, `it must lie between ${spec.min} and ${spec.max}`);
  }
  return value;
}

function readDuration(text: string, label: string): number {
  try {
    return parseDuration(text, label);
  } catch (error) {
    if (error instanceof ValidationError) throw new UsageError(error.message);
    throw error;
  }
}

const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 * 1024 };

/**
 * Reads a size such as `256KiB` into bytes.
 *
 * @throws {UsageError} The text has no unit, another unit, or is no whole number.
 */
export function parseSize(text: string, label: string): number {
  const match = /^(\d{1,9})(B|KiB|MiB)$/.exec(text.trim());
  const unit = SIZE_UNITS[match?.[2] ?? ""];
  if (match === null || unit === undefined) {
    throw refuse(label, text, "write a whole number and a unit (B, KiB, MiB), for example 256KiB");
  }
  return Number(match[1]) * unit;
}

function refuse(label: string, text: string, why: string): UsageError {
  return new UsageError(`Cannot use ${label} ${quoteText(text)}: ${why}`);
}
