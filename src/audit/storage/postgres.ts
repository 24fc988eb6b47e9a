/**
 * The activity area on Postgres.
 *
 * @module
 */
import type { Json } from "../../core/json.ts";
import { ConflictError, UnavailableError } from "../../core/errors.ts";
import type { Database, Row } from "../../db/database.ts";
import type { ActivityEvent, AppendOutcome, AuditEntry, AuditStorage, NewEvent } from "../types.ts";
import { type AuditSql, auditSql } from "./sql.ts";

/** Audit entries and events over the activity area's database. */
export class PostgresAuditStorage implements AuditStorage {
  readonly #database: Database;
  readonly #sql: AuditSql;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#sql = auditSql(options.nowSql ?? "now()");
  }

  /** Tenant-less: the dead letters of one batch span orgs. */
  async createEntries(entries: readonly AuditEntry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#database.system(this.#sql.createEntries, [JSON.stringify(entries.map(encodeEntry))]);
  }

  async appendEvent(event: NewEvent): Promise<AppendOutcome> {
    const { orgId, id, kind, actorId, requestId, payload } = event;
    let rows: Row[];
    try {
      const params = [orgId, id, kind, actorId, requestId, JSON.stringify(payload)];
      rows = await this.#database.tenant(orgId, this.#sql.appendEvent, params);
    } catch (error) {
      const raced = error instanceof ConflictError;
      const lost = error instanceof UnavailableError && error.outcome === "unknown";
      if (!raced && !lost) throw error;
      return await this.#readBack(orgId, id, error);
    }
    const [row] = rows;
    if (row !== undefined) return { seq: Number(row.seq), inserted: row.inserted === true };
    return await this.#readBack(
      orgId,
      id,
      new UnavailableError(`Cannot tell whether event ${id} was added`, "unknown"),
    );
  }

  async readEntries(orgId: string, limit: number): Promise<AuditEntry[]> {
    return (await this.#database.tenant(orgId, this.#sql.readEntries, [orgId, limit])).map(entryOf);
  }

  async readEvents(orgId: string, afterSeq: number, limit: number): Promise<ActivityEvent[]> {
    return (await this.#database.tenant(orgId, this.#sql.readEvents, [orgId, afterSeq, limit])).map(eventOf);
  }

  /** The seq the event has; when it has none the failure stands, and repeating the append is safe. */
  async #readBack(orgId: string, id: string, failure: unknown): Promise<AppendOutcome> {
    const [row] = await this.#database.tenant(orgId, this.#sql.readEventSeq, [orgId, id]);
    if (row === undefined) throw failure;
    return { seq: Number(row.seq), inserted: false };
  }
}

function encodeEntry(entry: AuditEntry): Json {
  return {
    org_id: entry.orgId,
    id: entry.id,
    actor_id: entry.actorId,
    action: entry.action,
    subject_type: entry.subjectType,
    subject_id: entry.subjectId,
    request_id: entry.requestId,
    app: entry.app,
    detail: entry.detail,
    created_at: entry.createdAt.toISOString(),
  };
}

function entryOf(row: Row): AuditEntry {
  return {
    id: row.id as string,
    orgId: row.org_id as string,
    actorId: row.actor_id as string,
    action: row.action as string,
    subjectType: row.subject_type as string,
    subjectId: row.subject_id as string,
    requestId: row.request_id as string | null,
    app: row.app as string,
    detail: row.detail as Json,
    createdAt: row.created_at as Date,
  };
}

function eventOf(row: Row): ActivityEvent {
  return {
    id: row.id as string,
    orgId: row.org_id as string,
    seq: Number(row.seq),
    kind: row.kind as string,
    actorId: row.actor_id as string,
    requestId: row.request_id as string | null,
    payload: row.payload as Json,
    createdAt: row.created_at as Date,
  };
}
