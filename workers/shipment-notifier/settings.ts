/**
 * The settings of this worker, beside those every worker has. They come from its own environment variables.
 *
 * @module
 */
import { readEnvDuration, readSecretFile, UsageError } from "../../mod.ts";

/** Variables that the compiled binary may read. */
export const ENV: readonly string[] = [
  "LANEWAY_WEBHOOK_SECRET",
  "LANEWAY_WEBHOOK_SECRET_FILE",
  "LANEWAY_WEBHOOK_TIMEOUT",
  "LANEWAY_DELETED_RETENTION",
];

/** What this worker is told. */
export interface NotifierSettings {
  /** Signs every webhook: `whsec_` and 24 to 64 bytes in base64. Null while none is set: nothing is sent then. */
  readonly webhookSecret: string | null;
  /** The longest one request may take, from connecting to the last byte read. Default 10 s, 100 ms to 50 s. */
  readonly webhookTimeoutMs: number;
  /** How long deleted shipments are kept. Default 30 d, 0 s to 3650 d. */
  readonly deletedRetentionMs: number;
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;

/**
 * Reads the settings.
 *
 * @throws {UsageError} A variable is malformed or out of range, or others than its owner may read the secret's file.
 *   The secret is never shown.
 * @throws {SettingsError} The secret's file cannot be read.
 */
export function readNotifierSettings(env: Readonly<Record<string, string>>): NotifierSettings {
  return {
    webhookSecret: readSecret(env),
    webhookTimeoutMs: readEnvDuration(env, "LANEWAY_WEBHOOK_TIMEOUT", { standard: "10s", min: "100ms", max: "50s" }),
    deletedRetentionMs: readEnvDuration(env, "LANEWAY_DELETED_RETENTION", { standard: "30d", min: "0s", max: "3650d" }),
  };
}

/** What to do about a missing secret. */
export const NO_SECRET = "Cannot sign webhooks as no secret is set: set LANEWAY_WEBHOOK_SECRET, or " +
  "LANEWAY_WEBHOOK_SECRET_FILE to a file holding it, and start again; make one with: " +
  'echo "whsec_$(openssl rand -base64 32)"';

/** Makes a secret of 32 random bytes. */
export function newWebhookSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`;
}

function readSecret(env: Readonly<Record<string, string>>): string | null {
  const direct = env.LANEWAY_WEBHOOK_SECRET || null;
  const path = env.LANEWAY_WEBHOOK_SECRET_FILE || null;
  if (direct !== null && path !== null) {
    throw new UsageError("Cannot use both LANEWAY_WEBHOOK_SECRET and LANEWAY_WEBHOOK_SECRET_FILE: unset one of them");
  }
  if (direct !== null) return checkSecret(direct.trim(), "LANEWAY_WEBHOOK_SECRET");
  if (path === null) return null;
  return checkSecret(readSecretFile(path, "LANEWAY_WEBHOOK_SECRET_FILE"), "LANEWAY_WEBHOOK_SECRET_FILE");
}

function checkSecret(text: string, label: string): string {
  const encoded = SECRET.exec(text)?.[1];
  const bytes = encoded === undefined || encoded.length % 4 !== 0 ? 0 : atob(encoded).length;
  if (bytes >= 24 && bytes <= 64) return text;
  throw new UsageError(`Cannot use ${label}: it must be whsec_ and 24 to 64 bytes in base64`);
}
