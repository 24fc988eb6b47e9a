/**
 * Every operation that runs under an org's context, asked by a member of B for what is A's. A test holds the list to the
 * interfaces.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { OpContext } from "../../src/core/context.ts";
import { FinalError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/ids.ts";
import type { Managers } from "../../src/managers.ts";
import type { WorkItem } from "../../src/work/types.ts";
import type { EndpointManager } from "../../workers/shipment-notifier/endpoints/types.ts";
import type { Shipment, ShipmentManager } from "../../workers/shipment-notifier/shipments/types.ts";
import { KIND, type World } from "./breach_world.ts";

/** All managers over one store. */
export interface AllManagers extends Managers {
  readonly shipments: ShipmentManager;
  readonly endpoints: EndpointManager;
}

/** What an attempt is made with. */
export interface Asking {
  readonly managers: AllManagers;
  /** A member of B. */
  readonly ctx: OpContext;
  readonly world: World;
  /** A's claimed item and A's shipment, whole, as if they had been stolen. */
  readonly item: WorkItem;
  readonly shipment: Shipment;
}

/** One attempt: it asserts what the caller is told. */
export type ManagerAttempt = (asking: Asking) => Promise<unknown>;

async function refused(attempt: Promise<unknown>, code: "CONFLICT" | "NOT_FOUND"): Promise<void> {
  await assert.rejects(attempt, { code });
}

async function isTold(attempt: Promise<unknown>, answer: unknown): Promise<void> {
  assert.deepEqual(await attempt, answer);
}

function newShipment(id: string) {
  const about = { carrier: "DHL", trackingNumber: "00340434161094042557", recipientName: "B", destination: "B" };
  return { id, ...about, webhookUrl: "https://hooks.example/b" };
}

/** The attempts, by manager and operation. Those with A's ids and keys that are B's own rows then must not touch A's. */
export const MANAGER_ATTEMPTS: Readonly<Record<string, ManagerAttempt>> = {
  "work.enqueue": async ({ managers: { work }, ctx, world: { queued } }) => {
    const item = { id: queued.id, idempotencyKey: queued.idempotencyKey, kind: KIND, payload: {} };
    assert.equal((await work.enqueue(ctx, item)).outcome, "INSERTED", "its own, in its own org");
  },
  "work.enqueueMany": async ({ managers: { work }, ctx, item: { id, idempotencyKey } }) => {
    const [one] = await work.enqueueMany(ctx, [{ id, idempotencyKey, kind: KIND, payload: {} }]);
    assert.ok(one !== undefined && "outcome" in one && one.outcome === "INSERTED");
  },
  "work.complete": ({ managers: { work }, ctx, item }) => refused(work.complete(ctx, item), "CONFLICT"),
  "work.fail": async ({ managers: { work }, ctx, item }) => {
    await refused(work.fail(ctx, item, new Error("x")), "CONFLICT");
    await refused(work.fail(ctx, item, new FinalError("x")), "CONFLICT");
  },
  "work.defer": ({ managers: { work }, ctx, item }) => refused(work.defer(ctx, item, 0), "CONFLICT"),
  "work.release": ({ managers: { work }, ctx, item }) => refused(work.release(ctx, item), "CONFLICT"),
  "work.extendLease": ({ managers: { work }, ctx, item }) => refused(work.extendLease(ctx, item, 60_000), "CONFLICT"),
  "work.extendLeases": ({ managers: { work }, ctx, item }) =>
    isTold(work.extendLeases([{ ctx, item }], 60_000), [false]),
  "work.readClaim": ({ managers: { work }, ctx, item }) => isTold(work.readClaim(ctx, item), null),
  "work.read": ({ managers: { work }, ctx, item }) => refused(work.read(ctx, item.id), "NOT_FOUND"),
  "work.requeueStale": ({ managers: { work }, ctx }) =>
    isTold(work.requeueStale(ctx), { requeued: 0, deadLettered: 0 }),
  "audit.readEntries": ({ managers: { audit }, ctx }) => isTold(audit.readEntries(ctx, { limit: 100 }), []),
  "audit.readEvents": ({ managers: { audit }, ctx }) => isTold(audit.readEvents(ctx, { afterSeq: 0, limit: 100 }), []),
  "idempotency.begin": async ({ managers: { idempotency }, ctx, world: { marker } }) => {
    assert.equal((await idempotency.begin(ctx, { key: marker.key, request: {} })).state, "STARTED", "its own");
  },
  "idempotency.finish": ({ managers: { idempotency }, ctx, world: { marker } }) =>
    refused(idempotency.finish(ctx, { ...marker, recordId: newId() }, {}), "CONFLICT"),
  "idempotency.release": ({ managers: { idempotency }, ctx, world: { marker } }) =>
    refused(idempotency.release(ctx, { ...marker, recordId: newId() }), "CONFLICT"),
  "idempotency.once": ({ managers: { idempotency }, ctx, world: { finishedKey } }) =>
    isTold(idempotency.once(ctx, { key: finishedKey, request: {} }, () => Promise.resolve("B's own")), "B's own"),
  "tenancy.createSession": ({ managers: { tenancy }, ctx }) => tenancy.createSession(ctx),
  "tenancy.endSession": ({ managers: { tenancy }, ctx, world: { session } }) =>
    refused(tenancy.endSession(ctx, session.id), "NOT_FOUND"),
  "tenancy.createSocketTicket": ({ managers: { tenancy }, ctx }) => tenancy.createSocketTicket(ctx),
  "shipments.create": async ({ managers: { shipments }, ctx, shipment: { id } }) => {
    assert.equal((await shipments.create(ctx, newShipment(id))).outcome, "INSERTED", "its own, in its own org");
  },
  "shipments.read": ({ managers: { shipments }, ctx, shipment }) =>
    refused(shipments.read(ctx, shipment.id), "NOT_FOUND"),
  "shipments.markNotified": ({ managers: { shipments }, ctx, shipment }) =>
    refused(shipments.markNotified(ctx, shipment, 1), "NOT_FOUND"),
  "shipments.park": ({ managers: { shipments }, ctx, shipment }) =>
    refused(shipments.park(ctx, shipment, 1, { reason: "x", resumeAt: new Date() }), "NOT_FOUND"),
  "shipments.resumeParked": ({ managers: { shipments }, ctx }) =>
    isTold(shipments.resumeParked(ctx), { resumed: 0, postponed: 0 }),
  "shipments.deleteShipment": ({ managers: { shipments }, ctx, shipment }) =>
    refused(shipments.deleteShipment(ctx, shipment, 1), "NOT_FOUND"),
  "shipments.wasDeleted": ({ managers: { shipments }, ctx, world: { deletedId } }) =>
    isTold(shipments.wasDeleted(ctx, deletedId), false),
  "shipments.purgeDeletedShipments": ({ managers: { shipments }, ctx }) =>
    isTold(shipments.purgeDeletedShipments(ctx), 0),
  "endpoints.read": ({ managers: { endpoints }, ctx, world: { host } }) => isTold(endpoints.read(ctx, host), null),
  "endpoints.takeProbe": ({ managers: { endpoints }, ctx, world: { host } }) =>
    isTold(endpoints.takeProbe(ctx, host), false),
  "endpoints.failed": async ({ managers: { endpoints }, ctx, world: { host } }) => {
    assert.equal((await endpoints.failed(ctx, host, true)).failures, 1, "its own row's first");
  },
  "endpoints.answered": ({ managers: { endpoints }, ctx, world: { host } }) => endpoints.answered(ctx, host),
};
