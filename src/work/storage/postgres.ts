/**
 * Work items on Postgres. One operation is one statement; tenant statements run as the runtime login inside the org's
 * unit, tenant-less ones on the system login.
 *
 * @module
 */
import { ConflictError, invariant, UnavailableError, ValidationError } from "../../core/errors.ts";
import type { Database, Row } from "../../db/database.ts";
import { encodeHint, HINT_CHANNEL } from "../../infra/topics.ts";
import { RETRY_FLOOR_MS, type RetryPolicy } from "../rules.ts";
import type {
  CallerTransaction,
  ClaimRef,
  ClaimRequest,
  ClaimState,
  ItemInsert,
  KeyHolder,
  OwnedItem,
  Promotion,
  QueueGauges,
  RequeueCounts,
  Settlement,
  Unaudited,
  WorkStorage,
  WriteOutcome,
} from "../storage.ts";
import type { InsertOutcome, Payload, WorkItem, WorkStatus } from "../types.ts";
import { type WorkSql, workSql } from "./sql.ts";

/** `WorkStorage` over the queue area's database. */
export class PostgresWorkStorage implements WorkStorage {
  readonly engine = "postgres";
  readonly #db: Database;
  readonly #sql: WorkSql;
  /** Where the last purge of keys ended: a time as the database wrote it. */
  #keysLookedUntil = "-infinity";

  /** @param options `nowSql`: the SQL expression of database time. Default `now()`; tests give one they can shift. */
  constructor(db: Database, options: { nowSql?: string } = {}) {
    this.#db = db;
    this.#sql = workSql(options.nowSql ?? "now()");
  }

  async createItems(orgId: string, inserts: readonly ItemInsert[]): Promise<InsertOutcome[]> {
    if (inserts.length === 0) return [];
    const ids = new Set<string>();
    const distinct = inserts.filter(({ item }) => !ids.has(item.id) && ids.add(item.id));
    const rows = await this.#createDistinct(orgId, distinct);
    const outcomes = new Map(rows.map((row) => [String(row.id), row.outcome as InsertOutcome]));
    invariant(outcomes.size === distinct.length, "every insert has an outcome");
    return inserts.map(({ item }) => {
      const outcome = outcomes.get(item.id) ?? "ID_EXISTS";
      // A second insert of one id in one call met the first.
      outcomes.set(item.id, "ID_EXISTS");
      return outcome;
    });
  }

  async createItemIn(tx: CallerTransaction, orgId: string, insert: ItemInsert): Promise<InsertOutcome> {
    try {
      const [before] = rowsOf(await tx.query(ENTER_ORG, [orgId]));
      const rows = rowsOf(await tx.query(this.#sql.createItems, [orgId, encodeInserts([insert])]));
      const outcome = rows[0]?.outcome as InsertOutcome;
      if (outcome === "INSERTED") {
        // Sent by the caller's commit, or never.
        const hint = encodeHint("WORK_AVAILABLE", { lane: insert.item.lane });
        await tx.query("select pg_notify($1, $2)", [HINT_CHANNEL, hint]);
      }
      // The rest of the caller's transaction is bound to the org it was bound to before, or to none.
      await tx.query("select set_config('laneway.org_id', $1, true)", [before?.before ?? ""]);
      return outcome;
    } catch (error) {
      throw translateCallerError(error, insert.item.idempotencyKey);
    }
  }

  async readItem(orgId: string, id: string): Promise<WorkItem | null> {
    const [row] = await this.#db.tenant(orgId, this.#sql.readItem, [orgId, id]);
    return row === undefined ? null : toItem(row);
  }

  async readItemByKey(orgId: string, idempotencyKey: string): Promise<KeyHolder | null> {
    const [row] = await this.#db.tenant(orgId, this.#sql.readItemByKey, [orgId, idempotencyKey]);
    if (row === undefined) return null;
    return { id: String(row.holder_id), item: row.id === null ? null : toItem(row) };
  }

  async claim(request: ClaimRequest): Promise<OwnedItem[]> {
    const { lane, kinds, limit, worker, token, leaseMs } = request;
    const [kind] = kinds;
    invariant(kind !== undefined, "a claim names at least one kind");
    // Kinds are upper snake case, so an array literal needs no quoting.
    const [text, kindParam] = kinds.length === 1
      ? [this.#sql.claimOneKind, kind]
      : [this.#sql.claimKinds, `{${kinds.join(",")}}`];
    const rows = await this.#db.system(text, [lane, kindParam, limit, worker, token, leaseMs]);
    return rows.map(toOwned);
  }

  async readClaimed(token: string): Promise<OwnedItem[]> {
    return (await this.#db.system(this.#sql.readClaimed, [token])).map(toOwned);
  }

  settle(settlements: readonly Settlement[]): Promise<WriteOutcome[]> {
    return this.#settleEncoded(settlements.map(encodeSettlement));
  }

  extendLeases(refs: readonly ClaimRef[], leaseMs: number): Promise<WriteOutcome[]> {
    return this.#writeHeld(refs.map(encodeRef), (batch) => this.#db.system(this.#sql.extendLeases, [batch, leaseMs]));
  }

  async readClaims(refs: readonly { orgId: string; id: string }[]): Promise<ClaimState[]> {
    if (refs.length === 0) return [];
    const batch = refs.map((ref) => ({ org_id: ref.orgId, id: ref.id }));
    const rows = await this.#db.system(this.#sql.readClaims, [JSON.stringify(batch)]);
    return rows.map((row) => ({
      orgId: String(row.org_id),
      id: String(row.id),
      status: row.status as WorkStatus,
      token: row.claim_token as string | null,
      leaseLive: row.lease_live === true,
    }));
  }

  failOrphaned(refs: readonly ClaimRef[], error: string): Promise<WriteOutcome[]> {
    return this.#settleEncoded(
      refs.map((ref, n) => ({ ...encodeRef(ref, n), to_status: "failed", error, ran: false })),
    );
  }

  async promote(limit: number): Promise<Promotion> {
    const [row] = await this.#db.system(this.#sql.promote, [limit]);
    const next = row?.next_due_in_ms;
    return { promoted: Number(row?.promoted ?? 0), nextDueInMs: typeof next === "number" ? Math.ceil(next) : null };
  }

  async requeueStale(orgId: string, limit: number, policy: RetryPolicy): Promise<RequeueCounts> {
    const params = [orgId, limit, policy.baseMs, policy.capMs, RETRY_FLOOR_MS];
    const [row] = await this.#db.tenant(orgId, this.#sql.requeueStale, params);
    return { requeued: Number(row?.requeued ?? 0), deadLettered: Number(row?.dead_lettered ?? 0) };
  }

  async orgsWithStale(limit: number): Promise<string[]> {
    return (await this.#db.system(this.#sql.orgsWithStale, [limit])).map((row) => String(row.org_id));
  }

  async failStaleOf(orgIds: readonly string[], error: string, limit: number): Promise<number> {
    const [row] = await this.#db.system(this.#sql.failStaleOf, [JSON.stringify(orgIds), error, limit]);
    return Number(row?.failed ?? 0);
  }

  async readUnaudited(limit: number): Promise<Unaudited[]> {
    const rows = await this.#db.system(this.#sql.readUnaudited, [limit]);
    return rows.map((row) => ({
      orgId: String(row.org_id),
      id: String(row.id),
      auditId: String(row.audit_id),
      kind: String(row.kind),
      attempts: Number(row.attempts),
      lastError: row.last_error as string | null,
      requestId: row.request_id as string | null,
    }));
  }

  async clearAudit(rows: readonly { orgId: string; id: string; auditId: string }[]): Promise<void> {
    if (rows.length === 0) return;
    const batch = rows.map((row) => ({ org_id: row.orgId, id: row.id, audit_id: row.auditId }));
    await this.#db.system(this.#sql.clearAudit, [JSON.stringify(batch)]);
  }

  async purgeItems(olderThanMs: number, limit: number): Promise<number> {
    const [row] = await this.#db.system(this.#sql.purgeItems, [olderThanMs, limit]);
    return Number(row?.purged ?? 0);
  }

  async purgeKeys(olderThanMs: number, limit: number): Promise<number> {
    const [row] = await this.#db.system(this.#sql.purgeKeys, [olderThanMs, limit, this.#keysLookedUntil]);
    this.#keysLookedUntil = typeof row?.looked_until === "string" ? row.looked_until : "-infinity";
    return Number(row?.purged ?? 0);
  }

  async readGauges(): Promise<QueueGauges> {
    const [row] = await this.#db.system(this.#sql.readGauges, []);
    return {
      queued: Number(row?.queued ?? 0),
      oldestAgeSeconds: Number(row?.oldest_age_seconds ?? 0),
      failed: Number(row?.failed ?? 0),
    };
  }

  async takeSweepSteps(steps: readonly string[], intervalMs: number): Promise<string[]> {
    const rows = await this.#db.system(this.#sql.takeSweepSteps, [JSON.stringify(steps), intervalMs]);
    return rows.map((row) => String(row.step));
  }

  #settleEncoded(batch: readonly Encoded[]): Promise<WriteOutcome[]> {
    return this.#writeHeld(batch, (text) => this.#db.system(this.#sql.settle, [text]));
  }

  /**
   * Runs a guarded batch. Rows that are held but were written by somebody else in the moment between the statement's
   * snapshot and its lock (a renewal of the same claim) are run again.
   */
  async #writeHeld(batch: readonly Encoded[], run: (text: string) => Promise<Row[]>): Promise<WriteOutcome[]> {
    const outcomes = new Map<number, WriteOutcome>();
    let left = batch;
    for (let tries = 0; left.length > 0; tries++) {
      invariant(tries < MAX_HELD_TRIES, `a row stayed held but unwritten after ${MAX_HELD_TRIES} tries`);
      const rows = await againAfterDeadlock(() => run(JSON.stringify(left)));
      invariant(rows.length === left.length, "every row of a batch has an outcome");
      for (const row of rows) if (row.outcome !== "HELD") outcomes.set(Number(row.n), row.outcome as WriteOutcome);
      left = left.filter(({ n }) => !outcomes.has(n));
    }
    return batch.map(({ n }) => outcomes.get(n) ?? "REFUSED");
  }

  /** Two inserts of one id racing under different keys: the loser's statement was rolled back whole, and now sees why. */
  async #createDistinct(orgId: string, inserts: readonly ItemInsert[]): Promise<Row[]> {
    const params = [orgId, encodeInserts(inserts)];
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#db.tenant(orgId, this.#sql.createItems, params);
      } catch (error) {
        if (!(error instanceof ConflictError) || attempt >= 3) throw error;
      }
    }
  }
}

/**
 * Runs a guarded batch again when the server ended it as a deadlock's victim. Ours lock in key order, but an operator's
 * statement need not; and a conflict would be told to each caller of the batch as the loss of its claim.
 *
 * @throws {UnavailableError} It was the victim each time; nothing was written.
 */
async function againAfterDeadlock(run: () => Promise<Row[]>): Promise<Row[]> {
  for (let tries = 1;; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      if (tries < MAX_DEADLOCK_TRIES) continue;
      throw new UnavailableError(`Cannot write a batch as it met deadlocks: ${error.message}`, "not-executed", {
        cause: error,
      });
    }
  }
}

// Both in one round trip: the list of a select is evaluated from left to right.
const ENTER_ORG = "select current_setting('laneway.org_id', true) as before, set_config('laneway.org_id', $1, true)";

/** Under repeatable read and serializable a race for a key ends in 40001: the caller's transaction can be run again. */
function translateCallerError(error: unknown, key: string): unknown {
  const code = (error as { code?: unknown } | null)?.code;
  if (code !== "40001" && code !== "40P01") return error;
  return new UnavailableError(
    `The transaction lost a race for key "${key}" (SQLSTATE ${code}): roll it back and run it again`,
    "not-executed",
    { cause: error },
  );
}

function rowsOf(result: unknown): Row[] {
  // node-postgres answers `{ rows }`, postgres.js and most others the rows themselves.
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | null)?.rows;
  if (Array.isArray(rows)) return rows as Row[];
  throw new ValidationError(
    "tx",
    "Cannot use tx: its query(text, params) must return the rows, or an object with rows",
  );
}

function encodeInserts(inserts: readonly ItemInsert[]): string {
  return JSON.stringify(inserts.map(({ item, start }, n) => ({
    // Of two inserts of one key in one call the first one wins.
    n,
    id: item.id,
    created_at: item.createdAt,
    updated_at: item.updatedAt,
    created_by: item.createdBy,
    updated_by: item.updatedBy,
    kind: item.kind,
    target_id: item.targetId,
    idempotency_key: item.idempotencyKey,
    payload: item.payload,
    lane: item.lane,
    priority: item.priority,
    weight: item.weight,
    host_preference: item.hostPreference,
    max_attempts: item.maxAttempts,
    request_id: item.requestId,
    traceparent: item.traceparent,
    delay_ms: start !== null && "delayMs" in start ? start.delayMs : null,
    not_before: start !== null && "notBefore" in start ? start.notBefore : null,
  })));
}

/** One row of a guarded batch, under its place in the batch. */
type Encoded = Readonly<Record<string, unknown>> & { readonly n: number };

const MAX_DEADLOCK_TRIES = 3;

// Each try can only be beaten by another renewal of the very same claim.
const MAX_HELD_TRIES = 20;

function encodeRef(ref: ClaimRef, n: number): Encoded {
  return { n, org_id: ref.orgId, id: ref.id, token: ref.token, delay_ms: 0, refund: 0 };
}

function encodeSettlement(settlement: Settlement, n: number): Encoded {
  const base = encodeRef(settlement, n);
  switch (settlement.to) {
    case "done":
      return { ...base, to_status: "done", ran: true };
    case "failed":
      return { ...base, to_status: "failed", error: settlement.error, audit_id: settlement.auditId, ran: false };
    case "retry":
      return { ...base, to_status: "queued", delay_ms: settlement.delayMs, error: settlement.error, ran: true };
    case "back": {
      const { delayMs, note, ran } = settlement;
      return { ...base, to_status: "queued", delay_ms: delayMs, note, ran, refund: 1 };
    }
  }
}

function toOwned(row: Row): OwnedItem {
  return { orgId: String(row.org_id), item: toItem(row) };
}

function toItem(row: Row): WorkItem {
  return {
    id: row.id as string,
    createdAt: row.created_at as Date,
    updatedAt: row.updated_at as Date,
    createdBy: row.created_by as string,
    updatedBy: row.updated_by as string,
    kind: row.kind as string,
    targetId: row.target_id as string | null,
    idempotencyKey: row.idempotency_key as string,
    payload: row.payload as Payload,
    lane: row.lane as string,
    status: row.status as WorkStatus,
    priority: row.priority as number,
    weight: row.weight as string,
    hostPreference: row.host_preference as string | null,
    availableAt: row.available_at as Date,
    claimedBy: row.claimed_by as string | null,
    claimToken: row.claim_token as string | null,
    leaseExpiresAt: row.lease_expires_at as Date | null,
    attempts: row.attempts as number,
    maxAttempts: row.max_attempts as number,
    claims: Number(row.claims),
    expiries: row.expiries as number,
    lastError: row.last_error as string | null,
    note: row.note as string | null,
    auditId: row.audit_id as string | null,
    requestId: row.request_id as string | null,
    traceparent: row.traceparent as string | null,
  };
}
