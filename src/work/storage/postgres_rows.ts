/**
 * Items and their batches as `PostgresWorkStorage` sends and reads them.
 *
 * @module
 */
import { EMPTY_UUID } from "../../core/ids.ts";
import type { Row } from "../../db/database.ts";
import type { ClaimRef, ClaimRequest, ItemInsert, OwnedItem, Settlement } from "../storage.ts";
import type { Payload, WorkItem, WorkStatus } from "../types.ts";

/** What a row of a batch may leave to what all of them share. */
const SHARED = [
  ...["created_at", "updated_at", "created_by", "updated_by", "kind", "target_id", "lane", "priority", "weight"],
  ...["host_preference", "max_attempts", "request_id", "traceparent", "delay_ms", "not_before"],
] as const;

type Shared = Partial<Record<(typeof SHARED)[number], string | number | Date | null>>;

/** Up to the first insert whose id came before it: whether that id exists by then is for what became of the other to say. */
export function distinctIds(inserts: readonly ItemInsert[]): readonly ItemInsert[] {
  const ids = new Set<string>();
  const repeat = inserts.findIndex(({ item }) => ids.size === ids.add(item.id).size);
  return repeat < 0 ? inserts : inserts.slice(0, repeat);
}

/**
 * Inserts as `createItems` reads them: the rows, and what those share that do not say otherwise. Items of one call are
 * mostly alike, and reading a field out of JSON costs the server more than writing its column: whole rows took 14 of 25 us
 * an item, these 2.5.
 */
export function encodeInserts(inserts: readonly ItemInsert[]): [rows: string, shared: string] {
  const all = inserts.map(sharedOf);
  const shared: Shared = {};
  for (const field of SHARED) {
    const value = all[0]?.[field] ?? null;
    // Null is what an absent field means, so it can be told of no single row.
    if (value !== null && all.every((row) => row[field] !== null)) shared[field] = value;
  }
  const rows = inserts.map(({ item }, n) => {
    // Of two inserts of one key in one call the first one wins: hence the number.
    const row: Record<string, unknown> = {
      n,
      id: item.id,
      idempotency_key: item.idempotencyKey,
      payload: item.payload,
    };
    for (const field of SHARED) {
      const value = all[n]?.[field] ?? null;
      if (value !== null && !isSame(value, shared[field])) row[field] = value;
    }
    return row;
  });
  return [JSON.stringify(rows), JSON.stringify(shared)];
}

function sharedOf({ item, start }: ItemInsert): Required<Shared> {
  return {
    created_at: item.createdAt,
    updated_at: item.updatedAt,
    created_by: item.createdBy,
    updated_by: item.updatedBy,
    kind: item.kind,
    target_id: item.targetId,
    lane: item.lane,
    priority: item.priority,
    weight: item.weight,
    host_preference: item.hostPreference,
    max_attempts: item.maxAttempts,
    request_id: item.requestId,
    traceparent: item.traceparent,
    delay_ms: start !== null && "delayMs" in start ? start.delayMs : null,
    not_before: start !== null && "notBefore" in start ? start.notBefore : null,
  };
}

function isSame(a: string | number | Date, b: string | number | Date | null | undefined): boolean {
  return a instanceof Date ? b instanceof Date && a.getTime() === b.getTime() : a === b;
}

/** Which statement settles: into the history, for good, or in place. */
export type Way = "keep" | "drop" | "write";
/** All of them. */
export const WAYS: readonly Way[] = ["keep", "drop", "write"];

/** How a settlement is written. */
export function wayOf(settlement: Settlement): Way {
  if (settlement.to !== "done") return "write";
  return settlement.keep === false ? "drop" : "keep";
}

/** In the order in which every batch meets its rows. */
export function byId(a: ClaimRef, b: ClaimRef): number {
  if (a.id !== b.id) return a.id < b.id ? -1 : 1;
  return a.orgId < b.orgId ? -1 : 1;
}

/** Places as an array literal. */
export function encodePlaces(places: readonly string[]): string {
  return `{${places.map((place) => `"${place}"`).join(",")}}`;
}

/** Claims as three array literals: orgs, ids and tokens, which need no quoting. */
export function encodeRefs(batch: readonly { readonly ref: ClaimRef }[]): string[] {
  return (["orgId", "id", "token"] as const).map((part) => `{${batch.map(({ ref }) => ref[part]).join(",")}}`);
}

/** One row of a guarded batch, under its place in the batch. */
export type Encoded = Readonly<Record<string, unknown>> & { readonly n: number };

/** A claim, at its place in a batch. */
export function encodeRef(ref: ClaimRef, n: number): Encoded {
  return { n, org_id: ref.orgId, id: ref.id, token: ref.token, delay_ms: 0, refund: 0 };
}

/** A settlement that stays in the table. */
export function encodeSettlement(settlement: Settlement, n: number): Encoded {
  const base = encodeRef(settlement, n);
  switch (settlement.to) {
    case "done":
      throw new Error("a completion has a statement of its own");
    case "failed":
      return { ...base, to_status: "failed", error: settlement.error, audit_id: settlement.auditId, ran: false };
    case "retry":
      return { ...base, to_status: "queued", delay_ms: settlement.delayMs, error: settlement.error, ran: true };
    case "back": {
      const { delayMs, note, ran } = settlement;
      return { ...base, to_status: "queued", delay_ms: delayMs, note, ran, refund: 1 };
    }
  }
}

/** A row a claim returned, in the order of `CLAIMED_COLUMNS`. */
export type ClaimedRow = readonly [
  orgId: string,
  id: string,
  createdAt: Date,
  createdBy: string,
  requestId: string | null,
  targetId: string | null,
  availableAt: Date,
  claims: string,
  attempts: number,
  maxAttempts: number,
  priority: number,
  kind: string,
  weight: string,
  hostPreference: string | null,
  idempotencyKey: string,
  traceparent: string | null,
  payload: Payload,
  lastError: string | null,
  note: string | null,
  expiries: number,
  updatedAt: Date,
  place: string,
];

/** Where a claimed row lies. */
export function placeOf(row: ClaimedRow): readonly [id: string, place: string] {
  return [row[1], row[21]];
}

/** What a claim returned, as an item: what is the same for all of its rows comes of the request. */
export function toClaimed(row: ClaimedRow, { lane, worker, token, leaseMs }: ClaimRequest): OwnedItem {
  const [
    orgId,
    id,
    createdAt,
    createdBy,
    requestId,
    targetId,
    availableAt,
    claims,
    attempts,
    maxAttempts,
    priority,
    kind,
    weight,
    hostPreference,
    idempotencyKey,
    traceparent,
    payload,
    lastError,
    note,
    expiries,
    updatedAt,
  ] = row;
  const item: WorkItem = {
    id,
    createdAt,
    updatedAt,
    createdBy,
    updatedBy: EMPTY_UUID,
    kind,
    targetId,
    idempotencyKey,
    payload,
    lane,
    status: "claimed",
    priority,
    weight,
    hostPreference,
    availableAt,
    claimedBy: worker,
    claimToken: token,
    leaseExpiresAt: new Date(updatedAt.getTime() + leaseMs),
    attempts,
    maxAttempts,
    claims: Number(claims),
    expiries,
    lastError,
    note,
    auditId: null,
    requestId,
    traceparent,
  };
  return { orgId, item };
}

/** A row with its org beside it. */
export function toOwned(row: Row): OwnedItem {
  return { orgId: String(row.org_id), item: toItem(row) };
}

/** A row of either table as an item. */
export function toItem(row: Row): WorkItem {
  return {
    id: row.id as string,
    createdAt: row.created_at as Date,
    updatedAt: row.updated_at as Date,
    createdBy: row.created_by as string,
    updatedBy: row.updated_by as string,
    kind: row.kind as string,
    targetId: row.target_id as string | null,
    idempotencyKey: row.idempotency_key as string,
    payload: row.payload as Payload,
    lane: row.lane as string,
    status: row.status as WorkStatus,
    priority: row.priority as number,
    weight: row.weight as string,
    hostPreference: row.host_preference as string | null,
    availableAt: row.available_at as Date,
    claimedBy: row.claimed_by as string | null,
    claimToken: row.claim_token as string | null,
    leaseExpiresAt: row.lease_expires_at as Date | null,
    attempts: row.attempts as number,
    maxAttempts: row.max_attempts as number,
    claims: Number(row.claims),
    expiries: row.expiries as number,
    lastError: row.last_error as string | null,
    note: row.note as string | null,
    auditId: row.audit_id as string | null,
    requestId: row.request_id as string | null,
    traceparent: row.traceparent as string | null,
  };
}
