/**
 * Endpoints on Postgres.
 *
 * @module
 */
import { type Database, invariant, type Row } from "../../../../mod.ts";
import type { Endpoint, EndpointPolicy, EndpointStorage } from "../types.ts";
import { type EndpointSql, endpointSql } from "./sql.ts";

/** Endpoints over the core area's database. Every statement runs inside its tenant. */
export class PostgresEndpointStorage implements EndpointStorage {
  readonly #database: Database;
  readonly #sql: EndpointSql;

  /** @param options.nowSql The SQL expression of database time. Default `now()`. */
  constructor(database: Database, options: { nowSql?: string } = {}) {
    this.#database = database;
    this.#sql = endpointSql(options.nowSql ?? "now()");
  }

  async readEndpoint(orgId: string, host: string): Promise<Endpoint | null> {
    const [row] = await this.#database.tenant(orgId, this.#sql.readEndpoint, [orgId, host]);
    return row === undefined ? null : endpointOf(row);
  }

  async takeProbe(orgId: string, host: string, holdMs: number): Promise<boolean> {
    return (await this.#database.tenant(orgId, this.#sql.takeProbe, [orgId, host, holdMs])).length > 0;
  }

  async failed(orgId: string, host: string, failure: EndpointPolicy & { readonly probe: boolean }): Promise<Endpoint> {
    const { downAfter, probeMs, probeCapMs, probe } = failure;
    const params = [orgId, host, downAfter, probeMs, probeCapMs, probe];
    const [row] = await this.#database.tenant(orgId, this.#sql.failed, params);
    invariant(row !== undefined, "a failure was counted but gave no row");
    return endpointOf(row);
  }

  async answered(orgId: string, host: string): Promise<void> {
    await this.#database.tenant(orgId, this.#sql.answered, [orgId, host]);
  }
}

function endpointOf(row: Row): Endpoint {
  return { host: row.host as string, failures: row.failures as number, probeAt: row.probe_at as Date | null };
}
