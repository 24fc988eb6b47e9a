/**
 * Sample records on the embedded store, a file or `:memory:`.
 *
 * @module
 */
import { insertOutboxRows, type OutboxRow, type SqliteDatabase, type SqliteRow } from "laneway";
import type { DoneMark, SampleRecord, SampleRecordInsert, SampleRecordStatus, SampleRecordStorage } from "../types.ts";

const COLUMNS = "id, version, reference, status, effect_id, done_at, created_at, updated_at, created_by, updated_by";

const CREATE = `
  insert into sample_records_sample_records (org_id, ${COLUMNS})
  values (?, ?, 1, ?, 'open', ?, null, ?, ?, ?, ?)
  on conflict (org_id, id) do nothing
  returning ${COLUMNS}`;

const READ = `select ${COLUMNS} from sample_records_sample_records where org_id = ? and id = ?`;

const MARK_DONE = `
  update sample_records_sample_records
  set status = 'done', done_at = ?, version = version + 1, updated_at = ?, updated_by = ?
  where org_id = ? and id = ? and version = ? and status = 'open'
  returning ${COLUMNS}`;

/** Over the embedded store; `org_id` in each statement is its only tenant fence. */
export class SqliteSampleRecordStorage implements SampleRecordStorage {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  create(orgId: string, insert: SampleRecordInsert, rows: readonly OutboxRow[]): Promise<SampleRecord | null> {
    const { id, reference, effectId, createdBy } = insert;
    return this.#db.write((session) => {
      const { nowMs } = session;
      const row = session.get(CREATE, orgId, id, reference, effectId, nowMs, nowMs, createdBy, createdBy);
      if (row === undefined) return null;
      insertOutboxRows(session, rows);
      return sampleRecordOf(row);
    });
  }

  read(orgId: string, id: string): Promise<SampleRecord | null> {
    return this.#db.read((session) => {
      const row = session.get(READ, orgId, id);
      return row === undefined ? null : sampleRecordOf(row);
    });
  }

  markDone(orgId: string, mark: DoneMark, rows: readonly OutboxRow[]): Promise<SampleRecord | null> {
    return this.#db.write((session) => {
      const { nowMs } = session;
      const row = session.get(MARK_DONE, nowMs, nowMs, mark.updatedBy, orgId, mark.id, mark.expectedVersion);
      if (row === undefined) return null;
      insertOutboxRows(session, rows);
      return sampleRecordOf(row);
    });
  }
}

function sampleRecordOf(row: SqliteRow): SampleRecord {
  return {
    id: String(row.id),
    version: Number(row.version),
    reference: String(row.reference),
    status: row.status as SampleRecordStatus,
    effectId: String(row.effect_id),
    doneAt: row.done_at === null ? null : new Date(Number(row.done_at)),
    createdAt: new Date(Number(row.created_at)),
    updatedAt: new Date(Number(row.updated_at)),
    createdBy: String(row.created_by),
    updatedBy: String(row.updated_by),
  };
}
