/**
 * What does not fit a shape, in words that say what would: the library's own are for whoever writes the schema.
 *
 * @module
 */
import type * as z from "zod";

const KINDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};
const UNITS: Readonly<Record<string, string>> = { string: " characters", array: " entries" };

/**
 * Words one issue, for `schema.safeParse(value, { error: wordsOf })`. What a schema itself says of an issue goes before it;
 * undefined leaves the library's own.
 */
export function wordsOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return `${issue.input === undefined ? "it is missing: it must be" : "it must be"} ${
        KINDS[issue.expected] ?? issue.expected
      }`;
    case "too_small":
      return `it must ${sized(issue.origin, "at least", issue.minimum)}`;
    case "too_big":
      return `it must ${sized(issue.origin, "at most", issue.maximum)}`;
    case "unrecognized_keys":
      return `it has no key ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}: leave it out`;
    case "invalid_value":
      return `it must be one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "invalid_format":
      return issue.format === "uuid" ? "it must be a UUID" : undefined;
    default:
      return undefined;
  }
}

function sized(origin: string, bound: string, limit: number | bigint): string {
  const unit = UNITS[origin];
  return unit === undefined ? `be ${bound} ${limit}` : `have ${bound} ${limit}${unit}`;
}
