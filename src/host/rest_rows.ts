/**
 * Items as PostgREST sends them.
 *
 * @module
 */
import { UnavailableError } from "../core/errors.ts";
import type { OwnedItem } from "../work/storage.ts";
import type { Payload, WorkItem, WorkStatus } from "../work/types.ts";
import type { RestRow } from "./rest_client.ts";

/** The columns of an item, for `select`. */
export const ITEM_COLUMNS: string = [
  ...["org_id", "id", "created_at", "updated_at", "created_by", "updated_by", "kind", "target_id", "idempotency_key"],
  ...[
    "payload",
    "lane",
    "status",
    "priority",
    "weight",
    "host_preference",
    "available_at",
    "claimed_by",
    "claim_token",
  ],
  ...["lease_expires_at", "attempts", "max_attempts", "claims", "expiries", "last_error", "note", "audit_id"],
  ...["request_id", "traceparent"],
].join(",");

/**
 * A row with its org beside it.
 *
 * @throws {UnavailableError} It is no item: something else than PostgREST answered, or a column is hidden.
 */
export function toOwned(row: RestRow): OwnedItem {
  const item: WorkItem = {
    id: text(row, "id"),
    createdAt: date(row, "created_at"),
    updatedAt: date(row, "updated_at"),
    createdBy: text(row, "created_by"),
    updatedBy: text(row, "updated_by"),
    kind: text(row, "kind"),
    targetId: textOrNull(row, "target_id"),
    idempotencyKey: text(row, "idempotency_key"),
    payload: object(row, "payload"),
    lane: text(row, "lane"),
    status: text(row, "status") as WorkStatus,
    priority: number(row, "priority"),
    weight: text(row, "weight"),
    hostPreference: textOrNull(row, "host_preference"),
    availableAt: date(row, "available_at"),
    claimedBy: textOrNull(row, "claimed_by"),
    claimToken: textOrNull(row, "claim_token"),
    leaseExpiresAt: row.lease_expires_at === null ? null : date(row, "lease_expires_at"),
    attempts: number(row, "attempts"),
    maxAttempts: number(row, "max_attempts"),
    claims: number(row, "claims"),
    expiries: number(row, "expiries"),
    lastError: textOrNull(row, "last_error"),
    note: textOrNull(row, "note"),
    auditId: textOrNull(row, "audit_id"),
    requestId: textOrNull(row, "request_id"),
    traceparent: textOrNull(row, "traceparent"),
  };
  return { orgId: text(row, "org_id"), item };
}

/** A text column. @throws {UnavailableError} It is none. */
export function text(row: RestRow, column: string): string {
  const value = row[column];
  return typeof value === "string" ? value : wrong(column, "text");
}

/** A number column. @throws {UnavailableError} It is none. */
export function number(row: RestRow, column: string): number {
  const value = row[column];
  return typeof value === "number" ? value : wrong(column, "number");
}

/** A time, to the millisecond. @throws {UnavailableError} It is none. */
export function date(row: RestRow, column: string): Date {
  const value = new Date(text(row, column));
  return Number.isNaN(value.getTime()) ? wrong(column, "time") : value;
}

function object(row: RestRow, column: string): Payload {
  const value = row[column];
  const fits = typeof value === "object" && value !== null && !Array.isArray(value);
  return fits ? value as Payload : wrong(column, "object");
}

function textOrNull(row: RestRow, column: string): string | null {
  return row[column] === null ? null : text(row, column);
}

function wrong(column: string, what: string): never {
  throw new UnavailableError(`Cannot read an item as its ${column} came as no ${what}`, "unknown");
}
