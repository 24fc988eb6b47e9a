/**
 * Turns anything a handler can throw into one bounded line of text. Handlers throw nothing, symbols, proxies and errors
 * that contain themselves; the failure path must survive all of them.
 *
 * @module
 */

/** The longest text `describeError` returns, in UTF-16 units. A row's `last_error` never grows beyond it. */
export const MAX_ERROR_LENGTH = 2_000;

const MAX_CAUSES = 4;
/** Controls, separators of lines and paragraphs, and what turns the direction of text. */
const UNSAFE = /\s*[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+\s*/gu;

/**
 * Describes a thrown value: never empty, never longer than `MAX_ERROR_LENGTH`, never throws, storable as text. URLs in it
 * lose user, password, query and fragment: `fetch` puts the whole of one into its errors, and what is described is kept,
 * logged and exported.
 */
export function describeError(thrown: unknown): string {
  let text: string;
  try {
    text = describe(thrown);
  } catch {
    text = "a thrown value that cannot be read";
  }
  return boundText(text === "" ? "an empty error" : withoutUrlSecrets(text), MAX_ERROR_LENGTH);
}

/** Takes from URLs in a text what may be a secret: `postgres://a:b@c/d?e#f` becomes `postgres://c/d`. */
function withoutUrlSecrets(text: string): string {
  return text.replaceAll(
    /\b([a-z][a-z0-9+.-]{0,20}:\/\/)(?:[^\s/?#@"'<>()]*@)?([^\s?#"'<>();,]*)(?:[?#][^\s"'<>();,]*)?/gi,
    "$1$2",
  );
}

/** Any value as it is shown within a message: never throws, at most 100 characters. */
export function showValue(value: unknown): string {
  try {
    return boundText(String(value), 100);
  } catch {
    return `a ${typeof value}`;
  }
}

/** A text as it is shown within a message, in quotes: at most 200 characters, line ends and other controls escaped. */
export function quoteText(text: string): string {
  return boundText(JSON.stringify(text), 200);
}

/**
 * One line for a terminal, at most `MAX_ERROR_LENGTH` characters: what would end it or move the cursor becomes a space, so
 * that input which is quoted can neither pass for further lines nor change those before.
 */
export function oneLine(text: string): string {
  return boundText(text, MAX_ERROR_LENGTH).replaceAll(UNSAFE, " ").trim();
}

/** Cuts text to `max` UTF-16 units, saying how much was cut, and replaces what Postgres cannot store. */
export function boundText(text: string, max: number): string {
  const cut = text.length > max ? `${text.slice(0, max - 40)}… (${text.length - max + 40} more characters)` : text;
  return cut.replaceAll("\u0000", "\uFFFD").toWellFormed();
}

function describe(thrown: unknown): string {
  if (thrown === undefined) return "undefined was thrown";
  if (thrown === null) return "null was thrown";
  if (typeof thrown === "string") return thrown === "" ? "an empty string was thrown" : thrown;
  if (typeof thrown === "function") return `a function was thrown: ${thrown.name}`;
  if (typeof thrown !== "object") return `${String(thrown)} was thrown`;
  const parts: string[] = [];
  const seen = new Set<object>();
  let current: unknown = thrown;
  while (parts.length < MAX_CAUSES && typeof current === "object" && current !== null && !seen.has(current)) {
    seen.add(current);
    parts.push(head(current));
    current = read(current, "cause");
  }
  return parts.join("; caused by ");
}

function head(value: object): string {
  const name = read(value, "name");
  const message = read(value, "message");
  const errors = read(value, "errors");
  const label = typeof name === "string" && name !== "" ? boundText(name, 100) : "";
  const said = typeof message === "string" ? boundText(message, MAX_ERROR_LENGTH) : "";
  const count = Array.isArray(errors) ? ` (${errors.length} errors, the first: ${firstOf(errors)})` : "";
  if (said !== "") return (label === "" || label === "Error" ? said : `${label}: ${said}`) + count;
  if (label !== "") return `${label} without a message${count}`;
  return `an object was thrown: ${shape(value)}`;
}

function firstOf(errors: readonly unknown[]): string {
  try {
    const first = errors[0];
    return boundText(typeof first === "object" && first !== null ? String(read(first, "message")) : String(first), 200);
  } catch {
    return "unreadable";
  }
}

function shape(value: object): string {
  try {
    return boundText(JSON.stringify(value) ?? "unreadable", 200);
  } catch {
    return "unreadable";
  }
}

function read(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}
