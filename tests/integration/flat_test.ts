/**
 * What a claim reads, in pages, with a great deal beside what it takes: not more than on a table that holds nothing else.
 * Pages do not hang on the machine. The same at full size, in milliseconds: `tests/bench/flat.ts`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { CHAINS, FAIR_CHAIN } from "../../src/migrations.ts";
import { mergedParams } from "../../src/work/storage/claim_sql.ts";
import { ClaimFloors } from "../../src/work/storage/claim_floors.ts";
import { PostgresWorkStorage } from "../../src/work/storage/postgres.ts";
import { workSql } from "../../src/work/storage/sql.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const ORG = newId();
const MANY = 20_000;
const DUE = 500;

/** Rows of one state, `values` being kind, status, ready, priority, available_at and lease_expires_at over `g`. */
function put(database: TestDatabase, count: number, values: string, orgSql = `'${ORG}'::uuid`): Promise<unknown> {
  return database.adminSql(`insert into queue.work_items (org_id, id, created_at, created_by, updated_at, updated_by,
      idempotency_key, payload, kind, status, ready, priority, available_at, lease_expires_at)
    select ${orgSql}, gen_random_uuid(), now(), '${ORG}', now(), '${ORG}', g::text, '{"n":1}', ${values}
    from generate_series(1, ${count}) g`);
}

const due = (database: TestDatabase, count: number) =>
  put(database, count, "'A_KIND', 'queued', true, 10, now() - g * interval '1 ms', null");

/** Claims everything of the lane, and completes it when asked to. */
async function claimAll(database: TestDatabase, complete: boolean): Promise<void> {
  const storage = new PostgresWorkStorage(database.databases.queue);
  for (;;) {
    const request = { lane: "default", kinds: ["A_KIND"], worker: "w", leaseMs: 3_600_000, limit: 500, token: newId() };
    const claimed = await storage.claim(request);
    if (claimed.length === 0) return;
    const refs = claimed.map(({ orgId, item }) => ({ orgId, id: item.id, token: request.token, to: "done" as const }));
    if (complete) await storage.settle(refs);
  }
}

/** What lies beside the due rows, and before them where it can. */
const SCENARIOS: Readonly<Record<string, (database: TestDatabase) => Promise<unknown>>> = {
  "a backlog behind it": (database) => due(database, MANY),
  "future rows of a better priority": (database) =>
    put(database, MANY, "'A_KIND', 'queued', false, 1, now() + g * interval '1 min', null"),
  "dead letters": (database) => put(database, MANY, "'A_KIND', 'failed', false, 1, now() - interval '1 day', null"),
  "other kinds": (database) =>
    put(database, MANY, "'B_KIND_' || g % 20, 'queued', true, 1, now() - interval '1 day', null"),
  "rows in flight": async (database) => {
    await due(database, 2_000);
    await claimAll(database, false);
  },
  "rows that were completed, and a vacuum": async (database) => {
    await due(database, MANY);
    await claimAll(database, true);
    await database.adminSql("vacuum queue.work_items");
  },
};

/** Pages of the index whose entries are all dead, until a vacuum: stepped over without a look at their rows. */
const LEAVES: Readonly<Record<string, number>> = { "rows in flight": 30 };

interface Look {
  readonly floors?: ClaimFloors;
  /** Claims in turns, behind this org. */
  readonly fairBehind?: string;
}

/** Pages a claim of `limit` items touches. Nothing is kept: it is rolled back. */
async function pagesOf(database: TestDatabase, kinds: readonly string[], limit: number, look: Look = {}) {
  const client = await PostgresClient.open(database.url("system"), { indexPlans: true });
  try {
    const sql = workSql("now()");
    const fair = look.fairBehind !== undefined;
    const ranges = (look.floors ?? new ClaimFloors()).ranges(kinds, 0).ranges;
    const one = kinds.length === 1;
    const text = fair
      ? (one ? sql.claimFairlyOneKind : sql.claimFairlyKinds)
      : (one ? sql.claimOneKind : sql.claimMerged(ranges.length));
    await client.script(`prepare claim as ${text}`);
    await client.query("set plan_cache_mode = force_generic_plan");
    const turns = fair ? [JSON.stringify({ start: look.fairBehind }), 0] : [];
    const params = ["default", JSON.stringify(fair ? kinds : ranges), limit, "w", newId(), 30_000, ...turns];
    const all = fair || one ? params : mergedParams(params, ranges);
    const call = `execute claim(${all.map((value) => typeof value === "number" ? value : `'${value}'`).join(", ")})`;
    let pages = 0;
    let rows = 0;
    // The first one marks what it found dead in the index, as each claim does for those behind it.
    for (let i = 0; i < 3; i++) {
      await client.query("begin");
      const [row] = await client.query(`explain (analyze, buffers, timing off, format json) ${call}`);
      await client.query("rollback");
      const [{ Plan: plan }] = row?.["QUERY PLAN"] as [{ Plan: Record<string, number> }];
      pages = (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0);
      rows = plan["Actual Rows"] ?? 0;
    }
    assert.equal(rows, limit);
    return pages;
  } finally {
    client.destroy();
  }
}

async function withDatabase<T>(work: (database: TestDatabase) => Promise<T>): Promise<T> {
  const database = await createTestDatabase([...CHAINS, FAIR_CHAIN]);
  try {
    for (const table of ["work_items", "work_history", "work_keys"]) {
      await database.adminSql(`alter table queue.${table} set (autovacuum_enabled = false)`);
    }
    return await work(database);
  } finally {
    await database.drop();
  }
}

Deno.test("a claim reads as few pages as on a table that holds nothing else", async () => {
  const served = ["A_KIND", ...Array.from({ length: 19 }, (_, n) => `ABSENT_${n}`)];
  const measure = async (database: TestDatabase) => {
    await due(database, DUE);
    const pages: number[] = [];
    for (const kinds of [["A_KIND"], served]) {
      for (const limit of [1, 100]) pages.push(await pagesOf(database, kinds, limit));
    }
    return pages;
  };
  const alone = await withDatabase(measure);
  const found: string[] = [];
  for (const [name, load] of Object.entries(SCENARIOS)) {
    const pages = await withDatabase(async (database) => {
      await load(database);
      return await measure(database);
    });
    pages.forEach((n, i) => {
      // A level of the tree more for each index, and half as much again.
      const most = (alone[i] ?? 0) * 1.5 + 10 + (LEAVES[name] ?? 0);
      if (n > most) {
        found.push(
          `${name}: ${n} pages where ${alone[i]} do alone (${["1", "100", "1, 20 kinds", "100, 20 kinds"][i]})`,
        );
      }
    });
  }
  assert.deepEqual(found, []);
});

Deno.test("behind an old snapshot a claim from its floors reads few pages, and from the beginning all that was done since", () =>
  withDatabase(async (database) => {
    const reader = await PostgresClient.open(database.url("admin"));
    try {
      await reader.query("begin isolation level repeatable read");
      await reader.query("select count(*) from queue.work_items");
      await due(database, MANY);
      await claimAll(database, true);
      const doneUntil = new Date();
      await put(database, DUE, "'A_KIND', 'queued', true, 10, now(), null");
      const floors = new ClaimFloors();
      floors.claimed(
        { all: true },
        [{ kind: "A_KIND", priority: 10, availableAt: doneUntil }],
        { startMs: -1_000, endMs: 0, limit: 100 },
      );
      const [fromStart, fromFloor] = [
        await pagesOf(database, ["A_KIND"], 1),
        await pagesOf(database, ["A_KIND"], 1, { floors }),
      ];
      assert.ok(fromStart > 500, `${fromStart} pages: nothing stood in the way`);
      assert.ok(fromFloor < 50, `${fromFloor} pages`);
    } finally {
      reader.destroy();
    }
  }));

/** The n-th org, in the order of the index. */
const orgOf = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
/** `count` due items, one after the other of each of so many orgs, from the first on. */
const dueOfOrgs = (database: TestDatabase, count: number, orgs: number, first = 1) =>
  put(
    database,
    count,
    "'A_KIND', 'queued', true, 10, now() - g * interval '1 ms', null",
    `('00000000-0000-4000-8000-' || lpad((${first} + g % ${orgs})::text, 12, '0'))::uuid`,
  );

Deno.test("a fair claim reads as few pages beside an org's backlog, and among many orgs, as without", async () => {
  const kinds = [["A_KIND"], ["A_KIND", "ABSENT_1", "ABSENT_2"]];
  const measure = async (database: TestDatabase, fairBehind: string) => {
    const pages: number[] = [];
    for (const some of kinds) {
      for (const limit of [1, 100]) pages.push(await pagesOf(database, some, limit, { fairBehind }));
    }
    return pages;
  };
  // The last org with work is behind: the turn comes round past all of them.
  const twoAlone = await withDatabase(async (database) => {
    await dueOfOrgs(database, 200, 2);
    return await measure(database, orgOf(9));
  });
  const manyAlone = await withDatabase(async (database) => {
    await dueOfOrgs(database, 200, 100);
    return await measure(database, orgOf(50));
  });
  const backlog = await withDatabase(async (database) => {
    await dueOfOrgs(database, MANY, 1, 2);
    await dueOfOrgs(database, 10, 1, 1);
    return await measure(database, orgOf(9));
  });
  const backlogFirst = await withDatabase(async (database) => {
    await dueOfOrgs(database, MANY, 1, 1);
    await dueOfOrgs(database, 10, 1, 2);
    return await measure(database, orgOf(1));
  });
  const orgs = await withDatabase(async (database) => {
    await dueOfOrgs(database, 2_000, 2_000);
    return await measure(database, orgOf(1_950));
  });
  const found: string[] = [];
  const compare = (name: string, pages: readonly number[], alone: readonly number[]) =>
    pages.forEach((n, i) => {
      // A level more of each index at each of up to as many orgs as items.
      if (n > (alone[i] ?? 0) * 2 + 20) found.push(`${name}: ${n} pages where ${alone[i]} do alone (case ${i})`);
    });
  compare("a backlog behind ten", backlog, twoAlone);
  compare("a backlog before ten", backlogFirst, twoAlone);
  compare("2,000 orgs with an item each", orgs, manyAlone);
  assert.deepEqual(found, []);
});
