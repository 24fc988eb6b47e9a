/**
 * Shipments on the embedded store.
 *
 * @module
 */
import {
  EMPTY_UUID,
  insertOutboxRows,
  type OutboxRow,
  type SqliteDatabase,
  type SqliteParam,
  type SqliteRow,
  type SqliteSession,
} from "../../../../mod.ts";
import { endpointAnswered } from "../../endpoints/storage/sqlite.ts";
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

const INSERTED = `id, version, carrier, tracking_number, recipient_name, destination, webhook_url, status, notified_at,
  notification_id, created_at, updated_at, created_by, updated_by`;
const COLUMNS = `${INSERTED}, item_id, parked_reason, resume_at, park_cursor`;
const NOT_PARKED = "parked_reason = null, resume_at = null, parked_host = null";
const MOVED = "version = version + 1, updated_at = ?, updated_by = ?";
const AS_EXPECTED = "org_id = ? and id = ? and version = ? and deleted_at is null";

const CREATE_SHIPMENT = `
  insert into shipments_shipments (org_id, ${INSERTED})
  values (?, ?, 1, ?, ?, ?, ?, ?, 'created', null, ?, ?, ?, ?, ?)
  on conflict (org_id, id) do nothing
  returning ${COLUMNS}`;

const READ_SHIPMENT = `select ${COLUMNS} from shipments_shipments where org_id = ? and id = ? and deleted_at is null`;

const MARK_NOTIFIED = `
  update shipments_shipments set status = 'notified', notified_at = ?, ${NOT_PARKED}, ${MOVED}
  where ${AS_EXPECTED} and status = 'created'
  returning ${COLUMNS}`;

const PARK = `
  update shipments_shipments set parked_reason = ?, resume_at = ?, parked_host = ?,
    park_cursor = coalesce(?, park_cursor), ${MOVED}
  where ${AS_EXPECTED} and status = 'created' and parked_reason is null
  returning ${COLUMNS}`;

const READ_DUE_PARKED = `
  select ${COLUMNS}, parked_host, (
    select e.probe_at - ? from shipments_endpoints e
    where e.org_id = s.org_id and e.host = s.parked_host and e.down_since is not null
  ) as probe_in_ms
  from shipments_shipments s
  where org_id = ? and parked_reason is not null and resume_at <= ?
  order by resume_at, id limit ?`;

const DUE = "org_id = ? and id = ? and version = ? and parked_reason is not null and resume_at <= ?";
const POSTPONE = `update shipments_shipments set resume_at = ? where ${DUE}`;
const RESUME = `update shipments_shipments set ${NOT_PARKED}, item_id = ?, ${MOVED} where ${DUE}`;

const ORGS_WITH_PARKED = `
  select distinct org_id from shipments_shipments
  where org_id > ? and parked_reason is not null and resume_at <= ? order by org_id limit ?`;

const DELETE = `update shipments_shipments set deleted_at = ?, ${NOT_PARKED}, ${MOVED} where ${AS_EXPECTED}`;

const ORGS_WITH_DELETED = `
  select distinct org_id from shipments_shipments
  where org_id > ? and deleted_at is not null and deleted_at < ? order by org_id limit ?`;

const PURGE_DELETED = `
  delete from shipments_shipments where org_id = ? and id in (
    select id from shipments_shipments where org_id = ? and deleted_at is not null and deleted_at < ?
    order by deleted_at, id limit ?)`;

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
      const row = session.get(MARK_NOTIFIED, session.nowMs, ...expected(session, orgId, mark));
      if (row === undefined) return null;
      endpointAnswered(session, orgId, mark.host);
      insertOutboxRows(session, rows);
      return shipmentOf(row);
    });
  }

  park(orgId: string, mark: ParkMark, rows: readonly OutboxRow[]): Promise<Shipment | null> {
    return this.#db.write((session) => {
      const { reason, resumeAt, host, cursor } = mark;
      const about = [reason, resumeAt.getTime(), host, cursor === undefined ? null : JSON.stringify(cursor)];
      const row = session.get(PARK, ...about, ...expected(session, orgId, mark));
      if (row === undefined) return null;
      insertOutboxRows(session, rows);
      return shipmentOf(row);
    });
  }

  readDueParked(orgId: string, limit: number): Promise<DueParked[]> {
    return this.#db.read((s) =>
      s.all(READ_DUE_PARKED, s.nowMs, orgId, s.nowMs, limit).map((row) => ({
        shipment: shipmentOf(row),
        host: row.parked_host === null ? null : String(row.parked_host),
        probeInMs: row.probe_in_ms === null ? null : Number(row.probe_in_ms),
      }))
    );
  }

  resumeParked(orgId: string, moves: readonly ResumeMove[], rows: readonly OutboxRow[]): Promise<string[]> {
    return this.#db.write((session) => {
      const { nowMs } = session;
      const resumed = new Set<unknown>();
      for (const { id, expectedVersion, itemId, postponeMs } of moves) {
        const due = [orgId, id, expectedVersion, nowMs];
        if (itemId === null) session.run(POSTPONE, nowMs + postponeMs, ...due);
        else if (session.run(RESUME, itemId, nowMs, EMPTY_UUID, ...due) > 0) resumed.add(id);
      }
      insertOutboxRows(session, rows.filter(({ payload }) => resumed.has(payload.id ?? payload.shipmentId)));
      return [...resumed].map(String);
    });
  }

  /** Tenant-less: the sweep asks which orgs to visit. */
  orgsWithParked(afterOrgId: string | null, limit: number): Promise<string[]> {
    return this.#db.read((s) => s.all(ORGS_WITH_PARKED, afterOrgId ?? "", s.nowMs, limit).map(orgOf));
  }

  /** Tenant-less: the gauge is of all orgs. */
  countParked(): Promise<number> {
    return this.#db.read((s) =>
      Number(s.get("select count(*) as n from shipments_shipments where parked_reason is not null")?.n)
    );
  }

  deleteShipment(orgId: string, mark: DeleteMark, rows: readonly OutboxRow[]): Promise<boolean> {
    return this.#db.write((session) => {
      if (session.run(DELETE, session.nowMs, ...expected(session, orgId, mark)) === 0) return false;
      insertOutboxRows(session, rows);
      return true;
    });
  }

  wasDeleted(orgId: string, id: string): Promise<boolean> {
    const sql = "select id from shipments_shipments where org_id = ? and id = ? and deleted_at is not null";
    return this.#db.read((session) => session.get(sql, orgId, id) !== undefined);
  }

  /** Tenant-less: the sweep asks which orgs to visit. */
  orgsWithDeleted(olderThanMs: number, { afterOrgId, limit }: OrgPage): Promise<string[]> {
    return this.#db.read((s) => s.all(ORGS_WITH_DELETED, afterOrgId ?? "", s.nowMs - olderThanMs, limit).map(orgOf));
  }

  purgeDeletedShipments(orgId: string, olderThanMs: number, limit: number): Promise<number> {
    return this.#db.write((s) => s.run(PURGE_DELETED, orgId, orgId, s.nowMs - olderThanMs, limit));
  }
}

/** The parameters of `MOVED` and `AS_EXPECTED`. */
function expected(session: SqliteSession, orgId: string, mark: DeleteMark): SqliteParam[] {
  return [session.nowMs, mark.updatedBy, orgId, mark.id, mark.expectedVersion];
}

function orgOf(row: SqliteRow): string {
  return String(row.org_id);
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
    itemId: String(row.item_id ?? row.notification_id),
    parking: row.parked_reason === null ? null : {
      reason: String(row.parked_reason),
      resumeAt: new Date(Number(row.resume_at)),
      cursor: row.park_cursor === null ? null : JSON.parse(String(row.park_cursor)),
    },
    createdAt: new Date(Number(row.created_at)),
    updatedAt: new Date(Number(row.updated_at)),
    createdBy: String(row.created_by),
    updatedBy: String(row.updated_by),
  };
}
