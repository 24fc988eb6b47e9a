/**
 * Kinds of work: made once, checked at enqueue and again at handle.
 *
 * @module
 */
import { ValidationError } from "../core/errors.ts";
import { DEFAULT_RETRY, RETRY_FLOOR_MS, type RetryPolicy } from "./rules.ts";
import type { Payload, PayloadSchema, WorkKind } from "./types.ts";

/** Default time a run may take: 15 minutes. */
export const DEFAULT_TIMEOUT_MS = 900_000;

const KIND_NAME = /^[A-Z][A-Z0-9_]{0,62}$/;

/** What `defineKind` takes beside the name. */
export interface KindOptions<P extends Payload> {
  /** A zod schema of an object. Shapes only gain optional fields; unknown fields are kept. */
  readonly schema: PayloadSchema<P>;
  /** Spacing of retries. Default 1 s doubling to 1 h. */
  readonly retry?: Partial<RetryPolicy>;
  /** Aborts, then fails, a longer run; 0 never. Default 15 min, at most 30 days. */
  readonly timeoutMs?: number;
}

/**
 * Defines a kind of work.
 *
 * @param name Upper snake case, at most 63 characters, for example `NOTIFY_SHIPMENT`.
 * @throws {ValidationError} A bad name, a retry base or cap out of range (base at least 1 ms, so that no kind can loop
 * without a pause; every delay is at least 100 ms), or a bad timeout.
 */
export function defineKind<P extends Payload>(name: string, options: KindOptions<P>): WorkKind<P> {
  if (!KIND_NAME.test(name)) {
    throw new ValidationError(
      "kind",
      `Cannot use kind "${name}": a kind is upper snake case, starts with a letter and has at most 63 characters`,
    );
  }
  const retry = { ...DEFAULT_RETRY, ...options.retry };
  checkWhole("retry.baseMs", retry.baseMs, 1, 86_400_000);
  checkWhole("retry.capMs", retry.capMs, RETRY_FLOOR_MS, 30 * 86_400_000);
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  checkWhole("timeoutMs", timeoutMs, 0, 30 * 86_400_000);
  return { name, schema: options.schema, retry, timeoutMs };
}

/**
 * Checks a payload against its kind's schema. Returns it with the schema's defaults filled in and every field the schema
 * does not know kept.
 *
 * @throws {ValidationError} Naming the path of the first field that does not fit.
 */
export function parsePayload<P extends Payload>(kind: WorkKind<P>, payload: unknown): P {
  const result = kind.schema.safeParse(payload);
  if (!result.success) {
    const issue = result.error.issues[0];
    const path = ["payload", ...(issue?.path ?? [])].reduce<string>(
      (text, part) =>
        typeof part === "number" ? `${text}[${part}]` : text === "" ? String(part) : `${text}.${String(part)}`,
      "",
    );
    throw new ValidationError(path, `Cannot use ${path} for kind ${kind.name}: ${issue?.message ?? "it does not fit"}`);
  }
  return withUnknown(payload, result.data) as P;
}

/**
 * What the schema gave, and beside it every field of `given` that it left out, at every depth: zod's objects drop what
 * they do not know, and a newer writer's optional fields must reach the handler.
 */
function withUnknown(given: unknown, parsed: unknown): unknown {
  if (Array.isArray(given) && Array.isArray(parsed)) {
    return given.length === parsed.length ? parsed.map((entry, i) => withUnknown(given[i], entry)) : parsed;
  }
  if (!isPlainObject(given) || !isPlainObject(parsed)) return parsed;
  const merged: Record<string, unknown> = { ...given, ...parsed };
  for (const key of Object.keys(parsed)) {
    const value = parsed[key];
    if (typeof value === "object" && Object.hasOwn(given, key)) merged[key] = withUnknown(given[key], value);
  }
  return merged;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function checkWhole(field: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new ValidationError(field, `Cannot use ${field} ${value}: it must be a whole number from ${min} to ${max}`);
  }
}
