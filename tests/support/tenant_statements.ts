/**
 * Every statement that runs inside a tenant, with an attempt to reach A's rows through it. A house test holds the list to
 * the source: a new statement needs a case here.
 *
 * @module
 */
import type { Row } from "../../src/db/database.ts";
import { auditSql } from "../../src/audit/storage/sql.ts";
import { idempotencySql } from "../../src/idempotency/storage/sql.ts";
import { tenancySql } from "../../src/tenancy/storage/sql.ts";
import { workSql } from "../../src/work/storage/sql.ts";
import { newId } from "../../src/core/ids.ts";
import { endpointSql } from "../../workers/shipment-notifier/endpoints/storage/sql.ts";
import { shipmentSql } from "../../workers/shipment-notifier/shipments/storage/sql.ts";
import { type AllStorages, insertOf, outboxRowOf, POLICY, shipmentOf, type World } from "./breach_world.ts";
import { TEST_NOW_SQL } from "./postgres.ts";

const { claimMerged, ...work } = workSql(TEST_NOW_SQL);

/** The statements of every storage, by the room it is in. */
export const STATEMENTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  audit: { ...auditSql(TEST_NOW_SQL) },
  idempotency: { ...idempotencySql(TEST_NOW_SQL) },
  tenancy: { ...tenancySql(TEST_NOW_SQL) },
  work: { ...work, claimMerged: claimMerged(2) },
  shipments: { ...shipmentSql(TEST_NOW_SQL) },
  endpoints: { ...endpointSql(TEST_NOW_SQL) },
};

/** One statement, and how B reaches for A through it. */
export interface TenantCase {
  /** `<room>.<statement>`. */
  readonly name: string;
  /** How the policy refuses: rows of A are not to be found, or a row of A's may not be written (SQLSTATE 42501). */
  readonly refusal: "hidden" | "refused";
  /** Calls the method with what only A's members may know, naming `org`: A's own id, or (the normal path) B's. */
  readonly act: (storages: AllStorages, org: string, world: World) => Promise<unknown>;
  /** A statement before it that is lost on purpose. */
  readonly lost?: string;
  /** Whether the rows tell something of A, for a statement whose rows hold no text. Default: they hold the mark. */
  readonly reveals?: (rows: readonly Row[]) => boolean;
}

const AT = new Date(Date.UTC(2026, 0, 1));

/** The cases. */
export const TENANT_CASES: readonly TenantCase[] = [
  {
    name: "tenancy.readOrg",
    refusal: "hidden",
    act: ({ tenancy }, org) => tenancy.readOrg(org),
  },
  {
    // The row comes of the org's own, so nothing of A's is even tried while A is hidden.
    name: "tenancy.writeMembership",
    refusal: "hidden",
    act: ({ tenancy }, org, { bob }) =>
      tenancy.writeMembership({ orgId: org, userId: bob, role: "OWNER", createdAt: AT, endedAt: null }),
  },
  {
    name: "tenancy.endMembership",
    refusal: "hidden",
    act: ({ tenancy }, org, { ana }) => tenancy.endMembership(org, ana),
  },
  {
    // As with memberships: of the org's own, so nothing is tried while A is hidden.
    name: "tenancy.createSession",
    refusal: "hidden",
    act: ({ tenancy }, org, { ana }) =>
      tenancy.createSession(org, { id: newId(), userId: ana, digest: "0".repeat(64), lifetimeMs: 60_000 }),
  },
  {
    name: "tenancy.touchSession",
    refusal: "hidden",
    act: ({ tenancy }, org, { session }) => tenancy.touchSession(org, session.digest, 3_600_000),
  },
  {
    name: "tenancy.endSession",
    refusal: "hidden",
    act: ({ tenancy }, org, { session }) => tenancy.endSession(org, session.id, null),
  },
  {
    name: "tenancy.createSocketTicket",
    refusal: "hidden",
    act: ({ tenancy }, org, { ana }) =>
      tenancy.createSocketTicket(org, { userId: ana, digest: "0".repeat(64), ttlMs: 60_000 }),
  },
  {
    name: "tenancy.redeemSocketTicket",
    refusal: "hidden",
    act: ({ tenancy }, org, { ticketDigest }) => tenancy.redeemSocketTicket(org, ticketDigest),
  },
  {
    name: "audit.appendEvent",
    refusal: "refused",
    act: ({ audit }, orgId, { ana }) =>
      audit.appendEvent({ id: newId(), orgId, kind: "a.b.c", actorId: ana, requestId: null, payload: {} }),
  },
  {
    name: "audit.readEventSeq",
    refusal: "hidden",
    lost: STATEMENTS.audit?.appendEvent,
    reveals: (rows) => rows.length > 0,
    act: ({ audit }, orgId, { ana, eventId }) =>
      audit.appendEvent({ id: eventId, orgId, kind: "a.b.c", actorId: ana, requestId: null, payload: {} }),
  },
  {
    name: "audit.readEntries",
    refusal: "hidden",
    act: ({ audit }, org) => audit.readEntries(org, 1_000),
  },
  {
    name: "audit.readEvents",
    refusal: "hidden",
    act: ({ audit }, org) => audit.readEvents(org, 0, 1_000),
  },
  {
    name: "idempotency.begin",
    refusal: "refused",
    act: ({ idempotency }, org, { marker }) =>
      idempotency.begin(org, { ...marker, recordId: newId(), leaseMs: 3_600_000 }),
  },
  {
    name: "idempotency.readMarker",
    refusal: "hidden",
    act: ({ idempotency }, org, { finishedKey }) => idempotency.readMarker(org, finishedKey),
  },
  {
    name: "idempotency.finish",
    refusal: "hidden",
    act: ({ idempotency }, org, { marker }) => idempotency.finish(org, marker.key, marker.token, { by: "B" }),
  },
  {
    name: "idempotency.release",
    refusal: "hidden",
    act: ({ idempotency }, org, { marker }) => idempotency.release(org, marker.key, marker.token),
  },
  {
    name: "work.createItems",
    refusal: "refused",
    act: ({ work }, org) => work.createItems(org, [insertOf()]),
  },
  {
    name: "work.readItem",
    refusal: "hidden",
    act: ({ work }, org, { queued }) => work.readItem(org, queued.id),
  },
  {
    name: "work.readItemByKey",
    refusal: "hidden",
    act: ({ work }, org, { queued }) => work.readItemByKey(org, queued.idempotencyKey),
  },
  {
    name: "work.requeueStale",
    refusal: "hidden",
    act: ({ work }, org) => work.requeueStale(org, 1_000, { baseMs: 1_000, capMs: 60_000 }),
  },
  {
    name: "shipments.createShipment",
    refusal: "refused",
    act: ({ shipments }, org, { shipmentId }) =>
      shipments.createShipment(org, shipmentOf(), [outboxRowOf(org, { payload: { id: shipmentId } })]),
  },
  {
    name: "shipments.readShipment",
    refusal: "hidden",
    act: ({ shipments }, org, { shipmentId }) => shipments.readShipment(org, shipmentId),
  },
  {
    name: "shipments.markNotified",
    refusal: "hidden",
    act: ({ shipments }, org, { shipmentId, bob }) =>
      shipments.markNotified(org, { id: shipmentId, expectedVersion: 1, updatedBy: bob, host: "x" }, [
        outboxRowOf(org),
      ]),
  },
  {
    name: "shipments.park",
    refusal: "hidden",
    act: ({ shipments }, org, { shipmentId, bob }) => {
      const mark = { id: shipmentId, expectedVersion: 1, updatedBy: bob, reason: "x", resumeAt: AT, host: null };
      return shipments.park(org, mark, [outboxRowOf(org)]);
    },
  },
  {
    name: "shipments.readDueParked",
    refusal: "hidden",
    act: ({ shipments }, org) => shipments.readDueParked(org, 1_000),
  },
  {
    name: "shipments.resumeParked",
    refusal: "hidden",
    act: ({ shipments }, org, { parkedId }) =>
      shipments.resumeParked(org, [{ id: parkedId, expectedVersion: 2, itemId: newId(), postponeMs: 0 }], [
        outboxRowOf(org, { payload: { id: parkedId } }),
      ]),
  },
  {
    name: "shipments.deleteShipment",
    refusal: "hidden",
    act: ({ shipments }, org, { shipmentId, bob }) =>
      shipments.deleteShipment(org, { id: shipmentId, expectedVersion: 1, updatedBy: bob }, [outboxRowOf(org)]),
  },
  {
    name: "shipments.wasDeleted",
    refusal: "hidden",
    reveals: (rows) => rows.length > 0,
    act: ({ shipments }, org, { deletedId }) => shipments.wasDeleted(org, deletedId),
  },
  {
    name: "shipments.purgeDeletedShipments",
    refusal: "hidden",
    act: ({ shipments }, org) => shipments.purgeDeletedShipments(org, 0, 1_000),
  },
  {
    name: "endpoints.readEndpoint",
    refusal: "hidden",
    reveals: (rows) => rows.length > 0,
    act: ({ endpoints }, org, { host }) => endpoints.readEndpoint(org, host),
  },
  {
    name: "endpoints.takeProbe",
    refusal: "hidden",
    act: ({ endpoints }, org, { host }) => endpoints.takeProbe(org, host, 60_000),
  },
  {
    name: "endpoints.failed",
    refusal: "refused",
    act: ({ endpoints }, org, { host }) => endpoints.failed(org, host, { ...POLICY, probe: true }),
  },
  {
    name: "endpoints.answered",
    refusal: "hidden",
    act: ({ endpoints }, org, { host }) => endpoints.answered(org, host),
  },
];

/** The text of a case's statement. */
export function textOf({ name }: TenantCase): string {
  const [room = "", statement = ""] = name.split(".");
  const text = STATEMENTS[room]?.[statement];
  if (text === undefined) throw new Error(`Cannot find the statement ${name}: no storage's sql.ts has it`);
  return text;
}
