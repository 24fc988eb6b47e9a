/**
 * Operations on shipments.
 *
 * @module
 */
import {
  ConflictError,
  isUuid,
  newId,
  newOutboxRow,
  NotFoundError,
  type OpContext,
  type OutboxRelay,
  UnavailableError,
} from "../../../mod.ts";
import { checkNewShipment } from "./rules.ts";
import type {
  CreatedShipment,
  NewShipment,
  Shipment,
  ShipmentInsert,
  ShipmentManager,
  ShipmentStorage,
} from "./types.ts";

/** What hands on the outbox rows of a write, right after it. */
export type Relay = Pick<OutboxRelay, "relay">;

/** Builds the shipment manager. */
export function createShipmentManager(storage: ShipmentStorage, outbox: Relay): ShipmentManager {
  return new ShipmentManagerImpl(storage, outbox);
}

class ShipmentManagerImpl implements ShipmentManager {
  readonly #storage: ShipmentStorage;
  readonly #outbox: Relay;

  constructor(storage: ShipmentStorage, outbox: Relay) {
    this.#storage = storage;
    this.#outbox = outbox;
  }

  async create(ctx: OpContext, shipment: NewShipment): Promise<CreatedShipment> {
    const { id = newId(), lane, ...about } = checkNewShipment(shipment);
    const notify = newOutboxRow(ctx, "work.notify_shipment", {
      shipmentId: id,
      ...(lane === undefined ? {} : { lane }),
    });
    const rows = [newOutboxRow(ctx, "shipments.shipment.created", { id }), notify];
    const insert: ShipmentInsert = { id, ...about, notificationId: notify.id, createdBy: ctx.userId };
    const written = await answerOrNull(() => this.#storage.createShipment(ctx.orgId, insert, rows));
    const found = written.value ?? await this.#storage.readShipment(ctx.orgId, id);
    if (found === null) throw written.lost ?? gone(id, ctx);
    // Only a write of ours has this id, whether or not its answer came back. The rows of another's are another's to relay:
    // ours were never written then, and would notify a second time.
    if (found.notificationId !== notify.id) return { outcome: "EXISTS", shipment: found };
    await this.#outbox.relay(rows);
    return { outcome: "INSERTED", shipment: found };
  }

  async read(ctx: OpContext, id: string): Promise<Shipment> {
    const found = isUuid(id) ? await this.#storage.readShipment(ctx.orgId, id.toLowerCase()) : null;
    if (found === null) throw gone(id, ctx);
    return found;
  }

  async markNotified(ctx: OpContext, shipment: Shipment, expectedVersion: number): Promise<Shipment> {
    const { id } = shipment;
    const rows = [newOutboxRow(ctx, "shipments.shipment.notified", { id })];
    const mark = { id, expectedVersion, updatedBy: ctx.userId };
    const written = await answerOrNull(() => this.#storage.markNotified(ctx.orgId, mark, rows));
    if (written.value !== null) {
      await this.#outbox.relay(rows);
      return written.value;
    }
    const now = await this.read(ctx, id);
    if (written.lost !== null) {
      // Marked from just this version: by us, or by one who did the same. Its event waits in the outbox for the sweep.
      if (now.status === "notified" && now.version === expectedVersion + 1) return now;
      if (now.version === expectedVersion) throw written.lost;
    }
    throw new ConflictError(
      `Cannot mark shipment ${id} notified as version ${expectedVersion} must still be there: it is ${now.status} at ` +
        `version ${now.version}; read it again`,
    );
  }
}

/** Runs a write. An answer that was lost is told as such, for the caller to read back; any other error is thrown. */
async function answerOrNull<T>(
  write: () => Promise<T | null>,
): Promise<{ readonly value: T | null; readonly lost: UnavailableError | null }> {
  try {
    return { value: await write(), lost: null };
  } catch (error) {
    if (!(error instanceof UnavailableError) || error.outcome !== "unknown") throw error;
    return { value: null, lost: error };
  }
}

function gone(id: string, ctx: OpContext): NotFoundError {
  return new NotFoundError(`Cannot read shipment ${id}: org ${ctx.orgId} has none of this id`);
}
