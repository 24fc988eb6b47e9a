/**
 * The digest of a request: the same for the same JSON value, whatever the order of its keys.
 *
 * @module
 */
import type { Json } from "../core/json.ts";

/** SHA-256 of the value's canonical JSON, in hexadecimal. */
export async function digestOf(request: Json): Promise<string> {
  const bytes = new TextEncoder().encode(canonical(request));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}

function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value as { readonly [key: string]: Json }).filter(([, entry]) => entry !== undefined);
  entries.sort(([a], [b]) => a < b ? -1 : 1);
  return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join(",")}}`;
}
