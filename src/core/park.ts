/**
 * Parking: a record that stops with a reason and a time to resume, and keeps where it was. The shape and its pure rules,
 * for any record; how a record stores them is its own affair.
 *
 * Records park, items never do: the item of a record that parks completes, and resuming enqueues a new one, through an
 * outbox row written in the statement that resumes the record.
 *
 * @module
 */
import { ValidationError } from "./errors.ts";
import { encodeJson, type Json } from "./json.ts";

/** How a record stands while it is parked. */
export interface Parking {
  /** Why, for people: 1–500 characters. */
  readonly reason: string;
  /** Database time from which the sweep resumes it. */
  readonly resumeAt: Date;
  /** Where its work stood. Kept when it resumes, so that the work can go on from there; null when it keeps none. */
  readonly cursor: Json;
}

/** What a caller asks for when it parks a record. */
export interface ParkRequest {
  /** Why, for people: 1–500 characters. */
  readonly reason: string;
  /** When to resume; in the past means at the next sweep. */
  readonly resumeAt: Date;
  /** Where the work stands, at most 16 KiB encoded. Default: what the record kept before. */
  readonly cursor?: Json;
}

/** How far apart records resume. */
export interface StaggerPolicy {
  /** The time between one and the next, milliseconds. */
  readonly spacingMs: number;
  /** No delay is longer, milliseconds. */
  readonly spreadMs: number;
}

/** The longest reason, characters. */
export const MAX_PARK_REASON = 500;

/** The largest cursor, bytes of encoded JSON. */
export const MAX_PARK_CURSOR_BYTES = 16_384;

/** Ten a second, over a minute at most. */
export const DEFAULT_STAGGER: StaggerPolicy = { spacingMs: 100, spreadMs: 60_000 };

/**
 * Checks what a record is parked with.
 *
 * @throws {ValidationError} Naming `reason`, `resumeAt` or the path in `cursor`.
 */
export function checkPark(request: ParkRequest): ParkRequest {
  const { reason, resumeAt, cursor } = request;
  if (typeof reason !== "string" || reason.trim() === "" || [...reason].length > MAX_PARK_REASON) {
    throw new ValidationError(
      "reason",
      `Cannot park for this reason: give a text of 1 to ${MAX_PARK_REASON} characters`,
    );
  }
  if (reason.includes("\u0000") || !reason.isWellFormed()) {
    throw new ValidationError("reason", "Cannot park for this reason: it holds a NUL character or a lone surrogate");
  }
  if (!(resumeAt instanceof Date) || Number.isNaN(resumeAt.getTime())) {
    throw new ValidationError("resumeAt", "Cannot park until this resumeAt: it must be a valid Date");
  }
  if (cursor !== undefined) encodeJson(cursor, "cursor", MAX_PARK_CURSOR_BYTES);
  return request;
}

/**
 * How long after the resume the record of this place in line goes, milliseconds: the first at once, each next one
 * `spacingMs` later with up to one spacing of jitter, never later than `spreadMs`. Whoever would come after that is put
 * somewhere within it, so that a long line does not pile up at its end.
 *
 * @param index The place in line, from 0.
 * @param random In [0, 1).
 */
export function staggeredResume(index: number, policy: StaggerPolicy, random: number): number {
  if (index <= 0) return 0;
  const { spacingMs, spreadMs } = policy;
  if ((index + 1) * spacingMs > spreadMs) return Math.floor(random * spreadMs);
  return Math.floor((index + random) * spacingMs);
}
