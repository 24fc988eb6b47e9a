/**
 * The shipment: the record that a notification is about. An example of a record of one's own: versioned, and written
 * together with the outbox rows that tell of the write.
 *
 * @module
 */
import type { OpContext, OutboxRow } from "../../../mod.ts";

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
  /** The id of its NOTIFY_SHIPMENT item, and so the `webhook-id` that its receiver sees. */
  readonly notificationId: string;
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
   * Marks a shipment notified, by compare-and-set on its version, and announces it in the same write. A lost answer is
   * read back: a shipment marked by this write is success.
   *
   * @throws {ConflictError} The shipment has another version by now, or is marked already: read it again.
   */
  markNotified(ctx: OpContext, shipment: Shipment, expectedVersion: number): Promise<Shipment>;
}

/** A shipment to be inserted; storage gives it version 1, its status and its times. */
export type ShipmentInsert = Omit<
  Shipment,
  "version" | "status" | "notifiedAt" | "createdAt" | "updatedAt" | "updatedBy"
>;

/** A mark to be made. */
export interface NotifiedMark {
  readonly id: string;
  readonly expectedVersion: number;
  /** Who signs it. */
  readonly updatedBy: string;
}

/** Storage of shipments. Two implementations, one contract (`contract.ts`). Storage trusts its caller. */
export interface ShipmentStorage {
  /**
   * Inserts a shipment with its outbox rows, all or nothing; null, and nothing written, when the org has one of this
   * id. Its times are database time.
   */
  createShipment(orgId: string, shipment: ShipmentInsert, rows: readonly OutboxRow[]): Promise<Shipment | null>;
  /** Null when the org has none of this id. */
  readShipment(orgId: string, id: string): Promise<Shipment | null>;
  /**
   * Marks a shipment notified with its outbox rows, all or nothing, when it has the expected version and is not yet
   * marked; null, and nothing written, otherwise. `notifiedAt` and `updatedAt` are database time.
   */
  markNotified(orgId: string, mark: NotifiedMark, rows: readonly OutboxRow[]): Promise<Shipment | null>;
}
