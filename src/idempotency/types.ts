/**
 * Markers: a request that must take effect once, however often it is sent.
 *
 * ```
 *               begin                      finish
 *   (absent) ─────────▶ pending ────────────────────────▶ finished: its outcome is replayed
 *                        │   ▲
 *                release │   │ begin (released, or the attempt's lease has passed)
 *                        ▼   │
 *                      released
 * ```
 *
 * The record's id is chosen by the first attempt and kept by every later one, so that two attempts of one request create
 * one record even when the first one died in the middle.
 *
 * @module
 */
import type { OpContext, RequestContext } from "../core/context.ts";
import type { Json } from "../core/json.ts";

/** One attempt at a request: what `finish` and `release` are fenced by. */
export interface Attempt {
  /** The caller's key, unique within the org. */
  readonly key: string;
  /** The fence: minted by `begin`, refused once another attempt took over. */
  readonly token: string;
  /** The id of the record to create, the same in every attempt of this request. */
  readonly recordId: string;
}

/** What `begin` met. */
export type Begun =
  /** The request is this attempt's to carry out. */
  | { readonly state: "STARTED"; readonly attempt: Attempt }
  /** It was carried out before: this is what came of it. */
  | { readonly state: "FINISHED"; readonly recordId: string; readonly outcome: Json };

/** How an attempt begins. */
export interface BeginOptions {
  /** 1–200 characters, unique within the org. */
  readonly key: string;
  /** What is asked for; the same key with another request is refused. */
  readonly request: Json;
  /** The id of the record to create. Default a fresh one; an earlier attempt's stands. */
  readonly recordId?: string;
  /** How long the attempt holds before another may take over, 1 s to 1 h. Default 60 s. */
  readonly leaseMs?: number;
}

/** Operations on markers. */
export interface IdempotencyManager {
  /**
   * Begins an attempt, or replays the outcome of the one that finished.
   *
   * @throws {ConflictError} Another attempt is pending (the message says for how long), or the key belongs to another
   * request.
   * @throws {ValidationError} A bad key, lease or request.
   */
  begin(ctx: OpContext, options: BeginOptions): Promise<Begun>;
  /** Stores the outcome. Repeating it is success, the first outcome stands. @throws {ConflictError} Taken over. */
  finish(ctx: OpContext, attempt: Attempt, outcome: Json): Promise<void>;
  /** Gives the attempt up, so that the next one may begin at once. @throws {ConflictError} Taken over, or finished. */
  release(ctx: OpContext, attempt: Attempt): Promise<void>;
  /**
   * Carries `operation` out once: begins, runs it with the record's id, finishes with what it returned; a repeat gets
   * that. When it throws, the attempt is released and the error thrown on. A crash in the middle leaves the marker
   * pending until its lease passes; the next attempt runs `operation` again with the same record id.
   *
   * @throws As `begin`, or what `operation` threw.
   */
  once<T extends Json>(ctx: OpContext, options: BeginOptions, operation: (recordId: string) => Promise<T>): Promise<T>;
  /** The sweep: removes markers untouched for longer than their retention, one batch. Returns how many. */
  purgeMarkers(rctx: RequestContext): Promise<number>;
}

/** What storage is asked to begin. */
export interface MarkerBegin {
  /** The key. */
  readonly key: string;
  /** The digest of the request. */
  readonly digest: string;
  /** The fence of this attempt. */
  readonly token: string;
  /** The id to keep when this is the first attempt. */
  readonly recordId: string;
  /** How long the attempt holds, milliseconds. */
  readonly leaseMs: number;
}

/** A marker as it stands. */
export interface Marker {
  /** Where it stands. */
  readonly state: "pending" | "released" | "finished";
  /** The fence of its last attempt. */
  readonly token: string;
  /** The digest of its request. */
  readonly digest: string;
  /** The record's id. */
  readonly recordId: string;
  /** What came of it; null while it is not finished. */
  readonly outcome: Json;
  /** Milliseconds until the attempt's lease passes, on database time; 0 when it has. */
  readonly leaseLeftMs: number;
}

/** Storage of markers. Every move is one conditional statement. */
export interface IdempotencyStorage {
  /**
   * Makes the marker pending under this attempt when it is absent, released, or pending with its lease passed, and the
   * digest is the same; beginning again under the same token is success. Null when it is none of these.
   */
  begin(orgId: string, begin: MarkerBegin): Promise<Marker | null>;
  /** The marker of a key; null when there is none. */
  readMarker(orgId: string, key: string): Promise<Marker | null>;
  /** Finishes under the token; finished under it before is success and keeps the first outcome. False when refused. */
  finish(orgId: string, key: string, token: string, outcome: Json): Promise<boolean>;
  /** Releases under the token; released under it before is success. False when refused. */
  release(orgId: string, key: string, token: string): Promise<boolean>;
  /** Deletes markers untouched for more than `olderThanMs`, at most `limit`. Tenant-less: retention is of all orgs. */
  purgeMarkers(olderThanMs: number, limit: number): Promise<number>;
}
