/**
 * From what a caller gives to the row a manager inserts: checks every field, then stamps what the manager owns.
 *
 * @module
 */
import { showValue } from "../core/describe_error.ts";
import { ValidationError } from "../core/errors.ts";
import { encodeJson } from "../core/json.ts";
import { EMPTY_UUID, isUuid, newId } from "../core/ids.ts";
import { parsePayload } from "./kinds.ts";
import { checkRange, MAX_DELAY_MS } from "./rules.ts";
import type { ItemInsert } from "./storage.ts";
import type { EnqueueOptions, NewWorkItem, WorkItem, WorkKind } from "./types.ts";

/** Who an item is created by, and what caused it. */
export interface Attribution {
  readonly actorId: string;
  readonly requestId: string | null;
  readonly traceparent: string | null;
}

/** What `buildInsert` needs to know beside the item. */
export interface BuildOptions {
  readonly kind: WorkKind;
  readonly attribution: Attribution;
  /** The manager's clock, for timestamps a caller left out. */
  readonly nowMs: number;
  readonly payloadLimitBytes: number;
  readonly start: EnqueueOptions;
}

// The years every storage gives back as they were: Postgres's text of the first century is read as the twentieth's.
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const LABEL = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;

/**
 * Builds the row of a new item. Id and timestamps stay as the caller constructed them; actor, status and attempts are
 * stamped, every claim field is cleared, whatever the caller sent there.
 *
 * @throws {ValidationError} Naming the first field that was refused.
 */
export function buildInsert(input: NewWorkItem, options: BuildOptions): ItemInsert {
  const { kind, attribution } = options;
  if (typeof input.payload !== "object" || input.payload === null || Array.isArray(input.payload)) {
    throw new ValidationError("payload", "Cannot use payload: it must be a JSON object");
  }
  encodeJson(input.payload, "payload", options.payloadLimitBytes);
  parsePayload(kind, input.payload);
  const now = new Date(options.nowMs);
  const item: WorkItem = {
    id: input.id === undefined ? newId() : uuid("id", input.id),
    createdAt: time("createdAt", input.createdAt) ?? now,
    updatedAt: time("updatedAt", input.updatedAt) ?? time("createdAt", input.createdAt) ?? now,
    createdBy: attribution.actorId,
    updatedBy: attribution.actorId,
    kind: kind.name,
    targetId: input.targetId === undefined || input.targetId === null ? null : uuid("targetId", input.targetId),
    idempotencyKey: text("idempotencyKey", input.idempotencyKey, 200),
    payload: input.payload,
    lane: label("lane", input.lane ?? "default"),
    status: "queued",
    priority: checkRange("priority", input.priority ?? 10),
    weight: label("weight", input.weight ?? "light"),
    hostPreference: input.hostPreference === undefined || input.hostPreference === null
      ? null
      : text("hostPreference", input.hostPreference, 200),
    availableAt: now,
    claimedBy: null,
    claimToken: null,
    leaseExpiresAt: null,
    attempts: 0,
    maxAttempts: checkRange("maxAttempts", input.maxAttempts ?? 3),
    claims: 0,
    expiries: 0,
    lastError: null,
    note: null,
    auditId: null,
    requestId: attribution.requestId,
    traceparent: attribution.traceparent,
  };
  return { item, start: startOf(options.start, options.nowMs) };
}

/** Checks a lane, weight or similar label. @throws {ValidationError} */
export function label(field: string, value: unknown): string {
  if (typeof value === "string" && LABEL.test(value)) return value;
  throw new ValidationError(
    field,
    `Cannot use ${field} "${showValue(value)}": 1–63 letters, digits, "_", "." or "-", starting with a letter or digit`,
  );
}

/** Checks a bounded text that Postgres can store. @throws {ValidationError} */
export function text(field: string, value: unknown, max: number): string {
  if (typeof value !== "string" || value.length < 1 || [...value].length > max) {
    throw new ValidationError(field, `Cannot use ${field}: it must be a text of 1 to ${max} characters`);
  }
  if (value.includes("\u0000") || !value.isWellFormed()) {
    throw new ValidationError(field, `Cannot use ${field}: it holds a NUL character or a lone surrogate`);
  }
  return value;
}

/** The actor of a context or row: a uuid. @throws {ValidationError} */
export function uuid(field: string, value: unknown): string {
  if (isUuid(value)) return value.toLowerCase();
  throw new ValidationError(field, `Cannot use ${field} "${showValue(value)}": it must be a uuid`);
}

/** The system actor, for bookkeeping writes. */
export const SYSTEM_ACTOR: string = EMPTY_UUID;

function time(field: string, value: Date | undefined): Date | undefined {
  if (value === undefined) return undefined;
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) {
    throw new ValidationError(field, `Cannot use ${field}: it must be a valid Date`);
  }
  if (value.getTime() < 0 || value.getTime() > LATEST_MS) {
    throw new ValidationError(
      field,
      `Cannot use ${field} ${value.toISOString()}: it must lie in the years 1970 to 9999`,
    );
  }
  return value;
}

function startOf(options: EnqueueOptions, nowMs: number): ItemInsert["start"] {
  const { delayMs, notBefore } = options;
  if (delayMs !== undefined && notBefore !== undefined) {
    throw new ValidationError("notBefore", "Cannot use delayMs and notBefore together: give one of them");
  }
  if (delayMs !== undefined) return { delayMs: checkRange("delayMs", delayMs) };
  if (notBefore === undefined) return null;
  // The past means now, also one that no database holds.
  if (notBefore instanceof Date && notBefore.getTime() < 0) return null;
  const at = time("notBefore", notBefore);
  if (at === undefined || at.getTime() - nowMs > MAX_DELAY_MS) {
    throw new ValidationError("notBefore", "Cannot use notBefore: it lies more than 100 years ahead");
  }
  return { notBefore: at };
}
