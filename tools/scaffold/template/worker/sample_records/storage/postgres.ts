/**
 * Sample records on Postgres.
 *
 * @module
 */
import { type Database, encodeOutboxRows, outboxInsertCte, type OutboxRow, type Row, TENANT_SQL } from "laneway";
import type { DoneMark, SampleRecord, SampleRecordInsert, SampleRecordStatus, SampleRecordStorage } from "../types.ts";

const COLUMNS = "id, version, reference, status, effect_id, done_at, created_at, updated_at, created_by, updated_by";

/** Over the core area's database. Every statement runs inside its tenant. */
export class PostgresSampleRecordStorage implements SampleRecordStorage {
  readonly #database: Database;
  readonly #nowSql: string;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#nowSql = options.nowSql ?? "now()";
  }

  async create(orgId: string, insert: SampleRecordInsert, rows: readonly OutboxRow[]): Promise<SampleRecord | null> {
    const now = this.#nowSql;
    // One statement: without its outbox rows it would never be worked on, and rows without it would be of nothing.
    const sql = `
      with written as (
        insert into sample_records.sample_records (org_id, ${COLUMNS})
        select $1::uuid, $2::uuid, 1, $3, 'open', $4::uuid, null, ${now}, ${now}, $5::uuid, $5::uuid
        where $1::uuid = ${TENANT_SQL}
        on conflict (org_id, id) do nothing
        returning ${COLUMNS}
      ), ${outboxInsertCte(6, { onlyIf: "exists (select from written)", nowSql: now })}
      select * from written`;
    const { id, reference, effectId, createdBy } = insert;
    const params = [orgId, id, reference, effectId, createdBy, encodeOutboxRows(rows)];
    const [row] = await this.#database.tenant(orgId, sql, params);
    return row === undefined ? null : sampleRecordOf(row);
  }

  async read(orgId: string, id: string): Promise<SampleRecord | null> {
    const sql = `
      select ${COLUMNS} from sample_records.sample_records
      where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid`;
    const [row] = await this.#database.tenant(orgId, sql, [orgId, id]);
    return row === undefined ? null : sampleRecordOf(row);
  }

  async markDone(orgId: string, mark: DoneMark, rows: readonly OutboxRow[]): Promise<SampleRecord | null> {
    const now = this.#nowSql;
    // The compare-and-set: of two writers that read the same version one wins, and only its event is written.
    const sql = `
      with written as (
        update sample_records.sample_records
        set status = 'done', done_at = ${now}, version = version + 1, updated_at = ${now}, updated_by = $4::uuid
        where org_id = $1::uuid and org_id = ${TENANT_SQL} and id = $2::uuid and version = $3::int and status = 'open'
        returning ${COLUMNS}
      ), ${outboxInsertCte(5, { onlyIf: "exists (select from written)", nowSql: now })}
      select * from written`;
    const params = [orgId, mark.id, mark.expectedVersion, mark.updatedBy, encodeOutboxRows(rows)];
    const [row] = await this.#database.tenant(orgId, sql, params);
    return row === undefined ? null : sampleRecordOf(row);
  }
}

function sampleRecordOf(row: Row): SampleRecord {
  return {
    id: row.id as string,
    version: row.version as number,
    reference: row.reference as string,
    status: row.status as SampleRecordStatus,
    effectId: row.effect_id as string,
    doneAt: row.done_at as Date | null,
    createdAt: row.created_at as Date,
    updatedAt: row.updated_at as Date,
    createdBy: row.created_by as string,
    updatedBy: row.updated_by as string,
  };
}
