/**
 * The outbox on the embedded store.
 *
 * @module
 */
import type { Json } from "../../core/json.ts";
import type { SqliteDatabase, SqliteRow } from "../../db/sqlite.ts";
import { LAG_LIMIT } from "./sql.ts";
import type { OutboxLag, OutboxRow, OutboxStorage } from "../types.ts";

const READ_PENDING = `
  select * from core_outbox
  where done_at is null and id not in (select value from json_each(?))
  order by created_at, id
  limit ?`;

const READ_LAG = `
  select (select count(*) from (select 1 from core_outbox where done_at is null limit ?)) as pending,
    (select min(created_at) from core_outbox where done_at is null) as oldest`;

const PURGE_DONE = `
  delete from core_outbox
  where rowid in (select rowid from core_outbox where done_at is not null and done_at < ? order by done_at limit ?)`;

/** The outbox over the embedded store. */
export class SqliteOutboxStorage implements OutboxStorage {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  readPending(
    limit: number,
    excluding: readonly string[] = [],
  ): Promise<(OutboxRow & { readonly ageSeconds: number })[]> {
    return this.#db.read((session) =>
      session.all(READ_PENDING, JSON.stringify(excluding), limit).map((row) => ({
        ...rowOf(row),
        ageSeconds: Math.max(session.nowMs - Number(row.created_at), 0) / 1_000,
      }))
    );
  }

  async markDone(rows: readonly { orgId: string; id: string }[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#db.write((session) => {
      for (const { orgId, id } of rows) {
        session.run(
          "update core_outbox set done_at = ? where org_id = ? and id = ? and done_at is null",
          session.nowMs,
          orgId,
          id,
        );
      }
    });
  }

  purgeDone(olderThanMs: number, limit: number): Promise<number> {
    return this.#db.write((session) => session.run(PURGE_DONE, session.nowMs - olderThanMs, limit));
  }

  readLag(): Promise<OutboxLag> {
    return this.#db.read((session) => {
      const row = session.get(READ_LAG, LAG_LIMIT);
      const oldest = row?.oldest ?? null;
      const ageMs = oldest === null ? 0 : Math.max(session.nowMs - Number(oldest), 0);
      return { pending: Number(row?.pending ?? 0), oldestAgeSeconds: ageMs / 1_000 };
    });
  }
}

function rowOf(row: SqliteRow): OutboxRow {
  return {
    id: String(row.id),
    orgId: String(row.org_id),
    kind: String(row.kind),
    payload: JSON.parse(String(row.payload)) as { readonly [key: string]: Json },
    actorId: String(row.actor_id),
    requestId: row.request_id === null ? null : String(row.request_id),
    traceparent: row.traceparent === null ? null : String(row.traceparent),
    createdAt: new Date(Number(row.created_at)),
  };
}
