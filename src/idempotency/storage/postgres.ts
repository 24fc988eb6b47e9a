/**
 * Markers on Postgres.
 *
 * @module
 */
import type { Json } from "../../core/json.ts";
import type { Database, Row } from "../../db/database.ts";
import type { IdempotencyStorage, Marker, MarkerBegin } from "../types.ts";
import { type IdempotencySql, idempotencySql } from "./sql.ts";

/** Markers over the core area's database. */
export class PostgresIdempotencyStorage implements IdempotencyStorage {
  readonly #database: Database;
  readonly #sql: IdempotencySql;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#sql = idempotencySql(options.nowSql ?? "now()");
  }

  async begin(orgId: string, begin: MarkerBegin): Promise<Marker | null> {
    const { key, token, digest, recordId, leaseMs } = begin;
    const params = [orgId, key, token, digest, recordId, leaseMs];
    const [row] = await this.#database.tenant(orgId, this.#sql.begin, params);
    return row === undefined ? null : markerOf(row);
  }

  async readMarker(orgId: string, key: string): Promise<Marker | null> {
    const [row] = await this.#database.tenant(orgId, this.#sql.readMarker, [orgId, key]);
    return row === undefined ? null : markerOf(row);
  }

  async finish(orgId: string, key: string, token: string, outcome: Json): Promise<boolean> {
    const params = [orgId, key, token, JSON.stringify(outcome)];
    return (await this.#database.tenant(orgId, this.#sql.finish, params)).length > 0;
  }

  async release(orgId: string, key: string, token: string): Promise<boolean> {
    return (await this.#database.tenant(orgId, this.#sql.release, [orgId, key, token])).length > 0;
  }

  /** Tenant-less: retention is of all orgs. */
  async purgeMarkers(olderThanMs: number, limit: number): Promise<number> {
    return (await this.#database.system(this.#sql.purgeMarkers, [olderThanMs, limit])).length;
  }
}

function markerOf(row: Row): Marker {
  return {
    state: row.state as Marker["state"],
    token: row.attempt_token as string,
    digest: row.request_digest as string,
    recordId: row.record_id as string,
    outcome: row.outcome as Json,
    leaseLeftMs: Number(row.lease_left_ms),
  };
}
