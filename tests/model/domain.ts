/**
 * The few orgs, ids, keys and values that sequences are made of: few, so that they meet each other.
 *
 * @module
 */
import fc from "fast-check";
import type { ClaimRef, ItemInsert } from "../../src/work/storage.ts";
import type { Payload } from "../../src/work/types.ts";
import type { WorkModel } from "./work_model.ts";

/** Audit ids that a caller mints begin so; others were minted by the storage. */
export const AUDIT = "a0d17000";

/** The orgs. */
export const ORGS: readonly string[] = ["1", "2", "3"].map((n) => uuid(`0000000${n}`, 1));
/** In different places of the order of turns, also behind its beginning. */
export const KINDS = ["KIND_A", "KIND_B", "KIND_C"] as const;
/** Lanes of every org. */
export const LANES = ["default", "express"] as const;
const KEYS = ["key", "KEY", "key ", "kéy", "ke\u0301y", "🚚", "'\";--\\", "k".repeat(200)];
const PAYLOADS: readonly Payload[] = [{}, { n: 1.5, "": null, 'ü"\\': ["🚚", {}, []] }, { constructor: 0, list: [0] }];

/** A uuid of a family of them. */
export function uuid(family: string, n: number): string {
  return `${family}-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;
}

/** How an item to create is drawn: what it is, before the time of the sequence is known. */
export interface DrawnItem {
  readonly id: number;
  readonly key: number;
  readonly lane: number;
  readonly kind: number;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly payload: number;
  readonly start: { readonly delayMs: number } | { readonly beforeMs: number } | null;
}

const index = (length: number) => fc.nat({ max: length - 1 });

/** Ids below this are of one org each; the others exist in every org, in a lane of the org's own. */
const OWN_IDS = 10;
const SHARED_IDS = 2;

/** An item to create. */
export const drawnItem: fc.Arbitrary<DrawnItem> = fc.record({
  id: index(OWN_IDS + SHARED_IDS),
  key: index(KEYS.length),
  lane: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) }),
  kind: index(KINDS.length),
  priority: fc.constantFrom(10, 10, 10, 1, 32_767),
  maxAttempts: fc.constantFrom(3, 1, 2, 1_000),
  payload: index(PAYLOADS.length),
  start: fc.option(
    fc.oneof(
      fc.record({ delayMs: fc.constantFrom(0, 1, 500, 5_000, 60_000) }),
      fc.record({ beforeMs: fc.constantFrom(-1_000_000, 0, 1, 1_000, 30_000) }),
    ),
    { freq: 2 },
  ),
});

/**
 * The id of an item. One that several orgs share lies in a lane of its org's own: of two items alike but for their orgs a
 * claim may take either first, and the storages would part there.
 */
function idOf(org: number, n: number): string {
  return n < OWN_IDS ? uuid("01900000", org * OWN_IDS + n) : uuid("01900001", n);
}

/** The insert of a drawn item. */
export function insertOf(drawn: DrawnItem, org: number, nowMs: number): ItemInsert {
  const createdAt = new Date(Date.UTC(2025, 0, 1) + drawn.id);
  const { start } = drawn;
  const shared = drawn.id >= OWN_IDS;
  return {
    item: {
      id: idOf(org, drawn.id),
      createdAt,
      updatedAt: createdAt,
      createdBy: uuid("c0000000", drawn.id),
      updatedBy: uuid("c0000001", drawn.id),
      kind: KINDS[drawn.kind] ?? KINDS[0],
      targetId: drawn.id % 3 === 0 ? uuid("7a000000", drawn.id) : null,
      idempotencyKey: KEYS[drawn.key] ?? "key",
      payload: PAYLOADS[drawn.payload] ?? {},
      lane: shared ? `org-${org}` : LANES[drawn.lane] ?? LANES[0],
      status: "queued",
      priority: drawn.priority,
      weight: drawn.id % 2 === 0 ? "light" : "heavy",
      hostPreference: drawn.id % 4 === 0 ? "host-1" : null,
      availableAt: createdAt,
      claimedBy: null,
      claimToken: null,
      leaseExpiresAt: null,
      attempts: 0,
      maxAttempts: drawn.maxAttempts,
      claims: 0,
      expiries: 0,
      lastError: null,
      note: null,
      auditId: null,
      requestId: drawn.id % 2 === 0 ? uuid("4e000000", drawn.id) : null,
      traceparent: drawn.id % 3 === 1 ? "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" : null,
    },
    start: start === null
      ? null
      : "delayMs" in start
      ? { delayMs: start.delayMs }
      : { notBefore: new Date(nowMs + start.beforeMs) },
  };
}

/** Every lane a claim may ask for. */
export const ALL_LANES: readonly string[] = [...LANES, ...ORGS.map((_, org) => `org-${org}`)];

/** How a claim is named: the latest, or one before it; or with one part of it wrong. */
export interface DrawnRef {
  readonly back: number;
  readonly wrong: "nothing" | "org" | "token" | "id";
}

/** A claim, mostly a late one. */
export const drawnRef: fc.Arbitrary<DrawnRef> = fc.record({
  back: fc.oneof({ weight: 3, arbitrary: fc.nat({ max: 3 }) }, { weight: 1, arbitrary: fc.nat({ max: 30 }) }),
  wrong: fc.oneof(
    { weight: 8, arbitrary: fc.constant("nothing" as const) },
    { weight: 2, arbitrary: fc.constantFrom("org" as const, "token" as const, "token" as const, "id" as const) },
  ),
});

/** The claim that is meant; one that never was where there is none yet. */
export function refOf({ back, wrong }: DrawnRef, { claims }: WorkModel): ClaimRef {
  const none = { orgId: ORGS[0] ?? "", id: idOf(0, 0), token: uuid("70000000", 0) };
  const ref = claims.length === 0 ? none : claims[claims.length - 1 - back % claims.length] ?? none;
  switch (wrong) {
    case "nothing":
      return ref;
    case "org":
      return { ...ref, orgId: ORGS[(ORGS.indexOf(ref.orgId) + 1) % ORGS.length] ?? "" };
    case "token": {
      // Of another claim of the same item, where there was one.
      const other = claims.find(({ orgId, id, token }) => orgId === ref.orgId && id === ref.id && token !== ref.token);
      return { ...ref, token: (other ?? claims[0] ?? none).token };
    }
    case "id":
      return { ...ref, id: claims[0]?.id ?? none.id };
  }
}

/** A limit, moved on to where what follows is told apart: of equals a storage may take any, and they would part there. */
export function decided(limit: number, places: readonly number[]): number {
  let end = Math.min(limit, places.length);
  while (end < places.length && places[end] === places[end - 1]) end++;
  return Math.max(end, limit);
}
