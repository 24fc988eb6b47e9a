/**
 * The outbox on Postgres. All of it is tenant-less: the relay serves every org, and each row brings its own.
 *
 * @module
 */
import type { Json } from "../../core/json.ts";
import type { Database, Row } from "../../db/database.ts";
import type { OutboxLag, OutboxRow, OutboxStorage } from "../types.ts";
import { type OutboxSql, outboxSql } from "./sql.ts";

/** The outbox over the core area's database. */
export class PostgresOutboxStorage implements OutboxStorage {
  readonly #database: Database;
  readonly #sql: OutboxSql;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#sql = outboxSql(options.nowSql ?? "now()");
  }

  /** Tenant-less: pending rows of all orgs stand in one line, each with its org. */
  async readPending(
    limit: number,
    excluding: readonly string[] = [],
  ): Promise<(OutboxRow & { readonly ageSeconds: number })[]> {
    const rows = await this.#database.system(this.#sql.readPending, [limit, JSON.stringify(excluding)]);
    return rows.map((row) => ({ ...rowOf(row), ageSeconds: Number(row.age_seconds) }));
  }

  /** Tenant-less: one relayed page spans orgs; every row is matched by its org and id. */
  async markDone(rows: readonly { orgId: string; id: string }[]): Promise<void> {
    if (rows.length === 0) return;
    const refs = rows.map((row) => ({ org_id: row.orgId, id: row.id }));
    await this.#database.system(this.#sql.markDone, [JSON.stringify(refs)]);
  }

  /** Tenant-less: bookkeeping on rows that are handed on, of every org. */
  async purgeDone(olderThanMs: number, limit: number): Promise<number> {
    return (await this.#database.system(this.#sql.purgeDone, [olderThanMs, limit])).length;
  }

  /** Tenant-less: the lag is the relay's, over all orgs. */
  async readLag(): Promise<OutboxLag> {
    const [row] = await this.#database.system(this.#sql.readLag, []);
    return { pending: Number(row?.pending ?? 0), oldestAgeSeconds: Number(row?.oldest_age_seconds ?? 0) };
  }
}

function rowOf(row: Row): OutboxRow {
  return {
    id: row.id as string,
    orgId: row.org_id as string,
    kind: row.kind as string,
    payload: row.payload as { readonly [key: string]: Json },
    actorId: row.actor_id as string,
    requestId: row.request_id as string | null,
    traceparent: row.traceparent as string | null,
    createdAt: row.created_at as Date,
  };
}
