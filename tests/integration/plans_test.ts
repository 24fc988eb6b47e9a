/**
 * What the statements that run all the time read, with a large backlog behind them: by plans made while the tables were
 * empty (they are cached), and by plans made with fresh statistics for parameters the planner does not know.
 *
 * @module
 */
import assert from "node:assert/strict";
import { PostgresClient } from "../../src/db/client.ts";
import { newId } from "../../src/core/ids.ts";
import { CHAINS, FAIR_CHAIN } from "../../src/migrations.ts";
import { outboxSql } from "../../src/outbox/storage/sql.ts";
import { ClaimFloors, type ClaimRange } from "../../src/work/storage/claim_floors.ts";
import { mergedParams } from "../../src/work/storage/claim_sql.ts";
import * as sqliteSql from "../../src/work/storage/sqlite_sql.ts";
import { workSql } from "../../src/work/storage/sql.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { openTestStore } from "../support/stores.ts";

const ROWS = 20_000;
const ORG = newId();
const TOKEN = newId();
const TABLES = ["queue.work_items", "queue.work_history", "queue.work_keys", "queue.attempts", "core.outbox"];

interface Statement {
  readonly login: "system" | "runtime";
  readonly sql: string;
  readonly args: string;
}

/** Ids of the rows of one status, as `fill` numbers them. */
function idOf(group: number, n: number): string {
  return `00000000-0000-7000-8000-${group}${String(n).padStart(11, "0")}`;
}

/** What a claim looks at while looking from the beginning is slow, with three priorities known. */
function floorsOf(kind: string) {
  const floors = new ClaimFloors();
  const places = [5, 10, 50].map((priority) => ({ kind, priority, availableAt: new Date(0) }));
  floors.claimed({ all: true }, places, { startMs: 0, endMs: 60_000, limit: 100 });
  return floors.ranges([kind], 60_000).ranges;
}

function statements(): Readonly<Record<string, Statement>> {
  const [work, outbox] = [workSql("now()"), outboxSql("now()")];
  const system = (sql: string, args = "") => ({ login: "system", sql, args }) as const;
  const json = (value: unknown) => `'${JSON.stringify(value)}'`;
  const ranges = (...kinds: string[]) => json(new ClaimFloors().ranges(kinds, 0).ranges);
  const absent = Array.from({ length: 19 }, (_, i) => `ABSENT_${i}`);
  const claim = (which: string) => `'default', ${which}, 10, 'w', '${newId()}', 30000`;
  const mergedOf = (found: readonly ClaimRange[]) =>
    mergedParams(["default", "", 10, "w", newId(), 30_000], found).map((value) =>
      typeof value === "number" ? String(value) : `'${value}'`
    ).join(", ");
  const merged = (...kinds: string[]) => mergedOf(new ClaimFloors().ranges(kinds, 0).ranges);
  // Behind an org that is, so that the turns come round.
  const fairly = (kinds: string[]) => `${claim(json(kinds))}, ${json({ start: ORG })}, 0`;
  const refs = json(Array.from({ length: 100 }, (_, n) => ({
    n,
    org_id: ORG,
    id: idOf(4, n + 1),
    token: TOKEN,
    to_status: "queued",
    delay_ms: 0,
    refund: 0,
    ran: true,
  })));
  const arrays = [() => ORG, (n: number) => idOf(4, n + 1), () => TOKEN]
    .map((part) => `'{${Array.from({ length: 100 }, (_, n) => part(n)).join(",")}}'`).join(", ");
  const placed = `${arrays}, '{${Array.from({ length: 100 }, (_, n) => `"(0,${n + 1})"`).join(",")}}'`;
  const audited = json(Array.from({ length: 100 }, (_, n) => ({ org_id: ORG, id: idOf(5, n + 1), audit_id: TOKEN })));
  const pending = json(Array.from({ length: 100 }, (_, n) => ({ org_id: ORG, id: idOf(6, n + 1) })));
  const fresh = Array.from({ length: 500 }, (_, n) => ({ n, id: newId(), idempotency_key: `new ${n}`, payload: {} }));
  const shared = { kind: "A_KIND", lane: "default", weight: "light", priority: 10, max_attempts: 3 };
  const stamps = { created_at: new Date(), updated_at: new Date(), created_by: ORG, updated_by: ORG };
  return {
    create_items: {
      login: "runtime",
      sql: work.createItems,
      args: `'${ORG}', ${json(fresh)}, ${json({ ...shared, ...stamps })}, 'laneway', 'hint'`,
    },
    claim_one: system(work.claimOneKind, claim(ranges("A_KIND"))),
    claim_absent: system(work.claimOneKind, claim(ranges("ABSENT"))),
    claim_kinds: system(work.claimKinds, claim(ranges("A_KIND", ...absent))),
    claim_merged: system(work.claimMerged(20), merged("A_KIND", ...absent)),
    claim_merged_floors: system(work.claimMerged(7), mergedOf(floorsOf("A_KIND"))),
    claim_fair: system(work.claimFairlyOneKind, fairly(["A_KIND"])),
    claim_fair_absent: system(work.claimFairlyOneKind, fairly(["ABSENT"])),
    claim_fair_kinds: system(work.claimFairlyKinds, fairly(["A_KIND", ...absent])),
    claim_floors: system(work.claimOneKind, claim(json(floorsOf("A_KIND")))),
    complete: system(work.complete, arrays),
    complete_and_drop: system(work.completeAndDrop, arrays),
    complete_placed: system(work.completePlaced, placed),
    complete_placed_and_drop: system(work.completePlacedAndDrop, placed),
    settle: system(work.settle, refs),
    extend_leases: system(work.extendLeases, `${refs}, 30000`),
    read_claims: system(work.readClaims, refs),
    promote: system(work.promote, "1000"),
    requeue_stale: { login: "runtime", sql: work.requeueStale, args: `'${ORG}', 1000, 1000, 3600000, 100` },
    fail_stale_of: system(work.failStaleOf, `${json([ORG])}, 'e', 1000`),
    orgs_with_stale: system(work.orgsWithStale, "100"),
    read_unaudited: system(work.readUnaudited, "1000"),
    clear_audit: system(work.clearAudit, audited),
    purge_items: system(work.purgeItems, "0, 1000"),
    purge_keys: system(work.purgeKeys, "0, 1000, '-infinity'"),
    read_gauges: system(work.readGauges),
    archive_done: system(work.archiveDone, "0, 1000, true"),
    purge_attempts: system(work.purgeAttempts, "0, 1000"),
    outbox_read_pending: system(outbox.readPending, "200, '[]'"),
    outbox_mark_done: system(outbox.markDone, pending),
    outbox_purge_done: system(outbox.purgeDone, "0, 1000"),
    outbox_read_lag: system(outbox.readLag),
  };
}

/** 20,000 rows due, 20,000 of a better priority in the future, 20,000 done, and some of every other state. */
async function fill(database: TestDatabase): Promise<void> {
  const put = async (group: number, rows: number, values: string) => {
    await database.adminSql(`insert into queue.work_items (org_id, id, created_at, updated_at, created_by, updated_by,
        kind, idempotency_key, payload, status, ready, priority, available_at, lease_expires_at, claim_token, audit_id)
      select '${ORG}', ('00000000-0000-7000-8000-${group}' || lpad(g::text, 11, '0'))::uuid, now(),
        now() - interval '1 day', '${ORG}', '${ORG}', 'A_KIND', g::text, '{}', ${values} from generate_series(1, ${rows}) g`);
  };
  await put(1, ROWS, "'queued', true, 10, now() - g * interval '1 ms', null, null, null");
  // Some have become due: only then does promote write.
  await put(2, ROWS, "'queued', false, 1, now() + (g - 50) * interval '1 min', null, null, null");
  await database.adminSql(`insert into queue.work_history (org_id, id, created_at, created_by, kind, idempotency_key,
      payload, lane, weight, priority, available_at, finished_at, claim_token, claims, attempts, max_attempts)
    select '${ORG}', ('00000000-0000-7000-8000-3' || lpad(g::text, 11, '0'))::uuid, now(), '${ORG}', 'A_KIND', g::text, '{}',
      'default', 'light', 10, now(), now() - interval '1 day', gen_random_uuid(), 1, 1, 3 from generate_series(1, ${ROWS}) g`);
  await put(4, 2_000, `'claimed', false, 10, now(), now() + (g - 1000) * interval '1 min', '${TOKEN}', null`);
  await database.adminSql(
    `update queue.work_items set lease_expires_at = now() + interval '1 hour' where status = 'claimed' and id <= '${
      idOf(4, 100)
    }'`,
  );
  await put(
    5,
    2_000,
    `'failed', false, 10, now(), null, gen_random_uuid(), case when g <= 100 then '${TOKEN}'::uuid end`,
  );
  await put(7, 100, `'done', false, 10, now(), null, '${TOKEN}', null`);
  await database.adminSql(`insert into queue.attempts (org_id, item_id, claim_token, attempt, host, worker, started_at,
      finished_at, duration_ms, outcome, stdout_tail, stderr_tail, created_at)
    select '${ORG}', gen_random_uuid(), gen_random_uuid(), 1, 'h', 'w', now(), now(), 1, 'done', '', '',
      now() - interval '1 day' from generate_series(1, ${ROWS})`);
  await database.adminSql(
    `insert into queue.work_keys select org_id, id::text, id, now() - interval '1 day' from queue.work_items
      union all select org_id, id::text, id, now() - interval '1 day' from queue.work_history`,
  );
  await database.adminSql(`insert into core.outbox (org_id, id, kind, payload, actor_id, created_at, done_at)
    select '${ORG}', ('00000000-0000-7000-8000-6' || lpad(g::text, 11, '0'))::uuid, 'work.a', '{}', '${ORG}',
      now() - g * interval '1 ms', case when g > ${ROWS / 2} then now() - interval '1 day' end
    from generate_series(1, ${ROWS}) g`);
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly Plans?: readonly PlanNode[];
}

function* nodesOf(plan: PlanNode): Generator<PlanNode> {
  yield plan;
  for (const child of plan.Plans ?? []) yield* nodesOf(child);
}

/** What of a plan reads a whole table, or more than a bounded number of rows. */
function faultsOf(plan: PlanNode): string[] {
  return [...nodesOf(plan)].flatMap((node) => {
    const rows = (node["Actual Rows"] ?? 0) * (node["Actual Loops"] ?? 0);
    const table = node["Relation Name"];
    // Also one that was not executed this time: another parameter would.
    if (node["Node Type"] === "Seq Scan" && table !== undefined) return [`Seq Scan of ${table}`];
    return rows > 10_000 ? [`${node["Node Type"]} of ${rows} rows`] : [];
  });
}

// Sorted at first: a few thousand rows, until the first statistics a minute later.
const SORTS_UNTIL_ANALYZED = ["outbox_read_pending", "fail_stale_of", "orgs_with_stale", "purge_keys", "read_gauges"];

for (const made of ["while the tables were empty", "with fresh statistics"]) {
  Deno.test(`plans made ${made} read no backlog`, async () => {
    const database = await createTestDatabase([...CHAINS, FAIR_CHAIN]);
    const clients = {
      system: await PostgresClient.open(database.url("system"), { indexPlans: true }),
      runtime: await PostgresClient.open(database.url("runtime"), { indexPlans: true }),
    };
    try {
      for (const table of TABLES) await database.adminSql(`alter table ${table} set (autovacuum_enabled = false)`);
      for (const client of Object.values(clients)) {
        await client.query("set plan_cache_mode = force_generic_plan");
        await client.query("select set_config('laneway.org_id', $1, false)", [ORG]);
      }
      const all = Object.entries(statements());
      for (const [name, { login, sql, args }] of all) {
        await clients[login].script(`prepare ${name} as ${sql}`);
        const call = args === "" ? name : `${name}(${args})`;
        await clients[login].script(`begin; execute ${call}; rollback`);
      }
      await fill(database);
      if (made === "with fresh statistics") {
        for (const table of TABLES) await database.adminSql(`vacuum analyze ${table}`);
      }
      const found: string[] = [];
      for (const [name, { login, args }] of all) {
        const call = args === "" ? name : `${name}(${args})`;
        await clients[login].query("begin");
        const [row] = await clients[login].query(`explain (analyze, timing off, format json) execute ${call}`);
        await clients[login].query("rollback");
        const [{ Plan: plan }] = row?.["QUERY PLAN"] as [{ Plan: PlanNode }];
        const excused = made !== "with fresh statistics" && SORTS_UNTIL_ANALYZED.includes(name);
        found.push(
          ...faultsOf(plan).filter((fault) => !excused || fault.startsWith("Seq")).map((f) => `${name}: ${f}`),
        );
      }
      assert.deepEqual(found, []);
    } finally {
      for (const client of Object.values(clients)) client.destroy();
      await database.drop();
    }
  });
}

Deno.test("no statement of the embedded store sorts or scans a table, but the rare look for a lost claim", async () => {
  const test = await openTestStore("sqlite :memory:", [...CHAINS, FAIR_CHAIN]);
  try {
    const found: string[] = [];
    for (const [name, sql] of Object.entries(sqliteSql)) {
      if (typeof sql !== "string" || name === "READ_CLAIMED") continue;
      const rows = await test.sql(`explain query plan ${sql.replaceAll("?", "null")}`);
      const steps = rows.map((row) => String(row.detail));
      found.push(
        ...steps.filter((step) => /^SCAN queue_\w+$|TEMP B-TREE/.test(step)).map((step) => `${name}: ${step}`),
      );
      // An org's whole history lies under the primary key.
      found.push(
        ...steps.filter((step) => /autoindex_queue_work_items_1 \(org_id=\?\)$/.test(step)).map((s) => `${name}: ${s}`),
      );
    }
    assert.deepEqual(found, []);
  } finally {
    await test.close();
  }
});
