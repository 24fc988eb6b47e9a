/**
 * Work items on Postgres. One operation is one statement; tenant statements run as the runtime login inside the org's
 * unit, tenant-less ones on the system login.
 *
 * @module
 */
import { ConflictError, invariant, UnavailableError } from "../../core/errors.ts";
import type { Database, Param, Row } from "../../db/database.ts";
import { encodeHint, HINT_CHANNEL } from "../../infra/topics.ts";
import { RETRY_FLOOR_MS, type RetryPolicy } from "../rules.ts";
import type {
  CallerTransaction,
  ClaimRef,
  ClaimRequest,
  ClaimState,
  HostGauge,
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
import type { InsertOutcome, WorkItem, WorkStatus } from "../types.ts";
import { ENTER_ORG, rowsOf, translateCallerError } from "./caller_transaction.ts";
import { ClaimFloors } from "./claim_floors.ts";
import { ClaimPlaces } from "./claim_places.ts";
import { MAX_MERGED, mergedParams } from "./claim_sql.ts";
import { brokeOff, FairClaims } from "./fair_claims.ts";
import {
  byId,
  type ClaimedRow,
  distinctIds,
  type Encoded,
  encodeInserts,
  encodePlaces,
  encodeRef,
  encodeRefs,
  encodeSettlement,
  placeOf,
  toClaimed,
  toItem,
  toOwned,
  type Way,
  wayOf,
  WAYS,
} from "./postgres_rows.ts";
import { type WorkSql, workSql } from "./sql.ts";

const MAX_DEADLOCK_TRIES = 3;

// Each try can only be beaten by another renewal of the very same claim.
const MAX_HELD_TRIES = 20;

/** `WorkStorage` over the queue area's database. */
export class PostgresWorkStorage implements WorkStorage {
  readonly engine = "postgres";
  readonly carriesHints = true;
  readonly #db: Database;
  readonly #sql: WorkSql;
  /** By lane. */
  readonly #floors = new Map<string, ClaimFloors>();
  readonly #places = new ClaimPlaces();
  readonly #fair: FairClaims;
  /** Where the last purge of keys ended: a time as the database wrote it. */
  #keysLookedUntil = "-infinity";

  /** @param options `nowSql`: the SQL expression of database time. Default `now()`; tests give one they can shift. */
  constructor(db: Database, options: { nowSql?: string } = {}) {
    this.#db = db;
    this.#sql = workSql(options.nowSql ?? "now()");
    const claimDue = (request: ClaimRequest) => this.#claimDue(request);
    this.#fair = new FairClaims(db, { sql: this.#sql, places: this.#places, claimDue });
  }

  async createItems(
    orgId: string,
    inserts: readonly ItemInsert[],
    hint: string | null = null,
  ): Promise<InsertOutcome[]> {
    const outcomes: InsertOutcome[] = [];
    while (outcomes.length < inserts.length) {
      const batch = distinctIds(inserts.slice(outcomes.length));
      const rows = await this.#createDistinct(orgId, [orgId, ...encodeInserts(batch), HINT_CHANNEL, hint]);
      const told = new Map(rows.map((row) => [String(row.id), row.outcome as InsertOutcome]));
      for (const { item } of batch) outcomes.push(told.get(item.id) ?? "INSERTED");
    }
    return outcomes;
  }

  async createItemIn(tx: CallerTransaction, orgId: string, insert: ItemInsert): Promise<InsertOutcome> {
    try {
      const [before] = rowsOf(await tx.query(ENTER_ORG, [orgId]));
      // Sent by the caller's commit, or never.
      const hint = encodeHint("WORK_AVAILABLE", { lane: insert.item.lane });
      const params = [orgId, ...encodeInserts([insert]), HINT_CHANNEL, hint];
      const row = rowsOf(await tx.query(this.#sql.createItems, params)).find(({ id }) => id !== null);
      const outcome = (row?.outcome ?? "INSERTED") as InsertOutcome;
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

  claim(request: ClaimRequest): Promise<OwnedItem[]> {
    invariant(request.kinds.length > 0, "a claim names at least one kind");
    return request.order === "fair" ? this.#fair.claim(request) : this.#claimDue(request);
  }

  async #claimDue(request: ClaimRequest): Promise<OwnedItem[]> {
    const { lane, kinds, limit, worker, token, leaseMs } = request;
    const floors = this.#floors.get(lane) ?? new ClaimFloors();
    this.#floors.set(lane, floors);
    const startMs = performance.now();
    const look = floors.ranges(kinds, startMs);
    const params = [lane, JSON.stringify(look.ranges), limit, worker, token, leaseMs];
    const [text, all] = kinds.length === 1
      ? [this.#sql.claimOneKind, params]
      : look.ranges.length > MAX_MERGED
      ? [this.#sql.claimKinds, params]
      : [this.#sql.claimMerged(look.ranges.length), mergedParams(params, look.ranges)];
    const rows = (await this.#db.system(text, all, { asValues: true })) as unknown as ClaimedRow[];
    const owned = rows.map((row) => toClaimed(row, request));
    this.#places.remember(token, rows.map(placeOf));
    const again = floors.claimed(look, owned.map(({ item }) => item), { startMs, endMs: performance.now(), limit });
    if (!again) return owned;
    try {
      return owned.concat(await this.#claimDue({ ...request, limit: limit - owned.length }));
    } catch (error) {
      throw owned.length === 0 ? error : brokeOff(error);
    }
  }

  async readClaimed(token: string): Promise<OwnedItem[]> {
    return (await this.#db.system(this.#sql.readClaimed, [token])).map(toOwned);
  }

  async settle(settlements: readonly Settlement[]): Promise<WriteOutcome[]> {
    // Each way has a statement of its own; nearly always a batch goes one way.
    const only = WAYS.find((way) => settlements.every((settlement) => wayOf(settlement) === way));
    if (only !== undefined) return await this.#settleWay(only, settlements);
    const outcomes: WriteOutcome[] = [];
    await Promise.all(WAYS.map(async (way) => {
      const places = settlements.flatMap((settlement, n) => wayOf(settlement) === way ? [n] : []);
      const told = await this.#settleWay(way, places.map((n) => settlements[n]).filter((s) => s !== undefined));
      places.forEach((n, i) => outcomes[n] = told[i] ?? "REFUSED");
    }));
    return outcomes;
  }

  extendLeases(refs: readonly ClaimRef[], leaseMs: number): Promise<WriteOutcome[]> {
    return this.#writeHeld(
      refs.map(encodeRef),
      (batch) => this.#db.system(this.#sql.extendLeases, [JSON.stringify(batch), leaseMs]),
    );
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

  async archiveDone(
    olderThanMs: number,
    { limit, keep }: { readonly limit: number; readonly keep: boolean },
  ): Promise<number> {
    const [row] = await this.#db.system(this.#sql.archiveDone, [olderThanMs, limit, keep]);
    return Number(row?.archived ?? 0);
  }

  async purgeAttempts(olderThanMs: number, limit: number): Promise<number> {
    const [row] = await this.#db.system(this.#sql.purgeAttempts, [olderThanMs, limit]);
    return Number(row?.purged ?? 0);
  }

  async hostOrgs(afterOrgId: string | null, limit: number): Promise<string[]> {
    return (await this.#db.system(this.#sql.hostOrgs, [afterOrgId, limit])).map((row) => String(row.org_id));
  }

  async dropHostOrgs(orgIds: readonly string[]): Promise<number> {
    const [row] = await this.#db.system(this.#sql.dropHostOrgs, [JSON.stringify(orgIds)]);
    return Number(row?.changed ?? 0);
  }

  async readHosts(limit: number): Promise<HostGauge[]> {
    return (await this.#db.system(this.#sql.readHosts, [limit])).map((row) => ({
      name: String(row.name),
      enabled: row.enabled === true,
      heartbeatAgeSeconds: typeof row.heartbeat_age_seconds === "number" ? row.heartbeat_age_seconds : null,
      inFlight: Number(row.in_flight),
    }));
  }

  async #settleWay(way: Way, settlements: readonly Settlement[]): Promise<WriteOutcome[]> {
    if (way === "write") return await this.#settleEncoded(settlements.map(encodeSettlement));
    const refs = settlements.map((ref, n) => ({ ref, n })).sort((a, b) => byId(a.ref, b.ref));
    const left = await this.#completePlaced(way, refs);
    const outcomes: WriteOutcome[] = settlements.map(() => "WRITTEN");
    const told = await this.#writeHeld(left, async (batch) => {
      const rows = way === "keep" ? await this.#complete(batch) : await this.#completeAndDrop(batch);
      // The statement numbers from one, by the place in this batch.
      return rows.map((row) => ({ ...row, n: batch[Number(row.n) - 1]?.n }));
    });
    left.forEach(({ n }, i) => outcomes[n] = told[i] ?? "REFUSED");
    return outcomes;
  }

  /** Completes what lies where its claim left it. @returns What does not, or was never known to. */
  async #completePlaced(way: Way, refs: readonly NumberedRef[]): Promise<NumberedRef[]> {
    const left: NumberedRef[] = [];
    const placed: NumberedRef[] = [];
    const places: string[] = [];
    for (const numbered of refs) {
      const place = this.#places.take(numbered.ref);
      if (place === undefined) left.push(numbered);
      else placed.push(numbered), places.push(place);
    }
    if (placed.length === 0) return left;
    const text = way === "keep" ? this.#sql.completePlaced : this.#sql.completePlacedAndDrop;
    const params = [...encodeRefs(placed), encodePlaces(places)];
    const rows = await againAfterDeadlock(() => this.#db.system(text, params));
    for (const row of rows) {
      const missed = placed[Number(row.n) - 1];
      if (missed !== undefined) left.push(missed);
    }
    return left;
  }

  #complete(batch: readonly NumberedRef[]): Promise<Row[]> {
    return this.#db.system(this.#sql.complete, encodeRefs(batch));
  }

  #completeAndDrop(batch: readonly NumberedRef[]): Promise<Row[]> {
    return this.#db.system(this.#sql.completeAndDrop, encodeRefs(batch));
  }

  #settleEncoded(batch: readonly Encoded[]): Promise<WriteOutcome[]> {
    return this.#writeHeld(batch, (left) => this.#db.system(this.#sql.settle, [JSON.stringify(left)]));
  }

  /**
   * Runs a guarded batch, whose statement tells of what it did not write. Rows that are held but were written by somebody
   * else in the moment between the statement's snapshot and its lock (a renewal of the same claim) are run again.
   */
  async #writeHeld<T extends { readonly n: number }>(
    batch: readonly T[],
    run: (batch: readonly T[]) => Promise<Row[]>,
  ): Promise<WriteOutcome[]> {
    const exceptions = new Map<number, WriteOutcome>();
    let left = batch;
    for (let tries = 0; left.length > 0; tries++) {
      invariant(tries < MAX_HELD_TRIES, `a row stayed held but unwritten after ${MAX_HELD_TRIES} tries`);
      const asked = left;
      const again = new Set<number>();
      for (const row of await againAfterDeadlock(() => run(asked))) {
        if (row.outcome === "HELD") again.add(Number(row.n));
        else exceptions.set(Number(row.n), row.outcome as WriteOutcome);
      }
      left = again.size === 0 ? [] : left.filter(({ n }) => again.has(n));
    }
    return batch.map(({ n }) => exceptions.get(n) ?? "WRITTEN");
  }

  /** Two inserts of one id racing under different keys: the loser's statement was rolled back whole, and now sees why. */
  async #createDistinct(orgId: string, params: readonly Param[]): Promise<Row[]> {
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#db.tenant(orgId, this.#sql.createItems, params);
      } catch (error) {
        if (!(error instanceof ConflictError) || attempt >= 3) throw error;
      }
    }
  }
}

/** A claim, and its place among those that were given. */
interface NumberedRef {
  readonly ref: ClaimRef;
  readonly n: number;
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
