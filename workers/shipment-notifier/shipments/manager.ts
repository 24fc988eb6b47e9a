/**
 * Operations on shipments.
 *
 * @module
 */
import {
  checkPark,
  ConflictError,
  DEFAULT_STAGGER,
  isUuid,
  type Json,
  newId,
  newOutboxRow,
  NotFoundError,
  type OpContext,
  type OutboxRelay,
  type OutboxRow,
  type RequestContext,
  type StaggerPolicy,
  UnavailableError,
  ValidationError,
} from "../../../mod.ts";
import { DEFAULT_ENDPOINT_POLICY, hostOf } from "../endpoints/rules.ts";
import { checkNewShipment, planResume, type ResumePlan } from "./rules.ts";
import type {
  CreatedShipment,
  NewShipment,
  OrgPage,
  ParkShipment,
  ResumeCounts,
  ResumeMove,
  Shipment,
  ShipmentInsert,
  ShipmentManager,
  ShipmentStorage,
} from "./types.ts";

/** What hands on the outbox rows of a write, right after it. */
export type Relay = Pick<OutboxRelay, "relay">;

/** How shipments resume and go. */
export interface ShipmentManagerOptions {
  /** How long a deleted shipment is kept, milliseconds. Default 30 days. */
  readonly deletedRetentionMs?: number;
  /** How far apart shipments of one host resume. Default `DEFAULT_STAGGER`. */
  readonly stagger?: StaggerPolicy;
  /** How long one that tries an endpoint keeps the others waiting, milliseconds. Default that of `EndpointPolicy`. */
  readonly probeHoldMs?: number;
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number;
}

const DEFAULT_OPTIONS: Required<ShipmentManagerOptions> = {
  deletedRetentionMs: 30 * 86_400_000,
  stagger: DEFAULT_STAGGER,
  probeHoldMs: DEFAULT_ENDPOINT_POLICY.probeHoldMs,
  random: Math.random,
};

/** Shipments of one org that one batch resumes. With the sweep's interval, the most that an endpoint meets in one. */
export const RESUME_BATCH = 100;
/** Deleted shipments that one batch removes. */
export const PURGE_BATCH = 1_000;

/** Builds the shipment manager. */
export function createShipmentManager(
  storage: ShipmentStorage,
  outbox: Relay,
  options: ShipmentManagerOptions = {},
): ShipmentManager {
  return new ShipmentManagerImpl(storage, outbox, { ...DEFAULT_OPTIONS, ...options });
}

class ShipmentManagerImpl implements ShipmentManager {
  readonly #storage: ShipmentStorage;
  readonly #outbox: Relay;
  readonly #options: Required<ShipmentManagerOptions>;

  constructor(storage: ShipmentStorage, outbox: Relay, options: Required<ShipmentManagerOptions>) {
    this.#storage = storage;
    this.#outbox = outbox;
    this.#options = options;
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
    if (found === null && written.lost === null && await this.#storage.wasDeleted(ctx.orgId, id)) {
      throw new ValidationError("id", `Cannot create shipment ${id}: one of this id was deleted; choose another id`);
    }
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
    const mark = { id, expectedVersion, updatedBy: ctx.userId, host: hostOf(shipment.webhookUrl) };
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

  async park(ctx: OpContext, shipment: Shipment, expectedVersion: number, request: ParkShipment): Promise<Shipment> {
    checkPark(request);
    const { id } = shipment;
    const rows = [newOutboxRow(ctx, "shipments.shipment.parked", { id })];
    const mark = { ...request, id, expectedVersion, updatedBy: ctx.userId, host: request.host ?? null };
    const written = await answerOrNull(() => this.#storage.park(ctx.orgId, mark, rows));
    if (written.value !== null) {
      await this.#outbox.relay(rows);
      return written.value;
    }
    const now = await this.read(ctx, id);
    if (written.lost !== null) {
      if (now.parking !== null && now.version === expectedVersion + 1) return now;
      if (now.version === expectedVersion) throw written.lost;
    }
    throw new ConflictError(
      `Cannot park shipment ${id} as version ${expectedVersion} must still be there, neither notified nor parked: it is ` +
        `${now.parking === null ? now.status : "parked"} at version ${now.version}; read it again`,
    );
  }

  async resumeParked(ctx: OpContext): Promise<ResumeCounts> {
    const dues = await this.#storage.readDueParked(ctx.orgId, RESUME_BATCH);
    if (dues.length === 0) return { resumed: 0, postponed: 0 };
    const items = planResume(dues, this.#options).map((plan) => ({ plan, row: itemRow(ctx, plan) }));
    const moves: ResumeMove[] = items.map(({ plan: { due: { shipment }, postponeMs }, row }) => ({
      id: shipment.id,
      expectedVersion: shipment.version,
      itemId: row?.id ?? null,
      postponeMs,
    }));
    const rows = items.flatMap(({ row }) =>
      row === null ? [] : [newOutboxRow(ctx, "shipments.shipment.resumed", { id: String(row.payload.shipmentId) }), row]
    );
    const resumed = new Set<Json | undefined>(await this.#storage.resumeParked(ctx.orgId, moves, rows));
    await this.#outbox.relay(rows.filter(({ payload }) => resumed.has(payload.id ?? payload.shipmentId)));
    return { resumed: resumed.size, postponed: moves.filter(({ itemId }) => itemId === null).length };
  }

  orgsWithParked(_rctx: RequestContext, { afterOrgId, limit }: OrgPage): Promise<string[]> {
    return this.#storage.orgsWithParked(afterOrgId, limit);
  }

  countParked(_rctx: RequestContext): Promise<number> {
    return this.#storage.countParked();
  }

  async deleteShipment(ctx: OpContext, shipment: Shipment, expectedVersion: number): Promise<void> {
    const { id } = shipment;
    const rows = [newOutboxRow(ctx, "shipments.shipment.deleted", { id })];
    const mark = { id, expectedVersion, updatedBy: ctx.userId };
    const written = await answerOrNull(() => this.#storage.deleteShipment(ctx.orgId, mark, rows));
    if (written.value === true) return void await this.#outbox.relay(rows);
    // Deleted is what was asked for, whoever did it; its event waits in the outbox for the sweep.
    if (written.lost !== null && await this.wasDeleted(ctx, id)) return;
    const now = await this.read(ctx, id);
    if (written.lost !== null && now.version === expectedVersion) throw written.lost;
    throw new ConflictError(
      `Cannot delete shipment ${id} as version ${expectedVersion} must still be there: it is at version ` +
        `${now.version}; read it again`,
    );
  }

  wasDeleted(ctx: OpContext, id: string): Promise<boolean> {
    return isUuid(id) ? this.#storage.wasDeleted(ctx.orgId, id.toLowerCase()) : Promise.resolve(false);
  }

  orgsWithDeleted(_rctx: RequestContext, page: OrgPage): Promise<string[]> {
    return this.#storage.orgsWithDeleted(this.#options.deletedRetentionMs, page);
  }

  purgeDeletedShipments(ctx: OpContext): Promise<number> {
    return this.#storage.purgeDeletedShipments(ctx.orgId, this.#options.deletedRetentionMs, PURGE_BATCH);
  }
}

/**
 * The outbox row of a resumed shipment's item: for whoever created the shipment, into the lane its cursor kept. Null when
 * it waits on.
 */
function itemRow(ctx: OpContext, { due: { shipment }, startMs }: ResumePlan): OutboxRow | null {
  if (startMs === null) return null;
  const cursor = shipment.parking?.cursor;
  const lane = typeof cursor === "object" && cursor !== null && "lane" in cursor ? cursor.lane : undefined;
  const row = newOutboxRow(ctx, "work.notify_shipment", {
    shipmentId: shipment.id,
    ...(startMs > 0 ? { startMs } : {}),
    ...(typeof lane === "string" ? { lane } : {}),
  });
  return { ...row, actorId: shipment.createdBy };
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
