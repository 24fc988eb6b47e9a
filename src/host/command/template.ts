/**
 * Texts with placeholders: `worker-{item.id}`. No expressions, no defaults, no nesting; `{{` and `}}` are braces.
 *
 * @module
 */
import { invalidItem } from "./failure.ts";
import { type FieldPath, type FieldScope, parseField, readField } from "./fields.ts";

/** A text's parts, in order. */
export interface Template {
  /** As it was written. */
  readonly text: string;
  readonly parts: readonly (string | FieldPath)[];
}

const TOKEN = /\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+/g;

/** Reads a template. A string says why it is none, with the fix. */
export function parseTemplate(text: string): Template | string {
  if (text.includes("\u0000")) return "it holds a NUL, which no argument and no name can: leave it out";
  const parts: (string | FieldPath)[] = [];
  const literal = (piece: string) => {
    const last = parts.at(-1);
    if (typeof last === "string") parts[parts.length - 1] = last + piece;
    else parts.push(piece);
  };
  for (const [token, name] of text.matchAll(TOKEN)) {
    if (token === "{{" || token === "}}") literal(token.charAt(0));
    else if (name !== undefined) {
      const field = parseField(name.trim());
      if (typeof field === "string") return field;
      parts.push(field);
    } else if (token === "{" || token === "}") {
      return `a single "${token}" stands in it: write "${token}${token}" for one`;
    } else literal(token);
  }
  return { text, parts };
}

/** Its text when it holds no placeholder; null when it does. */
export function literalOf(template: Template): string | null {
  const [only, ...more] = template.parts;
  if (only === undefined) return "";
  return typeof only === "string" && more.length === 0 ? only : null;
}

/** The text before its first placeholder. */
export function leadOf(template: Template): string {
  const first = template.parts[0];
  return typeof first === "string" ? first : "";
}

/** The fields it names. */
export function fieldsOf(template: Template): readonly FieldPath[] {
  return template.parts.filter((part): part is FieldPath => typeof part !== "string");
}

/**
 * Fills a template in.
 *
 * @param use What each value becomes; default itself. May throw.
 * @throws {CommandFailure} `invalid_item`: a field it names is absent, or no single value.
 */
export function fill(
  template: Template,
  scope: FieldScope,
  use: (value: string, field: FieldPath) => string = (value) => value,
): string {
  let text = "";
  for (const part of template.parts) {
    if (typeof part === "string") {
      text += part;
      continue;
    }
    const value = readField(scope, part);
    if (value === null) throw invalidItem(`the item has no ${part.text}, which "${template.text}" needs`);
    text += use(value, part);
  }
  return text;
}
