/**
 * Making and writing outbox rows: for the storages whose core writes they belong to.
 *
 * @module
 */
import type { OpContext } from "../core/context.ts";
import { ValidationError } from "../core/errors.ts";
import { newId } from "../core/ids.ts";
import { encodeJson, type Json } from "../core/json.ts";
import type { SqliteSession } from "../db/sqlite.ts";
import { TENANT_SQL } from "../db/tenant_sql.ts";
import { checkKind, isWork, MAX_OUTBOX_BYTES } from "./rules.ts";
import type { OutboxRow } from "./types.ts";

/**
 * Makes a row: a fresh id, and the org, actor, request and trace of the context. An entity change needs its entity's id
 * as `payload.id`. `createdAt` is this host's time until the row is written, and database time from then on.
 *
 * @param options.maxBytes The largest encoded payload. Default `MAX_OUTBOX_BYTES`.
 * @throws {ValidationError} The kind or the payload, named by path, before anything is written.
 */
export function newOutboxRow(
  ctx: OpContext,
  kind: string,
  payload: { readonly [key: string]: Json },
  options: { maxBytes?: number } = {},
): OutboxRow {
  const row: OutboxRow = {
    id: newId(),
    orgId: ctx.orgId,
    kind: checkKind(kind),
    payload,
    actorId: ctx.userId,
    requestId: ctx.requestId,
    traceparent: ctx.traceparent ?? null,
    createdAt: new Date(),
  };
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new ValidationError("payload", `Cannot use the payload of "${kind}": it must be a JSON object`);
  }
  encodeJson(payload, "payload", options.maxBytes ?? MAX_OUTBOX_BYTES);
  if (!isWork(row) && typeof payload.id !== "string") {
    throw new ValidationError(
      "payload.id",
      `Cannot use the payload of "${kind}": it must hold the entity's id as text`,
    );
  }
  return row;
}

/** How an outbox CTE joins its statement. */
export interface OutboxCteOptions {
  /**
   * SQL that must hold for the rows to be written, for example `exists (select from written)`: a core write that
   * changed nothing tells nobody. Default `true`.
   */
  readonly onlyIf?: string;
  /** The CTE's name. Default `outbox_rows`. */
  readonly name?: string;
  /** The SQL expression of database time. Default `now()`. */
  readonly nowSql?: string;
}

/**
 * A data-modifying CTE (`<name> as (insert into core.outbox …)`) that writes the rows in parameter `$param`, made by
 * `encodeOutboxRows`, within the statement of a core write. For tenant statements: rows of another org are not written.
 */
export function outboxInsertCte(param: number, options: OutboxCteOptions = {}): string {
  const { onlyIf = "true", name = "outbox_rows", nowSql = "now()" } = options;
  return `${name} as (
    insert into core.outbox (org_id, id, kind, payload, actor_id, request_id, traceparent, created_at)
    select r.org_id, r.id, r.kind, r.payload, r.actor_id, r.request_id, r.traceparent, ${nowSql}
    from jsonb_to_recordset($${param}::text::jsonb) as r (org_id uuid, id uuid, kind text, payload jsonb,
      actor_id uuid, request_id uuid, traceparent text)
    where r.org_id = ${TENANT_SQL} and (${onlyIf})
  )`;
}

/** Encodes rows as the one parameter `outboxInsertCte` reads. */
export function encodeOutboxRows(rows: readonly OutboxRow[]): string {
  return JSON.stringify(rows.map((row) => ({
    org_id: row.orgId,
    id: row.id,
    kind: row.kind,
    payload: row.payload,
    actor_id: row.actorId,
    request_id: row.requestId,
    traceparent: row.traceparent,
  })));
}

const INSERT_ROW = `
  insert into core_outbox (org_id, id, kind, payload, actor_id, request_id, traceparent, created_at)
  values (?, ?, ?, ?, ?, ?, ?, ?)`;

/** Writes rows within the transaction of a core write on the embedded store, on its time. */
export function insertOutboxRows(session: SqliteSession, rows: readonly OutboxRow[]): void {
  for (const row of rows) {
    const payload = JSON.stringify(row.payload);
    const { orgId, id, kind, actorId, requestId, traceparent } = row;
    session.run(INSERT_ROW, orgId, id, kind, payload, actorId, requestId, traceparent, session.nowMs);
  }
}
