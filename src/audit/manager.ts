/**
 * Operations on the activity area.
 *
 * @module
 */
import type { OpContext, RequestContext } from "../core/context.ts";
import { ValidationError } from "../core/errors.ts";
import { encodeJson } from "../core/json.ts";
import type { ActivityEvent, AppendOutcome, AuditEntry, AuditManager, AuditStorage, NewEvent } from "./types.ts";

/** The largest detail of an entry and payload of an event, bytes of encoded JSON. */
export const MAX_ACTIVITY_BYTES = 1_048_576;

/** The most rows of one read. */
export const MAX_ACTIVITY_PAGE = 1_000;

// Entries of one statement; longer lists are written in chunks.
const CHUNK = 500;

/** Builds the audit manager over its storage. */
export function createAuditManager(storage: AuditStorage): AuditManager {
  return new AuditManagerImpl(storage);
}

class AuditManagerImpl implements AuditManager {
  readonly #storage: AuditStorage;

  constructor(storage: AuditStorage) {
    this.#storage = storage;
  }

  /** Checks all before it writes any. A crash between chunks leaves whole chunks; writing all again is safe. */
  async appendEntries(_rctx: RequestContext, entries: readonly AuditEntry[]): Promise<void> {
    entries.forEach((entry, i) => encodeJson(entry.detail, `entries[${i}].detail`, MAX_ACTIVITY_BYTES));
    for (let i = 0; i < entries.length; i += CHUNK) await this.#storage.createEntries(entries.slice(i, i + CHUNK));
  }

  async appendEvent(event: NewEvent): Promise<AppendOutcome> {
    encodeJson(event.payload, "payload", MAX_ACTIVITY_BYTES);
    return await this.#storage.appendEvent(event);
  }

  async readEntries(ctx: OpContext, options: { limit: number }): Promise<AuditEntry[]> {
    return await this.#storage.readEntries(ctx.orgId, checkWhole("limit", options.limit, 1, MAX_ACTIVITY_PAGE));
  }

  async readEvents(ctx: OpContext, options: { afterSeq: number; limit: number }): Promise<ActivityEvent[]> {
    const afterSeq = checkWhole("afterSeq", options.afterSeq, 0, Number.MAX_SAFE_INTEGER);
    return await this.#storage.readEvents(
      ctx.orgId,
      afterSeq,
      checkWhole("limit", options.limit, 1, MAX_ACTIVITY_PAGE),
    );
  }
}

function checkWhole(field: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new ValidationError(field, `Cannot use ${field} ${value}: it must be a whole number from ${min} to ${max}`);
  }
  return value;
}
