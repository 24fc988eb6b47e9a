/**
 * Faults that the model must find: each a change of one place in the storages, as somebody may make it by mistake.
 *
 * @module
 */

/** One fault: what is changed into what, in which file under `src/work/`. Every occurrence is. */
export interface Mutation {
  readonly name: string;
  readonly store: "memory" | "postgres";
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

type Row = readonly [name: string, from: string, to: string];

const of = (store: Mutation["store"], file: string, rows: readonly Row[]): Mutation[] =>
  rows.map(([name, from, to]) => ({ name, store, file, from, to }));

/** All of them. */
export const MUTATIONS: readonly Mutation[] = [
  ...of("memory", "storage/sqlite_sql.ts", [
    ["writes are let through under any token", "and claim_token = ? and status", "and claim_token is not ? and status"],
    [
      "a lease lives on at the moment it ends",
      "status = 'claimed' and lease_expires_at > ?\"",
      "status = 'claimed' and lease_expires_at >= ?\"",
    ],
    ["handing back keeps the attempt spent", "attempts = attempts - 1", "attempts = attempts"],
    ["a retry keeps the expiries", "last_error = ?, expiries = 0", "last_error = ?"],
    ["handing back forgets an earlier note", "note = coalesce(?, note)", "note = ?"],
    ["a purge takes what is not audited", "and audit_id is null order", "order"],
    [
      "a claim goes by time before priority",
      "order by priority, available_at, id limit ? + 0`",
      "order by available_at, priority, id limit ? + 0`",
    ],
    ["a sweep takes back the claims of every org", "and +org_id = ? order", "and +org_id >= ? order"],
    ["what is due just now is not promoted", "ready = 0 and available_at <= ?", "ready = 0 and available_at < ?"],
    ["a completion lets any token through", "and w.claim_token = r.value ->> 2", "and r.value ->> 2 is not null"],
    ["a sweep step is taken a moment too late", "where last_run_at <= ?", "where last_run_at < ?"],
  ]),
  ...of("memory", "storage/sqlite.ts", [
    ["a key is freed while its item is there", "row.held === 0", "true"],
    [
      "a repeat is told by the status alone",
      "row.status === status && row.claim_token === ref.token",
      "row.status === status",
    ],
    ["an id that exists under another key is inserted again", 'return "ID_EXISTS"', 'return "KEY_EXISTS"'],
    [
      "of two completions in one batch the first is told that it wrote",
      "row.claim_token === ref.token && written.delete",
      "written.delete",
    ],
    ["a first expiry waits", "Number(row.expiries) === 0 ? 0", "Number(row.expiries) > 5 ? 0"],
  ]),
  ...of("memory", "rules.ts", [["one attempt more than allowed", "attempts >= maxAttempts", "attempts > maxAttempts"]]),
  ...of("memory", "storage/sqlite_fair.ts", [
    ["turns do not come round", "next <= after", "next < after"],
    [
      "a fair claim ends at its first priority",
      "priority = firstPriority(s, request, priority + 1)",
      "priority = null",
    ],
  ]),
  ...of("postgres", "storage/settle_sql.ts", [
    ["writes are let through under any token", "w.claim_token = r.token and", "w.claim_token <> r.org_id and"],
    ["a lease lives on at the moment it ends", "w.lease_expires_at > ${now}", "w.lease_expires_at >= ${now}"],
    ["a repeated completion is told by its id alone", "(select h.claim_token = r.token", "(select true"],
    ["what waits is in reach at once", "r.to_status = 'queued' and r.delay_ms <= 0", "r.to_status = 'queued'"],
    ["a run that ended keeps the expiries", "case when r.ran then 0 else w.expiries end", "w.expiries"],
  ]),
  ...of("postgres", "storage/postgres_rows.ts", [
    ["handing back keeps the attempt spent", "refund: 1 }", "refund: 0 }"],
    ["what one row says is taken for all", "&& all.every((row) => row[field] !== null)", ""],
    [
      "of two inserts of one id the second is not asked",
      "return repeat < 0 ? inserts : inserts.slice(0, repeat)",
      "return inserts",
    ],
    [
      "a claim tells the lease it asked for from its start",
      "updatedAt.getTime() + leaseMs",
      "createdAt.getTime() + leaseMs",
    ],
  ]),
  ...of("postgres", "storage/sweep_sql.ts", [
    ["a purge takes what is not audited", "and audit_id is null", ""],
    ["a second expiry does not wait", "or w.expiries = 0 then", "or w.expiries <= 1 then"],
    [
      "a key is freed while its item is in the history",
      "and (select 1 from queue.work_history h where h.org_id = old.org_id and h.id = old.item_id) is null",
      "",
    ],
    [
      "claims of orgs that are there are failed too",
      "and w.org_id in (select value::uuid",
      "and w.org_id not in (select value::uuid",
    ],
    [
      "the youngest item due tells the age",
      "select min(available_at) from heads",
      "select max(available_at) from heads",
    ],
  ]),
  ...of("postgres", "storage/sql.ts", [
    [
      "an id in the history is free",
      "and (select 1 from queue.work_history h where h.org_id = $1::uuid and h.id = i.id) is null",
      "",
    ],
  ]),
  ...of("postgres", "storage/claim_sql.ts", [
    [
      "several kinds are merged by time before priority",
      "order by head.priority, head.available_at, head.id limit",
      "order by head.available_at, head.id limit",
    ],
    ["a claim does not count", "claims = w.claims + 1", "claims = w.claims"],
  ]),
  ...of("postgres", "storage/claim_floors.ts", [
    [
      "a claim begins behind what is due at its floor",
      "new Date(atMs).toISOString()",
      "new Date(atMs + 1).toISOString()",
    ],
  ]),
  ...of("postgres", "storage/fair_claims.ts", [
    [
      "a fair claim ends at its first priority",
      "more === true ? Number(level) + 1",
      "more === null ? Number(level) + 1",
    ],
    ["a turn is not remembered", "this.#turns.served(", "void ("],
  ]),
];
