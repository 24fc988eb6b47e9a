/**
 * The pure rules of work: delays, exhaustion, ranges. Where a statement must repeat a rule it is named `sql: …` here
 * and held to this function by a contract case.
 *
 * @module
 */
import { showValue } from "../core/describe_error.ts";
import { ValidationError } from "../core/errors.ts";

/** How a kind spaces its retries. */
export interface RetryPolicy {
  /** Upper bound of the first delay, at least 1 ms. Default 1 s. */
  readonly baseMs: number;
  /** Upper bound of every delay. Default 1 h. */
  readonly capMs: number;
}

/** 1 s doubling to 1 h. */
export const DEFAULT_RETRY: RetryPolicy = { baseMs: 1_000, capMs: 3_600_000 };

/** No delay is shorter, so that no policy can make an instant loop. */
export const RETRY_FLOOR_MS = 100;

/** The longest delay or start in the future that is accepted: 100 years. */
export const MAX_DELAY_MS = 100 * 365 * 86_400_000;

/** Ranges of the numbers of an item, both ends included. */
export const RANGES = {
  priority: [0, 32_767],
  maxAttempts: [1, 1_000],
  leaseMs: [1_000, 3_600_000],
  delayMs: [0, MAX_DELAY_MS],
  limit: [1, 1_000],
} as const;

/**
 * The delay before attempt `attempt + 1`: exponential with full jitter, `random` in [0, 1) spreading it between the
 * floor and `min(cap, base · 2^(attempt-1))`. Never overflows, whatever the attempt.
 *
 * sql: repeated by `requeueStale` for the second and later expiries.
 */
export function retryDelay(attempt: number, policy: RetryPolicy, random: number): number {
  const exponent = Math.min(Math.max(attempt - 1, 0), 40);
  const ceiling = Math.max(Math.min(policy.capMs, policy.baseMs * 2 ** exponent), RETRY_FLOOR_MS);
  return Math.round(RETRY_FLOOR_MS + (ceiling - RETRY_FLOOR_MS) * random);
}

/** Whether no attempt is left. sql: repeated by `requeueStale` and `failOrphaned`'s sweep. */
export function isExhausted(attempts: number, maxAttempts: number): boolean {
  return attempts >= maxAttempts;
}

/** Whether a claim's lease has passed. sql: repeated by `requeueStale`; every settle refuses exactly these. */
export function isStale(leaseExpiresAtMs: number, nowMs: number): boolean {
  return leaseExpiresAtMs <= nowMs;
}

/**
 * Checks a whole number against its documented range.
 *
 * @throws {ValidationError} Naming the field, the value and the range. Never clips.
 */
export function checkRange(field: keyof typeof RANGES, value: unknown): number {
  const [min, max] = RANGES[field];
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    throw new ValidationError(
      field,
      `Cannot use ${field} ${showValue(value)}: it must be a whole number from ${min} to ${max}`,
    );
  }
  return value;
}
