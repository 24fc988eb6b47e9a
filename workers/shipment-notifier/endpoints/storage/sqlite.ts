/**
 * Endpoints on the embedded store.
 *
 * @module
 */
import { invariant, type SqliteDatabase, type SqliteRow, type SqliteSession } from "../../../../mod.ts";
import { probeDelay, RESUME_PULL, RESUME_SPACING_MS } from "../rules.ts";
import type { Endpoint, EndpointPolicy, EndpointStorage } from "../types.ts";

const READ = "select host, failures, down_since, probe_at from shipments_endpoints where org_id = ? and host = ?";

const TAKE_PROBE = `
  update shipments_endpoints set probe_at = ?, updated_at = ?
  where org_id = ? and host = ? and down_since is not null and probe_at <= ?`;

const WRITE = `
  insert into shipments_endpoints (org_id, host, failures, down_since, probe_at, updated_at) values (?, ?, ?, ?, ?, ?)
  on conflict (org_id, host) do update set failures = excluded.failures, down_since = excluded.down_since,
    probe_at = excluded.probe_at, updated_at = excluded.updated_at
  returning host, failures, probe_at`;

const PULLED = `
  select id, resume_at from shipments_shipments
  where org_id = ? and parked_reason is not null and parked_host = ?
  order by resume_at, id limit ?`;

/** Endpoints over the embedded store; `org_id` in each statement is its only tenant fence. */
export class SqliteEndpointStorage implements EndpointStorage {
  readonly #db: SqliteDatabase;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  readEndpoint(orgId: string, host: string): Promise<Endpoint | null> {
    return this.#db.read((session) => {
      const row = session.get(READ, orgId, host);
      return row === undefined ? null : endpointOf(row);
    });
  }

  takeProbe(orgId: string, host: string, holdMs: number): Promise<boolean> {
    return this.#db.write((s) => s.run(TAKE_PROBE, s.nowMs + holdMs, s.nowMs, orgId, host, s.nowMs) > 0);
  }

  failed(orgId: string, host: string, failure: EndpointPolicy & { readonly probe: boolean }): Promise<Endpoint> {
    return this.#db.write((session) => {
      const before = session.get(READ, orgId, host);
      const wasDown = before !== undefined && before.down_since !== null;
      if (before !== undefined && wasDown && !failure.probe) return endpointOf(before);
      const failures = Math.min(Number(before?.failures ?? 0), 1_000_000) + 1;
      const down = wasDown || failures >= failure.downAfter;
      const since = wasDown ? Number(before?.down_since) : down ? session.nowMs : null;
      const probeAt = down ? session.nowMs + probeDelay(failures, failure) : null;
      const row = session.get(WRITE, orgId, host, failures, since, probeAt, session.nowMs);
      invariant(row !== undefined, "a failure was counted but gave no row");
      return endpointOf(row);
    });
  }

  answered(orgId: string, host: string): Promise<void> {
    return this.#db.write((session) => endpointAnswered(session, orgId, host));
  }
}

/** Does what `answered` does within another write's transaction. */
export function endpointAnswered(session: SqliteSession, orgId: string, host: string): void {
  const before = session.get(READ, orgId, host);
  if (before === undefined) return;
  session.run("delete from shipments_endpoints where org_id = ? and host = ?", orgId, host);
  if (before.down_since === null) return;
  for (const [place, row] of session.all(PULLED, orgId, host, RESUME_PULL).entries()) {
    session.run(
      "update shipments_shipments set resume_at = min(resume_at, ?) where org_id = ? and id = ?",
      session.nowMs + place * RESUME_SPACING_MS,
      orgId,
      row.id ?? null,
    );
  }
}

function endpointOf(row: SqliteRow): Endpoint {
  return {
    host: String(row.host),
    failures: Number(row.failures),
    probeAt: row.probe_at === null || row.probe_at === undefined ? null : new Date(Number(row.probe_at)),
  };
}
