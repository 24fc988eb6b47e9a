/**
 * One-line faults of the storage of work; see `mutations.ts`.
 *
 * @module
 */

/** One fault. */
export interface Mutation {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** What it breaks. */
  readonly what: string;
}

const SQL = "src/work/storage/sqlite_sql.ts";
const SQLITE = "src/work/storage/sqlite.ts";

const STATEMENTS: readonly Mutation[] = [
  [SQL, " and w.claim_token = r.value ->> 2", "", "a completion does not ask for the token"],
  [
    SQL,
    "w.status = 'claimed' and w.lease_expires_at > ?)",
    "w.status = 'claimed' and ? > 0)",
    "a completion does not ask for the lease",
  ],
  [SQL, "w.org_id = r.value ->> 0 and w.id", "w.id", "a completion does not ask for the org"],
  [
    SQL,
    "and claim_token = ? and status",
    "and (claim_token = ? or 1) and status",
    "guarded writes do not ask for the token",
  ],
  [
    SQL,
    "status = 'claimed' and lease_expires_at > ?\";",
    "status = 'claimed' and (lease_expires_at > ? or 1)\";",
    "guarded writes do not ask for the lease",
  ],
  [
    SQL,
    'const GUARD = "where org_id = ? and id',
    'const GUARD = "where (org_id = ? or 1) and id',
    "guarded writes do not ask for the org",
  ],
  [
    SQL,
    "where status = 'claimed' and lease_expires_at <= ? and +org_id = ?",
    "where status = 'claimed' and (lease_expires_at <= ? or 1) and +org_id = ?",
    "the sweep requeues live claims",
  ],
  [SQL, "and +org_id = ? order by", "and (+org_id = ? or 1) order by", "the sweep requeues for other orgs"],
  [
    SQL,
    "claim_token = null, expiries = expiries + 1",
    "expiries = expiries + 1",
    "the sweep requeues and leaves the token",
  ],
  [SQL, "attempts = attempts + 1, claims", "claims", "a claim charges no attempt"],
  [
    SQL,
    "note = coalesce(?, note), attempts = attempts - 1",
    "note = coalesce(?, note)",
    "release and defer charge an attempt",
  ],
  [
    SQL,
    "update queue_work_items set status = 'queued', ${LET_GO}, claim_token = null, available_at = ?, ready = ?,\n    last_error",
    "update queue_work_items set status = 'queued', ${LET_GO}, available_at = ?, ready = ?,\n    last_error",
    "a retry leaves its token on the row",
  ],
  [
    SQL,
    "where last_run_at <= ? or last_run_at > ?",
    "where last_run_at <= ? or last_run_at <> ?",
    "a sweep step's turn goes to everybody",
  ],
  [SQL, "and updated_at <= ? and audit_id is null", "and updated_at <= ?", "a purge takes unaudited dead letters"],
  [
    SQL,
    "where status = 'queued' and ready = 0 and available_at <= ?",
    "where status = 'queued' and ready = 0 and (available_at <= ? or 1)",
    "items are promoted before their time",
  ],
  [
    SQL,
    'export const HAS_ITEM = "select 1 from queue_work_items where org_id = ?',
    'export const HAS_ITEM = "select 1 from queue_work_items where (org_id = ? or 1)',
    "an id that another org has is taken for taken",
  ],
  [
    SQL,
    "from queue_work_items where org_id = ? and id = ?`;",
    "from queue_work_items where (org_id = ? or 1) and id = ?`;",
    "an item is read of whatever org",
  ],
  [
    SQL,
    "lease_expires_at = ?, updated_at = ?, updated_by = ? ${GUARD}",
    "lease_expires_at = ?, updated_at = ?, updated_by = ? where org_id = ? and id = ? and (? is not null) and status = 'claimed' and lease_expires_at > ?",
    "a renewal does not ask for the token",
  ],
].map(([file = "", find = "", replace = "", what = ""]) => ({ file, find, replace, what }));

const STORAGE: readonly Mutation[] = [
  [
    SQLITE,
    'return changed === 1 ? "WRITTEN" : "REFUSED";\n      })',
    'return changed < 2 ? "WRITTEN" : "REFUSED";\n      })',
    "a refused renewal is told as renewed",
  ],
  [
    SQLITE,
    "row.status === status && row.claim_token === ref.token",
    "row.status === status",
    "a stale holder's completion is told as its own",
  ],
  [
    SQLITE,
    "isExhausted(attempts, Number(row.max_attempts))",
    "isExhausted(attempts + 1, Number(row.max_attempts))",
    "an expiry dead-letters one attempt early",
  ],
  [
    SQLITE,
    "isExhausted(attempts, Number(row.max_attempts))",
    "isExhausted(attempts - 1, Number(row.max_attempts))",
    "an expiry dead-letters one attempt late",
  ],
  [SQLITE, "exhausted || Number(row.expiries) === 0 ? 0", "exhausted ? 0", "a first expiry is not requeued at once"],
  [
    SQLITE,
    'if (s.run(sql.INSERT_KEY, orgId, item.idempotencyKey, item.id, s.nowMs) === 0) return "KEY_EXISTS";',
    "s.run(sql.INSERT_KEY, orgId, item.idempotencyKey, item.id, s.nowMs);",
    "a taken key does not stop an enqueue",
  ],
  [SQLITE, "old.filter((row) => row.held === 0)", "old", "a key is freed while its item stands"],
  [
    SQLITE,
    "const leaseExpiresAt = s.nowMs + request.leaseMs;",
    "const leaseExpiresAt = s.nowMs + request.leaseMs * 2;",
    "a claim's lease is longer than asked for",
  ],
].map(([file = "", find = "", replace = "", what = ""]) => ({ file, find, replace, what }));

/** All of them. */
export const STORAGE_MUTATIONS: readonly Mutation[] = [...STATEMENTS, ...STORAGE];
