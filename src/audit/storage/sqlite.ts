/**
 * The activity area on the embedded store.
 *
 * @module
 */
import type { Json } from "../../core/json.ts";
import type { SqliteDatabase, SqliteRow, SqliteSession } from "../../db/sqlite.ts";
import type { ActivityEvent, AppendOutcome, AuditEntry, AuditStorage, NewEvent } from "../types.ts";

const CREATE_ENTRY = `
  insert into activity_audit_entries
    (org_id, id, actor_id, action, subject_type, subject_id, request_id, app, detail, created_at)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (org_id, id) do nothing`;

const BUMP_CURSOR = `
  insert into activity_event_cursors (org_id, last_seq) values (?, 1)
  on conflict (org_id) do update set last_seq = last_seq + 1
  returning last_seq`;

const APPEND_EVENT = `
  insert into activity_events (org_id, id, seq, kind, actor_id, request_id, payload, created_at)
  values (?, ?, ?, ?, ?, ?, ?, ?)`;

/** Audit entries and events over the embedded store; `org_id` in each statement is its only tenant fence. */
export class SqliteAuditStorage implements AuditStorage {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  async createEntries(entries: readonly AuditEntry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#db.write((session) => {
      for (const entry of entries) createEntry(session, entry);
    });
  }

  /** One transaction, so the look and the bump cannot be parted: no violation is needed to keep the line gapless. */
  appendEvent(event: NewEvent): Promise<AppendOutcome> {
    return this.#db.write((session) => {
      const { orgId, id, kind, actorId, requestId, payload } = event;
      const existing = session.get("select seq from activity_events where org_id = ? and id = ?", orgId, id);
      if (existing !== undefined) return { seq: Number(existing.seq), inserted: false };
      const seq = Number(session.get(BUMP_CURSOR, orgId)?.last_seq);
      session.run(APPEND_EVENT, orgId, id, seq, kind, actorId, requestId, JSON.stringify(payload), session.nowMs);
      return { seq, inserted: true };
    });
  }

  readEntries(orgId: string, limit: number): Promise<AuditEntry[]> {
    return this.#db.read((session) =>
      session.all(
        "select * from activity_audit_entries where org_id = ? order by created_at desc, id desc limit ?",
        orgId,
        limit,
      ).map(entryOf)
    );
  }

  readEvents(orgId: string, afterSeq: number, limit: number): Promise<ActivityEvent[]> {
    return this.#db.read((session) =>
      session.all(
        "select * from activity_events where org_id = ? and seq > ? order by seq limit ?",
        orgId,
        afterSeq,
        limit,
      ).map(eventOf)
    );
  }
}

function createEntry(session: SqliteSession, entry: AuditEntry): void {
  session.run(
    CREATE_ENTRY,
    entry.orgId,
    entry.id,
    entry.actorId,
    entry.action,
    entry.subjectType,
    entry.subjectId,
    entry.requestId,
    entry.app,
    JSON.stringify(entry.detail),
    entry.createdAt.getTime(),
  );
}

function entryOf(row: SqliteRow): AuditEntry {
  return {
    id: String(row.id),
    orgId: String(row.org_id),
    actorId: String(row.actor_id),
    action: String(row.action),
    subjectType: String(row.subject_type),
    subjectId: String(row.subject_id),
    requestId: textOrNull(row.request_id),
    app: String(row.app),
    detail: JSON.parse(String(row.detail)) as Json,
    createdAt: new Date(Number(row.created_at)),
  };
}

function eventOf(row: SqliteRow): ActivityEvent {
  return {
    id: String(row.id),
    orgId: String(row.org_id),
    seq: Number(row.seq),
    kind: String(row.kind),
    actorId: String(row.actor_id),
    requestId: textOrNull(row.request_id),
    payload: JSON.parse(String(row.payload)) as Json,
    createdAt: new Date(Number(row.created_at)),
  };
}

function textOrNull(value: string | number | null | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}
