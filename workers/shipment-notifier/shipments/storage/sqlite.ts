/**
 * Shipments on the embedded store.
 *
 * @module
 */
import { insertOutboxRows, type OutboxRow, type SqliteDatabase, type SqliteRow } from "../../../../mod.ts";
import type { NotifiedMark, Shipment, ShipmentInsert, ShipmentStatus, ShipmentStorage } from "../types.ts";

const COLUMNS = `id, version, carrier, tracking_number, recipient_name, destination, webhook_url, status, notified_at,
  notification_id, created_at, updated_at, created_by, updated_by`;

const CREATE_SHIPMENT = `
  insert into shipments_shipments (org_id, ${COLUMNS})
  values (?, ?, 1, ?, ?, ?, ?, ?, 'created', null, ?, ?, ?, ?, ?)
  on conflict (org_id, id) do nothing
  returning ${COLUMNS}`;

const READ_SHIPMENT = `select ${COLUMNS} from shipments_shipments where org_id = ? and id = ?`;

const MARK_NOTIFIED = `
  update shipments_shipments
  set status = 'notified', notified_at = ?, version = version + 1, updated_at = ?, updated_by = ?
  where org_id = ? and id = ? and version = ? and status = 'created'
  returning ${COLUMNS}`;

/** Shipments over the embedded store; `org_id` in each statement is its only tenant fence. */
export class SqliteShipmentStorage implements ShipmentStorage {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  createShipment(orgId: string, shipment: ShipmentInsert, rows: readonly OutboxRow[]): Promise<Shipment | null> {
    const { id, carrier, trackingNumber, recipientName, destination, webhookUrl } = shipment;
    const { notificationId, createdBy } = shipment;
    return this.#db.write((session) => {
      const about = [id, carrier, trackingNumber, recipientName, destination, webhookUrl];
      const signed = [notificationId, session.nowMs, session.nowMs, createdBy, createdBy];
      const row = session.get(CREATE_SHIPMENT, orgId, ...about, ...signed);
      if (row === undefined) return null;
      insertOutboxRows(session, rows);
      return shipmentOf(row);
    });
  }

  readShipment(orgId: string, id: string): Promise<Shipment | null> {
    return this.#db.read((session) => {
      const row = session.get(READ_SHIPMENT, orgId, id);
      return row === undefined ? null : shipmentOf(row);
    });
  }

  markNotified(orgId: string, mark: NotifiedMark, rows: readonly OutboxRow[]): Promise<Shipment | null> {
    return this.#db.write((session) => {
      const { id, expectedVersion, updatedBy } = mark;
      const row = session.get(MARK_NOTIFIED, session.nowMs, session.nowMs, updatedBy, orgId, id, expectedVersion);
      if (row === undefined) return null;
      insertOutboxRows(session, rows);
      return shipmentOf(row);
    });
  }
}

function shipmentOf(row: SqliteRow): Shipment {
  return {
    id: String(row.id),
    version: Number(row.version),
    carrier: String(row.carrier),
    trackingNumber: String(row.tracking_number),
    recipientName: String(row.recipient_name),
    destination: String(row.destination),
    webhookUrl: String(row.webhook_url),
    status: row.status as ShipmentStatus,
    notifiedAt: row.notified_at === null ? null : new Date(Number(row.notified_at)),
    notificationId: String(row.notification_id),
    createdAt: new Date(Number(row.created_at)),
    updatedAt: new Date(Number(row.updated_at)),
    createdBy: String(row.created_by),
    updatedBy: String(row.updated_by),
  };
}
