/**
 * The idempotency manager over its storage.
 *
 * @module
 */
import type { OpContext, RequestContext } from "../core/context.ts";
import { ConflictError, UnavailableError, ValidationError } from "../core/errors.ts";
import { isUuid, newId } from "../core/ids.ts";
import { encodeJson, type Json } from "../core/json.ts";
import { digestOf } from "./digest.ts";
import type {
  Attempt,
  BeginOptions,
  Begun,
  IdempotencyManager,
  IdempotencyStorage,
  Marker,
  MarkerBegin,
} from "./types.ts";

/** How markers are kept. */
export interface IdempotencyManagerOptions {
  /** How long a marker outlives its last move, milliseconds: repeats later than this take effect again. */
  readonly markerRetentionMs: number;
}

/** The largest request and outcome, encoded: 256 KiB. */
export const MAX_MARKER_BYTES = 262_144;

const DEFAULT_LEASE_MS = 60_000;
const PURGE_BATCH = 1_000;
// Between a refused begin and the look at why, the marker may move on; more often than this it does not.
const MAX_TRIES = 5;

/** Builds the idempotency manager. */
export function createIdempotencyManager(
  storage: IdempotencyStorage,
  options: IdempotencyManagerOptions,
): IdempotencyManager {
  return new IdempotencyManagerImpl(storage, options);
}

class IdempotencyManagerImpl implements IdempotencyManager {
  readonly #storage: IdempotencyStorage;
  readonly #options: IdempotencyManagerOptions;

  constructor(storage: IdempotencyStorage, options: IdempotencyManagerOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  async begin(ctx: OpContext, options: BeginOptions): Promise<Begun> {
    const begin = await beginOf(options);
    for (let tries = 1;; tries++) {
      const started = await this.#begin(ctx.orgId, begin);
      if (started !== null) {
        const attempt = { key: begin.key, token: begin.token, recordId: started.recordId };
        return { state: "STARTED", attempt };
      }
      const marker = await twice(() => this.#storage.readMarker(ctx.orgId, begin.key));
      if (marker !== null && marker.digest !== begin.digest) {
        throw new ConflictError(
          `Cannot use key "${begin.key}": it belongs to another request; choose a key of its own`,
        );
      }
      if (marker?.state === "finished") {
        return { state: "FINISHED", recordId: marker.recordId, outcome: marker.outcome };
      }
      if (tries >= MAX_TRIES || (marker?.state === "pending" && marker.leaseLeftMs > 0)) {
        throw new ConflictError(
          `Cannot begin request "${begin.key}": another attempt holds it for ${
            Math.ceil(marker?.leaseLeftMs ?? 0)
          } ms ` +
            "more; try again then",
        );
      }
    }
  }

  async finish(ctx: OpContext, attempt: Attempt, outcome: Json): Promise<void> {
    encodeJson(outcome, "outcome", MAX_MARKER_BYTES);
    const { key, token } = attempt;
    if (await twice(() => this.#storage.finish(ctx.orgId, key, token, outcome))) return;
    throw new ConflictError(`Cannot finish request "${key}": another attempt took it over; this outcome is dropped`);
  }

  async release(ctx: OpContext, attempt: Attempt): Promise<void> {
    const { key, token } = attempt;
    if (await twice(() => this.#storage.release(ctx.orgId, key, token))) return;
    throw new ConflictError(`Cannot release request "${key}": it is finished, or another attempt took it over`);
  }

  async once<T extends Json>(
    ctx: OpContext,
    options: BeginOptions,
    operation: (recordId: string) => Promise<T>,
  ): Promise<T> {
    const begun = await this.begin(ctx, options);
    // The outcome was stored by an operation of this key and request, whose type this is.
    if (begun.state === "FINISHED") return begun.outcome as T;
    const { attempt } = begun;
    let outcome: T;
    try {
      outcome = await operation(attempt.recordId);
      encodeJson(outcome, "outcome", MAX_MARKER_BYTES);
    } catch (error) {
      // Best effort: what cannot be released is taken over once its lease has passed.
      await this.release(ctx, attempt).catch(() => {});
      throw error;
    }
    await this.finish(ctx, attempt, outcome);
    return outcome;
  }

  purgeMarkers(_rctx: RequestContext): Promise<number> {
    return this.#storage.purgeMarkers(this.#options.markerRetentionMs, PURGE_BATCH);
  }

  #begin(orgId: string, begin: MarkerBegin): Promise<Marker | null> {
    return twice(() => this.#storage.begin(orgId, begin));
  }
}

/** Every move may be repeated under its token, and every read, so an answer that was lost is asked for again. */
async function twice<T>(move: () => Promise<T>): Promise<T> {
  try {
    return await move();
  } catch (error) {
    if (!(error instanceof UnavailableError) || error.outcome !== "unknown") throw error;
    return await move();
  }
}

async function beginOf(options: BeginOptions): Promise<MarkerBegin> {
  const { key, request, recordId = newId(), leaseMs = DEFAULT_LEASE_MS } = options;
  if (
    typeof key !== "string" || key.length < 1 || [...key].length > 200 || key.includes("\u0000") || !key.isWellFormed()
  ) {
    throw new ValidationError("key", "Cannot use key: it must be a text of 1 to 200 characters");
  }
  if (!isUuid(recordId)) throw new ValidationError("recordId", `Cannot use recordId "${recordId}": it must be a uuid`);
  if (!Number.isInteger(leaseMs) || leaseMs < 1_000 || leaseMs > 3_600_000) {
    throw new ValidationError(
      "leaseMs",
      `Cannot use leaseMs ${leaseMs}: it must be a whole number from 1000 to 3600000`,
    );
  }
  encodeJson(request, "request", MAX_MARKER_BYTES);
  return { key, digest: await digestOf(request), token: newId(), recordId: recordId.toLowerCase(), leaseMs };
}
