/**
 * Markers on the embedded store.
 *
 * @module
 */
import type { Json } from "../../core/json.ts";
import type { SqliteDatabase, SqliteRow, SqliteSession } from "../../db/sqlite.ts";
import type { IdempotencyStorage, Marker, MarkerBegin } from "../types.ts";

const READ = "select * from core_idempotency_markers where org_id = ? and key = ?";

const BEGIN = `
  insert into core_idempotency_markers as m (org_id, key, state, attempt_token, request_digest, record_id,
    lease_expires_at, created_at, updated_at)
  values (?, ?, 'pending', ?, ?, ?, ?, ?, ?)
  on conflict (org_id, key) do update set state = 'pending', attempt_token = excluded.attempt_token,
    lease_expires_at = excluded.lease_expires_at, updated_at = excluded.updated_at
  where m.request_digest = excluded.request_digest and (
    m.state = 'released'
    or (m.state = 'pending' and (m.lease_expires_at <= excluded.updated_at or m.attempt_token = excluded.attempt_token))
  )
  returning *`;

const FINISH = `
  update core_idempotency_markers set outcome = iif(state = 'finished', outcome, ?), state = 'finished', updated_at = ?
  where org_id = ? and key = ? and attempt_token = ? and state in ('pending', 'finished')`;

const RELEASE = `
  update core_idempotency_markers set state = 'released', updated_at = ?
  where org_id = ? and key = ? and attempt_token = ? and state in ('pending', 'released')`;

const PURGE = `
  delete from core_idempotency_markers where rowid in (
    select rowid from core_idempotency_markers where updated_at < ? and lease_expires_at <= ?
    order by updated_at limit ?)`;

/** Markers over an open SQLite store. */
export class SqliteIdempotencyStorage implements IdempotencyStorage {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  begin(orgId: string, begin: MarkerBegin): Promise<Marker | null> {
    const { key, token, digest, recordId, leaseMs } = begin;
    return this.#db.write((s) => {
      const row = s.get(BEGIN, orgId, key, token, digest, recordId, s.nowMs + leaseMs, s.nowMs, s.nowMs);
      return row === undefined ? null : markerOf(s, row);
    });
  }

  readMarker(orgId: string, key: string): Promise<Marker | null> {
    return this.#db.read((s) => {
      const row = s.get(READ, orgId, key);
      return row === undefined ? null : markerOf(s, row);
    });
  }

  finish(orgId: string, key: string, token: string, outcome: Json): Promise<boolean> {
    return this.#db.write((s) => s.run(FINISH, JSON.stringify(outcome), s.nowMs, orgId, key, token) > 0);
  }

  release(orgId: string, key: string, token: string): Promise<boolean> {
    return this.#db.write((s) => s.run(RELEASE, s.nowMs, orgId, key, token) > 0);
  }

  /** Tenant-less: retention is of all orgs. */
  purgeMarkers(olderThanMs: number, limit: number): Promise<number> {
    return this.#db.write((s) => s.run(PURGE, s.nowMs - olderThanMs, s.nowMs, limit));
  }
}

function markerOf(s: SqliteSession, row: SqliteRow): Marker {
  return {
    state: row.state as Marker["state"],
    token: String(row.attempt_token),
    digest: String(row.request_digest),
    recordId: String(row.record_id),
    outcome: row.outcome === null || row.outcome === undefined ? null : JSON.parse(String(row.outcome)),
    leaseLeftMs: Math.max(Number(row.lease_expires_at) - s.nowMs, 0),
  };
}
