/**
 * Shipments on Postgres.
 *
 * @module
 */
import { type Database, encodeOutboxRows, type OutboxRow, type Row } from "../../../../mod.ts";
import type { NotifiedMark, Shipment, ShipmentInsert, ShipmentStatus, ShipmentStorage } from "../types.ts";
import { type ShipmentSql, shipmentSql } from "./sql.ts";

/** Shipments over the core area's database. Every statement runs inside its tenant. */
export class PostgresShipmentStorage implements ShipmentStorage {
  readonly #database: Database;
  readonly #sql: ShipmentSql;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#sql = shipmentSql(options.nowSql ?? "now()");
  }

  async createShipment(orgId: string, shipment: ShipmentInsert, rows: readonly OutboxRow[]): Promise<Shipment | null> {
    const record = {
      org_id: orgId,
      id: shipment.id,
      carrier: shipment.carrier,
      tracking_number: shipment.trackingNumber,
      recipient_name: shipment.recipientName,
      destination: shipment.destination,
      webhook_url: shipment.webhookUrl,
      notification_id: shipment.notificationId,
      created_by: shipment.createdBy,
    };
    const params = [JSON.stringify(record), encodeOutboxRows(rows)];
    const [row] = await this.#database.tenant(orgId, this.#sql.createShipment, params);
    return row === undefined ? null : shipmentOf(row);
  }

  async readShipment(orgId: string, id: string): Promise<Shipment | null> {
    const [row] = await this.#database.tenant(orgId, this.#sql.readShipment, [orgId, id]);
    return row === undefined ? null : shipmentOf(row);
  }

  async markNotified(orgId: string, mark: NotifiedMark, rows: readonly OutboxRow[]): Promise<Shipment | null> {
    const params = [orgId, mark.id, mark.expectedVersion, mark.updatedBy, encodeOutboxRows(rows)];
    const [row] = await this.#database.tenant(orgId, this.#sql.markNotified, params);
    return row === undefined ? null : shipmentOf(row);
  }
}

function shipmentOf(row: Row): Shipment {
  return {
    id: row.id as string,
    version: row.version as number,
    carrier: row.carrier as string,
    trackingNumber: row.tracking_number as string,
    recipientName: row.recipient_name as string,
    destination: row.destination as string,
    webhookUrl: row.webhook_url as string,
    status: row.status as ShipmentStatus,
    notifiedAt: row.notified_at as Date | null,
    notificationId: row.notification_id as string,
    createdAt: row.created_at as Date,
    updatedAt: row.updated_at as Date,
    createdBy: row.created_by as string,
    updatedBy: row.updated_by as string,
  };
}
