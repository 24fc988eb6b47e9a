/**
 * Work items on SQLite: `:memory:` or a file. One synchronous `BEGIN IMMEDIATE` function an operation; the `org_id`
 * predicate alone keeps tenants apart, and database time is the host's clock.
 *
 * @module
 */
import { ValidationError } from "../../core/errors.ts";
import { EMPTY_UUID, newId } from "../../core/ids.ts";
import type { SqliteDatabase, SqliteParam, SqliteRow, SqliteSession } from "../../db/sqlite.ts";
import { isExhausted, isStale, retryDelay, type RetryPolicy } from "../rules.ts";
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
import { FairTurns } from "./fair_turns.ts";
import { firstOf, pickFairly } from "./sqlite_fair.ts";
import { toOwned } from "./sqlite_rows.ts";
import * as sql from "./sqlite_sql.ts";
import { GAUGE_GROUPS, GAUGE_LIMIT, KEYS_LOOKED_AT } from "./sweep_sql.ts";

/** `WorkStorage` over an open SQLite store. */
export class SqliteWorkStorage implements WorkStorage {
  readonly engine = "sqlite";
  readonly #db: SqliteDatabase;
  readonly #turns = new FairTurns();
  #keysLookedUntilMs = 0;

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  createItems(orgId: string, inserts: readonly ItemInsert[]): Promise<InsertOutcome[]> {
    return this.#db.write((s) => inserts.map((insert) => createItem(s, orgId, insert)));
  }

  createItemIn(_tx: CallerTransaction, _orgId: string, _insert: ItemInsert): Promise<InsertOutcome> {
    throw new ValidationError(
      "tx",
      "Cannot join a caller's transaction on SQLite: write an outbox row in the same operation instead",
    );
  }

  readItem(orgId: string, id: string): Promise<WorkItem | null> {
    return this.#db.read((s) => readItem(s, orgId, id));
  }

  readItemByKey(orgId: string, idempotencyKey: string): Promise<KeyHolder | null> {
    return this.#db.read((s) => {
      const key = s.get(sql.READ_KEY, orgId, idempotencyKey);
      if (key === undefined) return null;
      const id = String(key.item_id);
      return { id, item: readItem(s, orgId, id) };
    });
  }

  claim(request: ClaimRequest): Promise<OwnedItem[]> {
    return this.#db.write((s) => {
      const due = request.order === "fair" ? pickFairly(s, request, this.#turns) : pickDue(s, request);
      if (due.length === 0) return [];
      const leaseExpiresAt = s.nowMs + request.leaseMs;
      const rowids = JSON.stringify(due);
      return s.rows(sql.CLAIM_ROWS, request.worker, request.token, leaseExpiresAt, s.nowMs, EMPTY_UUID, rowids)
        .map(toOwned).sort(byClaimOrder);
    });
  }

  readClaimed(token: string): Promise<OwnedItem[]> {
    return this.#db.read((s) => s.rows(sql.READ_CLAIMED, token).map(toOwned));
  }

  settle(settlements: readonly Settlement[]): Promise<WriteOutcome[]> {
    return this.#db.write((s) => {
      const done = settleDone(s, settlements.filter(isKept)).values();
      return settlements.map((settlement) =>
        isKept(settlement) ? done.next().value ?? "REFUSED" : settleOne(s, settlement)
      );
    });
  }

  extendLeases(refs: readonly ClaimRef[], leaseMs: number): Promise<WriteOutcome[]> {
    return this.#db.write((s) =>
      refs.map((ref) => {
        const changed = s.run(sql.EXTEND_LEASE, s.nowMs + leaseMs, s.nowMs, EMPTY_UUID, ...guard(s, ref));
        return changed === 1 ? "WRITTEN" : "REFUSED";
      })
    );
  }

  readClaims(refs: readonly { orgId: string; id: string }[]): Promise<ClaimState[]> {
    return this.#db.read((s) =>
      refs.flatMap((ref) => {
        const row = readState(s, ref);
        if (row === undefined) return [];
        const expires = row.lease_expires_at;
        return [{
          orgId: ref.orgId,
          id: ref.id,
          status: row.status as WorkStatus,
          token: row.claim_token as string | null,
          leaseLive: typeof expires === "number" && !isStale(expires, s.nowMs),
        }];
      })
    );
  }

  failOrphaned(refs: readonly ClaimRef[], error: string): Promise<WriteOutcome[]> {
    return this.#db.write((s) =>
      refs.map((ref) => {
        const changed = s.run(sql.SETTLE_FAILED, error, null, s.nowMs, EMPTY_UUID, ...guard(s, ref));
        return changed === 1 ? "WRITTEN" : repeated(readState(s, ref), ref, "failed");
      })
    );
  }

  promote(limit: number): Promise<Promotion> {
    return this.#db.write((s) => {
      const promoted = s.run(sql.PROMOTE, s.nowMs, limit);
      const next = s.get(sql.NEXT_DUE, s.nowMs)?.available_at;
      return { promoted, nextDueInMs: typeof next === "number" ? next - s.nowMs : null };
    });
  }

  requeueStale(orgId: string, limit: number, policy: RetryPolicy): Promise<RequeueCounts> {
    return this.#db.write((s) => {
      let deadLettered = 0;
      const rows = s.all(sql.STALE_OF_ORG, s.nowMs, orgId, limit);
      for (const row of rows) {
        const attempts = Number(row.attempts);
        const exhausted = isExhausted(attempts, Number(row.max_attempts));
        if (exhausted) deadLettered++;
        const delayMs = exhausted || Number(row.expiries) === 0 ? 0 : retryDelay(attempts, policy, Math.random());
        s.run(
          sql.REQUEUE_ROW,
          exhausted ? "failed" : "queued",
          delayMs === 0 && !exhausted ? 1 : 0,
          // At once means in its own place: behind a backlog it would wait for all that came after it.
          delayMs === 0 ? Number(row.available_at) : s.nowMs + delayMs,
          exhausted ? newId() : null,
          `the lease of attempt ${attempts} expired`,
          s.nowMs,
          EMPTY_UUID,
          row.rowid ?? null,
        );
      }
      return { requeued: rows.length - deadLettered, deadLettered };
    });
  }

  orgsWithStale(limit: number): Promise<string[]> {
    return this.#db.read((s) => s.all(sql.ORGS_WITH_STALE, s.nowMs, limit).map((row) => String(row.org_id)));
  }

  failStaleOf(orgIds: readonly string[], error: string, limit: number): Promise<number> {
    return this.#db.write((s) =>
      s.run(sql.FAIL_STALE_OF, error, s.nowMs, EMPTY_UUID, s.nowMs, JSON.stringify(orgIds), limit)
    );
  }

  readUnaudited(limit: number): Promise<Unaudited[]> {
    return this.#db.read((s) =>
      s.all(sql.READ_UNAUDITED, limit).map((row) => ({
        orgId: String(row.org_id),
        id: String(row.id),
        auditId: String(row.audit_id),
        kind: String(row.kind),
        attempts: Number(row.attempts),
        lastError: row.last_error as string | null,
        requestId: row.request_id as string | null,
      }))
    );
  }

  clearAudit(rows: readonly { orgId: string; id: string; auditId: string }[]): Promise<void> {
    return this.#db.write((s) => {
      for (const row of rows) s.run(sql.CLEAR_AUDIT, row.orgId, row.id, row.auditId);
    });
  }

  purgeItems(olderThanMs: number, limit: number): Promise<number> {
    return this.#db.write((s) => {
      const before = s.nowMs - olderThanMs;
      const done = s.run(sql.PURGE_DONE, before, limit);
      return done + (done < limit ? s.run(sql.PURGE_FAILED, before, limit - done) : 0);
    });
  }

  purgeKeys(olderThanMs: number, limit: number): Promise<number> {
    return this.#db.write((s) => {
      const old = s.all(sql.OLD_KEYS, s.nowMs - olderThanMs, this.#keysLookedUntilMs, KEYS_LOOKED_AT);
      // A key stays while its item does, whatever its age.
      const free = old.filter((row) => row.held === 0).slice(0, limit);
      for (const row of free) s.run(sql.FREE_KEY, row.org_id ?? null, row.key ?? null);
      const last = free.length === limit ? free.at(-1) : old.length === KEYS_LOOKED_AT ? old.at(-1) : undefined;
      this.#keysLookedUntilMs = Number(last?.created_at ?? 0);
      return free.length;
    });
  }

  readGauges(): Promise<QueueGauges> {
    return this.#db.read((s) => {
      const oldest = oldestDue(s);
      return {
        queued: Number(s.get(sql.COUNT_QUEUED, GAUGE_LIMIT)?.n ?? 0),
        oldestAgeSeconds: oldest === null ? 0 : Math.max(s.nowMs - oldest, 0) / 1000,
        failed: Number(s.get(sql.COUNT_FAILED, GAUGE_LIMIT)?.n ?? 0),
      };
    });
  }

  takeSweepSteps(steps: readonly string[], intervalMs: number): Promise<string[]> {
    return this.#db.write((s) =>
      steps.filter((step) =>
        s.run(sql.TAKE_SWEEP_STEP, step, s.nowMs, s.nowMs - intervalMs, s.nowMs + intervalMs) === 1
      )
    );
  }

  // No host reaches an embedded store.

  archiveDone(_olderThanMs: number, _options: { readonly limit: number; readonly keep: boolean }): Promise<number> {
    return Promise.resolve(0);
  }

  purgeAttempts(_olderThanMs: number, _limit: number): Promise<number> {
    return Promise.resolve(0);
  }

  hostOrgs(_afterOrgId: string | null, _limit: number): Promise<string[]> {
    return Promise.resolve([]);
  }

  dropHostOrgs(_orgIds: readonly string[]): Promise<number> {
    return Promise.resolve(0);
  }

  readHosts(_limit: number): Promise<HostGauge[]> {
    return Promise.resolve([]);
  }
}

function createItem(s: SqliteSession, orgId: string, insert: ItemInsert): InsertOutcome {
  const { item, start } = insert;
  if (s.get(sql.HAS_ITEM, orgId, item.id) !== undefined) return "ID_EXISTS";
  if (s.run(sql.INSERT_KEY, orgId, item.idempotencyKey, item.id, s.nowMs) === 0) return "KEY_EXISTS";
  const wanted = start === null ? s.nowMs : "delayMs" in start ? s.nowMs + start.delayMs : start.notBefore.getTime();
  const availableAt = Math.max(wanted, s.nowMs);
  s.run(
    sql.INSERT_ITEM,
    orgId,
    item.id,
    item.createdAt.getTime(),
    item.updatedAt.getTime(),
    item.createdBy,
    item.updatedBy,
    item.kind,
    item.targetId,
    item.idempotencyKey,
    JSON.stringify(item.payload),
    item.lane,
    availableAt <= s.nowMs ? 1 : 0,
    item.priority,
    item.weight,
    item.hostPreference,
    availableAt,
    item.maxAttempts,
    item.requestId,
    item.traceparent,
  );
  return "INSERTED";
}

/**
 * The rowids of due rows, the first of all in claim order: the heads of each kind, merged, so that absent kinds and long
 * backlogs cost nothing.
 */
function pickDue(s: SqliteSession, request: ClaimRequest): SqliteParam[] {
  const heads = request.kinds.map((kind) => s.rows(sql.DUE_OF_KIND, request.lane, kind, s.nowMs, request.limit));
  return firstOf(heads, request.limit);
}

// The engine returns what it updated in the order of its rowids.
function byClaimOrder({ item: a }: OwnedItem, { item: b }: OwnedItem): number {
  return a.priority - b.priority || a.availableAt.getTime() - b.availableAt.getTime() || (a.id < b.id ? -1 : 1);
}

function isKept(settlement: Settlement): boolean {
  return settlement.to === "done" && settlement.keep !== false;
}

function settleDone(s: SqliteSession, refs: readonly ClaimRef[]): WriteOutcome[] {
  if (refs.length === 0) return [];
  const list = JSON.stringify(refs.map(({ orgId, id, token }) => [orgId, id, token]));
  const written = new Set(s.rows(sql.SETTLE_DONE, s.nowMs, EMPTY_UUID, list, s.nowMs).map(([rowid]) => rowid));
  if (written.size === refs.length) return refs.map(() => "WRITTEN");
  return refs.map((ref) => {
    const row = readState(s, ref);
    if (row === undefined) return "REFUSED";
    // Of two writes under one claim the second repeats the first; one under an earlier claim did not write.
    const wrote = row.claim_token === ref.token && written.delete(row.rowid ?? null);
    return wrote ? "WRITTEN" : repeated(row, ref, "done");
  });
}

function settleOne(s: SqliteSession, settlement: Settlement): WriteOutcome {
  const guarded = guard(s, settlement);
  let changed: number;
  switch (settlement.to) {
    case "done":
      changed = s.run(sql.SETTLE_DROP, ...guarded);
      return changed === 1 ? "WRITTEN" : repeated(readState(s, settlement), settlement, "done");
    case "failed":
      changed = s.run(sql.SETTLE_FAILED, settlement.error, settlement.auditId, s.nowMs, EMPTY_UUID, ...guarded);
      return changed === 1 ? "WRITTEN" : repeated(readState(s, settlement), settlement, "failed");
    case "retry": {
      const at = s.nowMs + settlement.delayMs;
      changed = s.run(sql.SETTLE_RETRY, at, at <= s.nowMs ? 1 : 0, settlement.error, s.nowMs, EMPTY_UUID, ...guarded);
      return changed === 1 ? "WRITTEN" : "REFUSED";
    }
    case "back": {
      const at = s.nowMs + settlement.delayMs;
      const ran = settlement.ran ? 1 : 0;
      changed = s.run(
        sql.SETTLE_BACK,
        settlement.ran || settlement.delayMs > 0 ? at : null,
        at <= s.nowMs ? 1 : 0,
        settlement.note,
        ran,
        s.nowMs,
        EMPTY_UUID,
        ...guarded,
      );
      return changed === 1 ? "WRITTEN" : "REFUSED";
    }
  }
}

function guard(s: SqliteSession, ref: ClaimRef): SqliteParam[] {
  return [ref.orgId, ref.id, ref.token, s.nowMs];
}

function readState(s: SqliteSession, ref: { readonly orgId: string; readonly id: string }): SqliteRow | undefined {
  return s.get(sql.READ_STATE, ref.orgId, ref.id);
}

/** A finished row keeps its token, so that a repeated write is told apart from a stale one. */
function repeated(row: SqliteRow | undefined, ref: ClaimRef, status: WorkStatus): WriteOutcome {
  return row !== undefined && row.status === status && row.claim_token === ref.token ? "ALREADY" : "REFUSED";
}

/** The earliest `available_at` among due rows, hopping from one (lane, kind, priority) to the next. */
function oldestDue(s: SqliteSession): number | null {
  let oldest: number | null = null;
  let row = s.get(sql.FIRST_DUE_GROUP);
  for (let groups = 0; row !== undefined && groups < GAUGE_GROUPS; groups++) {
    const at = Number(row.available_at);
    if (oldest === null || at < oldest) oldest = at;
    row = s.get(sql.NEXT_DUE_GROUP, row.lane ?? null, row.kind ?? null, row.priority ?? null);
  }
  return oldest;
}

function readItem(s: SqliteSession, orgId: string, id: string): WorkItem | null {
  const [row] = s.rows(sql.READ_ITEM, orgId, id);
  return row === undefined ? null : toOwned(row).item;
}
