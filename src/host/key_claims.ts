/**
 * What a host's key says of itself. Read, not verified: the server does that. For messages and checks, and for the name.
 *
 * @module
 */

/** The claims of a key that matter here. */
export interface KeyClaims {
  /** The database role it acts as: `laneway_host`. Null when it names none. */
  readonly role: string | null;
  /** The host it is for: a name in `queue.hosts`. Null when it names none. */
  readonly host: string | null;
  /** When it expires, epoch milliseconds; null when it never does. */
  readonly expiresAtMs: number | null;
}

/** Reads the claims of a JWT; null when the key is none. */
export function readKeyClaims(key: string): KeyClaims | null {
  const [, encoded, ...rest] = key.split(".");
  if (encoded === undefined || rest.length !== 1) return null;
  try {
    const bytes = Uint8Array.from(atob(encoded.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof claims !== "object" || claims === null) return null;
    const { role, host, exp } = claims as Readonly<Record<string, unknown>>;
    return {
      role: typeof role === "string" ? role : null,
      host: typeof host === "string" ? host : null,
      expiresAtMs: typeof exp === "number" && Number.isFinite(exp) ? exp * 1_000 : null,
    };
  } catch {
    return null;
  }
}
