/**
 * What the parts of the contract of `ShipmentStorage` share.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId, type OutboxRow, type OutboxStorage } from "../../../mod.ts";
import type { Harness } from "../../../testing.ts";
import { DEFAULT_ENDPOINT_POLICY } from "../endpoints/rules.ts";
import type { EndpointStorage } from "../endpoints/types.ts";
import type { DueParked, ParkMark, ResumeMove, Shipment, ShipmentInsert, ShipmentStorage } from "../shipments/types.ts";

/** What the suite runs over. */
export interface ShipmentHarness extends Harness {
  readonly storage: ShipmentStorage;
  readonly endpoints: EndpointStorage;
  readonly outbox: OutboxStorage;
}

/** The endpoint of every shipment the suite makes. */
export const HOST = "hooks.example";

/** A shipment to insert. */
export function insertOf(fields: Partial<ShipmentInsert> = {}): ShipmentInsert {
  return {
    id: newId(),
    carrier: "日本郵便",
    trackingNumber: "RA123456785JP",
    recipientName: `Zoë "Zed" O'Brien \\ 山田 🚚`,
    destination: "Łódź, PL",
    webhookUrl: "https://hooks.example/a?b=1",
    notificationId: newId(),
    createdBy: newId(),
    ...fields,
  };
}

/** An outbox row that tells of a shipment. */
export function rowOf(orgId: string, kind: string, id: string): OutboxRow {
  return {
    id: newId(),
    orgId,
    kind,
    payload: { id },
    actorId: newId(),
    requestId: null,
    traceparent: null,
    createdAt: new Date(),
  };
}

/** Pending rows of one org, by kind. */
export async function pending(outbox: OutboxStorage, orgId: string): Promise<string[]> {
  return (await outbox.readPending(10_000)).filter((row) => row.orgId === orgId).map((row) => row.kind).sort();
}

/** A time that has come in every store. */
export const LONG_AGO = new Date(0);
/** The policy endpoints fail by. */
export const POLICY = DEFAULT_ENDPOINT_POLICY;

/** A shipment just created. */
export async function created({ storage }: ShipmentHarness, orgId: string): Promise<Shipment> {
  return await storage.createShipment(orgId, insertOf(), []) ?? assert.fail("it was not created");
}

/** A parking of a shipment as it stands, due at once. */
export function markOf({ id, version }: Shipment, fields: Partial<ParkMark> = {}): ParkMark {
  const about = { reason: "its endpoint is down", resumeAt: LONG_AGO, host: null };
  return { id, expectedVersion: version, updatedBy: newId(), ...about, ...fields };
}

/** A shipment parked so. */
export async function parked(h: ShipmentHarness, orgId: string, fields?: Partial<ParkMark>): Promise<Shipment> {
  const shipment = await created(h, orgId);
  return await h.storage.park(orgId, markOf(shipment, fields), []) ?? assert.fail("it was not parked");
}

/** A move that resumes a shipment. */
export function wake({ id, version }: Shipment): { move: ResumeMove; rows: OutboxRow[]; itemId: string } {
  const itemId = newId();
  return { move: { id, expectedVersion: version, itemId, postponeMs: 0 }, itemId, rows: [] };
}

/** The rows of a resume: an event and an item. */
export function wakeRows(orgId: string, { id }: Shipment, itemId: string): OutboxRow[] {
  const item = { ...rowOf(orgId, "work.notify_shipment", id), id: itemId, payload: { shipmentId: id } };
  return [rowOf(orgId, "shipments.shipment.resumed", id), item];
}

/** Whether a shipment is among them. */
export function isDue(due: readonly DueParked[], { id }: Shipment): boolean {
  return due.some(({ shipment }) => shipment.id === id);
}

/** Fails an endpoint until it is down. */
export async function takeDown({ endpoints }: ShipmentHarness, orgId: string, host = HOST): Promise<void> {
  for (let i = 0; i < POLICY.downAfter; i++) await endpoints.failed(orgId, host, { ...POLICY, probe: false });
}
