/**
 * Secrets of sessions and tickets: 256 random bits, told once; storage holds their digest alone.
 *
 * A plain SHA-256 will do: there is nothing to guess in 256 random bits, so nothing for a slow hash to protect.
 *
 * @module
 */

const SECRET_BYTES = 32;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** Mints a secret: 32 random bytes in base64url, 43 characters. */
export function newSecret(): string {
  return crypto.getRandomValues(new Uint8Array(SECRET_BYTES)).toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Whether a text has a secret's form; anything else is nobody's secret. */
export function isSecret(text: unknown): text is string {
  return typeof text === "string" && SECRET.test(text);
}

/** The SHA-256 of a secret, in hexadecimal: what storage keeps and looks up. */
export async function digestOfSecret(secret: string): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret))).toHex();
}
