/**
 * The pure rules of tenancy: what an id, a name and a page may be.
 *
 * @module
 */
import type { Role } from "../core/context.ts";
import { ValidationError } from "../core/errors.ts";
import { EMPTY_UUID, isUuid } from "../core/ids.ts";

/** The longest name of an org or user, in characters. */
export const MAX_NAME_LENGTH = 200;

/** The most contexts of one page. */
export const MAX_PAGE = 1_000;

/**
 * Checks an id and gives its canonical lower-case form.
 *
 * @throws {ValidationError} No uuid, or the empty one, which names no record.
 */
export function checkId(field: string, value: unknown): string {
  if (!isUuid(value)) throw new ValidationError(field, `Cannot use ${field} "${String(value)}": it must be a uuid`);
  const id = value.toLowerCase();
  if (id === EMPTY_UUID) {
    throw new ValidationError(field, `Cannot use ${field} ${EMPTY_UUID}: it is reserved for the system user`);
  }
  return id;
}

/** Checks a name. @throws {ValidationError} Empty, too long, or no storable text. */
export function checkName(field: string, value: unknown): string {
  if (typeof value !== "string" || value.trim() === "" || [...value].length > MAX_NAME_LENGTH) {
    throw new ValidationError(
      field,
      `Cannot use this ${field}: it must be a text of 1 to ${MAX_NAME_LENGTH} characters`,
    );
  }
  if (value.includes("\u0000") || !value.isWellFormed()) {
    throw new ValidationError(field, `Cannot use this ${field}: it holds a NUL character or a lone surrogate`);
  }
  return value;
}

/** Checks a member's role. @throws {ValidationError} `SERVICE`, which no member holds, or an unknown role. */
export function checkMemberRole(role: Role): Role {
  if (role !== "OWNER" && role !== "MEMBER") {
    throw new ValidationError("role", `Cannot use role ${String(role)} for a member: it must be OWNER or MEMBER`);
  }
  return role;
}

/** Checks a page size. @throws {ValidationError} No whole number from 1 to `MAX_PAGE`. */
export function checkPage(limit: number): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE) {
    throw new ValidationError("limit", `Cannot use limit ${limit}: it must be a whole number from 1 to ${MAX_PAGE}`);
  }
  return limit;
}

/** Checks how long a socket ticket may be redeemed. @throws {ValidationError} No whole number from 1 s to 10 min. */
export function checkTicketTtl(ttlMs: number): number {
  if (!Number.isInteger(ttlMs) || ttlMs < 1_000 || ttlMs > 600_000) {
    throw new ValidationError("ttlMs", `Cannot use ttlMs ${ttlMs}: it must be a whole number from 1000 to 600000`);
  }
  return ttlMs;
}
