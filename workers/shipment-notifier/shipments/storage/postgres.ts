/**
 * Shipments on Postgres.
 *
 * @module
 */
import {
  type Database,
  EMPTY_UUID,
  encodeOutboxRows,
  type Json,
  type OutboxRow,
  type Param,
  type Row,
} from "../../../../mod.ts";
import type {
  DeleteMark,
  DueParked,
  NotifiedMark,
  OrgPage,
  ParkMark,
  ResumeMove,
  Shipment,
  ShipmentInsert,
  ShipmentStatus,
  ShipmentStorage,
} from "../types.ts";
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
    const params = [orgId, mark.id, mark.expectedVersion, mark.updatedBy, encodeOutboxRows(rows), mark.host];
    const [row] = await this.#database.tenant(orgId, this.#sql.markNotified, params);
    return row === undefined ? null : shipmentOf(row);
  }

  async park(orgId: string, mark: ParkMark, rows: readonly OutboxRow[]): Promise<Shipment | null> {
    const { id, expectedVersion, updatedBy, reason, resumeAt, host, cursor } = mark;
    const parked: Param[] = [
      reason,
      resumeAt.toISOString(),
      host,
      cursor === undefined ? null : JSON.stringify(cursor),
    ];
    const params = [orgId, id, expectedVersion, updatedBy, encodeOutboxRows(rows), ...parked];
    const [row] = await this.#database.tenant(orgId, this.#sql.park, params);
    return row === undefined ? null : shipmentOf(row);
  }

  async readDueParked(orgId: string, limit: number): Promise<DueParked[]> {
    const rows = await this.#database.tenant(orgId, this.#sql.readDueParked, [orgId, limit]);
    return rows.map((row) => ({
      shipment: shipmentOf(row),
      host: row.parked_host as string | null,
      probeInMs: row.probe_in_ms as number | null,
    }));
  }

  async resumeParked(orgId: string, moves: readonly ResumeMove[], rows: readonly OutboxRow[]): Promise<string[]> {
    const batch = moves.map(({ id, expectedVersion, itemId, postponeMs }) => ({
      id,
      version: expectedVersion,
      item_id: itemId,
      postpone_ms: postponeMs,
    }));
    const params = [orgId, JSON.stringify(batch), encodeOutboxRows(rows)];
    return (await this.#database.tenant(orgId, this.#sql.resumeParked, params)).map((row) => row.id as string);
  }

  /** Tenant-less: the sweep asks which orgs to visit. */
  async orgsWithParked(afterOrgId: string | null, limit: number): Promise<string[]> {
    const rows = await this.#database.system(this.#sql.orgsWithParked, [afterOrgId ?? EMPTY_UUID, limit]);
    return rows.map((row) => row.org_id as string);
  }

  /** Tenant-less: the gauge is of all orgs. */
  async countParked(): Promise<number> {
    const [row] = await this.#database.system(this.#sql.countParked, []);
    return Number(row?.parked ?? 0);
  }

  async deleteShipment(orgId: string, mark: DeleteMark, rows: readonly OutboxRow[]): Promise<boolean> {
    const params = [orgId, mark.id, mark.expectedVersion, mark.updatedBy, encodeOutboxRows(rows)];
    return (await this.#database.tenant(orgId, this.#sql.deleteShipment, params)).length > 0;
  }

  async wasDeleted(orgId: string, id: string): Promise<boolean> {
    return (await this.#database.tenant(orgId, this.#sql.wasDeleted, [orgId, id])).length > 0;
  }

  /** Tenant-less: the sweep asks which orgs to visit. */
  async orgsWithDeleted(olderThanMs: number, { afterOrgId, limit }: OrgPage): Promise<string[]> {
    const params = [afterOrgId ?? EMPTY_UUID, limit, olderThanMs];
    return (await this.#database.system(this.#sql.orgsWithDeleted, params)).map((row) => row.org_id as string);
  }

  async purgeDeletedShipments(orgId: string, olderThanMs: number, limit: number): Promise<number> {
    return (await this.#database.tenant(orgId, this.#sql.purgeDeletedShipments, [orgId, olderThanMs, limit])).length;
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
    itemId: (row.item_id ?? row.notification_id) as string,
    parking: row.parked_reason === null ? null : {
      reason: row.parked_reason as string,
      resumeAt: row.resume_at as Date,
      cursor: row.park_cursor as Json,
    },
    createdAt: row.created_at as Date,
    updatedAt: row.updated_at as Date,
    createdBy: row.created_by as string,
    updatedBy: row.updated_by as string,
  };
}
