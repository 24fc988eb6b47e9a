/**
 * The shipment: the record that a notification is about. An example of a record of one's own: versioned, and written
 * together with the outbox rows that tell of the write.
 *
 * @module
 */
import type { OpContext, OutboxRow, Parking, ParkRequest, RequestContext } from "../../../mod.ts";

/** `created`: its receiver is still to be told. `notified`: it was told, once. */
export type ShipmentStatus = "created" | "notified";

/** One shipment. Carries no org: it is read and written under a context, which names the org. */
export interface Shipment {
  readonly id: string;
  /** 1 when created, one more with each write: what a compare-and-set compares. */
  readonly version: number;
  /** For people, 1–60 characters: `DHL`. */
  readonly carrier: string;
  /** 4–40 letters, digits, dashes, spaces. */
  readonly trackingNumber: string;
  /** In any script, 1–200 characters. */
  readonly recipientName: string;
  /** For people, 1–200 characters: `Łódź, PL`. */
  readonly destination: string;
  /** Where the notification is posted: http or https, without user and password, at most 2 000 characters. */
  readonly webhookUrl: string;
  readonly status: ShipmentStatus;
  /** Database time of the mark; null until then. */
  readonly notifiedAt: Date | null;
  /** The `webhook-id` that its receiver sees, however often it is sent; the id of its first NOTIFY_SHIPMENT item. */
  readonly notificationId: string;
  /** The id of the item that carries its notification now: `notificationId` until it was parked and resumed. */
  readonly itemId: string;
  /** Why and until when it waits, and where it stood; null while it does not. */
  readonly parking: Parking | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly createdBy: string;
  readonly updatedBy: string;
}

/** What a caller gives; the rest belongs to the manager. */
export interface NewShipment {
  /** Names the shipment for ever: creating it again changes nothing. Minted when absent. */
  readonly id?: string;
  readonly carrier: string;
  readonly trackingNumber: string;
  readonly recipientName: string;
  readonly destination: string;
  readonly webhookUrl: string;
  /** The lane its notification waits in. Default `default`. */
  readonly lane?: string;
}

/** What a creation met, and the shipment as it stands. */
export interface CreatedShipment {
  readonly outcome: "INSERTED" | "EXISTS";
  readonly shipment: Shipment;
}

/** Operations on shipments. */
export interface ShipmentManager {
  /**
   * Creates a shipment and, in the same write, the outbox rows that announce it and ask for its notification; then
   * relays them. A shipment with this id is left as it stands, and nothing is announced again.
   *
   * A crash after the write leaves the rows to the sweep. A lost answer is read back.
   *
   * @throws {ValidationError} Naming the field, before anything is written.
   */
  create(ctx: OpContext, shipment: NewShipment): Promise<CreatedShipment>;
  /** @throws {NotFoundError} There is no such shipment in the context's org. */
  read(ctx: OpContext, id: string): Promise<Shipment>;
  /**
   * Marks a shipment notified, by compare-and-set on its version, and announces it in the same write, which also notes
   * that its endpoint answered (see `EndpointManager.answered`). A lost answer is read back: a shipment marked by this
   * write is success.
   *
   * @throws {ConflictError} The shipment has another version by now, or is marked already: read it again.
   */
  markNotified(ctx: OpContext, shipment: Shipment, expectedVersion: number): Promise<Shipment>;
  /**
   * Parks a shipment that is not notified, by compare-and-set on its version, and announces it in the same write. Its
   * item is to complete: resuming enqueues another one. A lost answer is read back.
   *
   * @throws {ConflictError} Another version, notified or parked already: read it again.
   * @throws {ValidationError} The reason, the time or the cursor.
   */
  park(ctx: OpContext, shipment: Shipment, expectedVersion: number, request: ParkShipment): Promise<Shipment>;
  /**
   * The sweep: resumes the org's shipments whose time has come, one batch, each with a new item through an outbox row of
   * the same write. They go one after the other, not all at once. Of those that wait for an endpoint that is still down
   * one goes, to try it; the others wait on. Cut off halfway, what was written is relayed by a later sweep.
   */
  resumeParked(ctx: OpContext): Promise<ResumeCounts>;
  /** Orgs after `afterOrgId` with shipments to be resumed, in id order. */
  orgsWithParked(rctx: RequestContext, options: OrgPage): Promise<string[]>;
  /** How many shipments are parked, over all orgs: for the gauge. */
  countParked(rctx: RequestContext): Promise<number>;
  /**
   * Deletes a shipment, by compare-and-set on its version, and announces it in the same write. It is hidden from then on;
   * an item that waits to notify of it completes without sending. The row goes when its retention has passed.
   *
   * @throws {ConflictError} It has another version by now: read it again.
   * @throws {NotFoundError} There is none, or it was deleted before.
   */
  deleteShipment(ctx: OpContext, shipment: Shipment, expectedVersion: number): Promise<void>;
  /** Whether a shipment of this id was deleted and is not purged yet. */
  wasDeleted(ctx: OpContext, id: string): Promise<boolean>;
  /** Orgs after `afterOrgId` with deleted shipments past their retention, in id order. */
  orgsWithDeleted(rctx: RequestContext, options: OrgPage): Promise<string[]>;
  /** The sweep: removes the org's deleted shipments past their retention, one batch. Returns how many. */
  purgeDeletedShipments(ctx: OpContext): Promise<number>;
}

/** What a shipment is parked with. */
export interface ParkShipment extends ParkRequest {
  /** The endpoint it waits for: it resumes early when that answers again. Default none. */
  readonly host?: string | null;
}

/** One page of orgs. */
export interface OrgPage {
  /** The last org of the page before; null for the first page. */
  readonly afterOrgId: string | null;
  readonly limit: number;
}

/** What one batch of resuming did. */
export interface ResumeCounts {
  /** Shipments that go on. */
  readonly resumed: number;
  /** Shipments that wait on, as their endpoint is still down. */
  readonly postponed: number;
}

/** A shipment to be inserted; storage gives it version 1, its status and its times. */
export type ShipmentInsert = Omit<
  Shipment,
  "version" | "status" | "notifiedAt" | "itemId" | "parking" | "createdAt" | "updatedAt" | "updatedBy"
>;

/** A mark to be made. */
export interface NotifiedMark {
  readonly id: string;
  readonly expectedVersion: number;
  /** Who signs it. */
  readonly updatedBy: string;
  /** The endpoint that answered. */
  readonly host: string;
}

/** A parking to be made. */
export interface ParkMark extends ParkRequest {
  readonly id: string;
  readonly expectedVersion: number;
  readonly updatedBy: string;
  readonly host: string | null;
}

/** A deletion to be made. */
export interface DeleteMark {
  readonly id: string;
  readonly expectedVersion: number;
  readonly updatedBy: string;
}

/** A parked shipment whose time has come. */
export interface DueParked {
  readonly shipment: Shipment;
  /** The endpoint it waits for. */
  readonly host: string | null;
  /** Milliseconds until that endpoint may be tried again, 0 or less from then on; null when it is not down. */
  readonly probeInMs: number | null;
}

/** What becomes of a parked shipment whose time has come. */
export interface ResumeMove {
  readonly id: string;
  readonly expectedVersion: number;
  /** The id of its new item; null when it waits on. */
  readonly itemId: string | null;
  /** How much longer it waits; 0 when it does not. */
  readonly postponeMs: number;
}

/** Storage of shipments. Two implementations, one contract (`contract.ts`). Storage trusts its caller. */
export interface ShipmentStorage {
  /**
   * Inserts a shipment with its outbox rows, all or nothing; null, and nothing written, when the org has one of this
   * id, deleted ones included. Its times are database time.
   */
  createShipment(orgId: string, shipment: ShipmentInsert, rows: readonly OutboxRow[]): Promise<Shipment | null>;
  /** Null when the org has none of this id, or it was deleted. */
  readShipment(orgId: string, id: string): Promise<Shipment | null>;
  /**
   * Marks a shipment notified with its outbox rows, all or nothing, when it has the expected version, is not deleted and
   * not yet marked; null, and nothing written, otherwise. `notifiedAt` and `updatedAt` are database time. The same
   * statement does what `EndpointStorage.answered` does for its host.
   */
  markNotified(orgId: string, mark: NotifiedMark, rows: readonly OutboxRow[]): Promise<Shipment | null>;
  /**
   * Parks a shipment with its outbox rows, all or nothing, when it has the expected version and is neither notified,
   * parked nor deleted; null, and nothing written, otherwise.
   */
  park(orgId: string, mark: ParkMark, rows: readonly OutboxRow[]): Promise<Shipment | null>;
  /** Parked shipments whose time has come, the longest due first. */
  readDueParked(orgId: string, limit: number): Promise<DueParked[]>;
  /**
   * Resumes or postpones parked shipments that are still due at the expected version, with those of the outbox rows
   * whose payload names (`id` or `shipmentId`) one that was resumed. A resumed one is a version on and keeps its cursor.
   *
   * @returns The ids of those that were resumed.
   */
  resumeParked(orgId: string, moves: readonly ResumeMove[], rows: readonly OutboxRow[]): Promise<string[]>;
  /** Orgs after `afterOrgId` with parked shipments due, in id order. Tenant-less: the sweep asks which orgs to visit. */
  orgsWithParked(afterOrgId: string | null, limit: number): Promise<string[]>;
  /** How many are parked. Tenant-less: the gauge is of all orgs. */
  countParked(): Promise<number>;
  /** Deletes one with its outbox rows, all or nothing, when it has the expected version; false otherwise. */
  deleteShipment(orgId: string, mark: DeleteMark, rows: readonly OutboxRow[]): Promise<boolean>;
  /** Whether the org has a deleted shipment of this id. */
  wasDeleted(orgId: string, id: string): Promise<boolean>;
  /** Orgs after `afterOrgId` with shipments deleted more than `olderThanMs` ago, in id order. Tenant-less: as above. */
  orgsWithDeleted(olderThanMs: number, page: OrgPage): Promise<string[]>;
  /** Removes the org's shipments deleted more than `olderThanMs` ago, at most `limit`. Returns how many. */
  purgeDeletedShipments(orgId: string, olderThanMs: number, limit: number): Promise<number>;
}
