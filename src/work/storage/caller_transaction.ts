/**
 * Joining a caller's own open transaction.
 *
 * @module
 */
import { UnavailableError, ValidationError } from "../../core/errors.ts";
import type { Row } from "../../db/database.ts";

/** Binds the transaction to an org and tells which one it was bound to. */
// Both in one round trip: the list of a select is evaluated from left to right.
export const ENTER_ORG =
  "select current_setting('laneway.org_id', true) as before, set_config('laneway.org_id', $1, true)";

/** Under repeatable read and serializable a race for a key ends in 40001: the caller's transaction can be run again. */
export function translateCallerError(error: unknown, key: string): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (code !== "40001" && code !== "40P01") return error;
  return new UnavailableError(
    `The transaction lost a race for key "${key}" (SQLSTATE ${code}): roll it back and run it again`,
    "not-executed",
    { cause: error },
  );
}

/**
 * The rows of an answer.
 *
 * @throws {ValidationError} It holds none.
 */
export function rowsOf(result: unknown): Row[] {
  // node-postgres answers `{ rows }`, postgres.js and most others the rows themselves.
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | null)?.rows;
  if (Array.isArray(rows)) return rows as Row[];
  throw new ValidationError(
    "tx",
    "Cannot use tx: its query(text, params) must return the rows, or an object with rows",
  );
}
