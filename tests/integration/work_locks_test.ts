/**
 * Work items on Postgres under locks that others hold: who waits, who does not, and what a deadlock becomes.
 *
 * @module
 */
import assert from "node:assert/strict";
import postgres from "postgres";
import { newId } from "../../src/core/ids.ts";
import type { ClaimRef, ItemInsert, OwnedItem } from "../../src/work/storage.ts";
import type { NewWorkItem } from "../../src/work/types.ts";
import { DEFAULT_RETRY } from "../../src/work/rules.ts";
import { buildInsert } from "../../src/work/new_item.ts";
import { ANY } from "../support/managers_rig.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages, type Storages } from "../../src/storages.ts";
import { waitFor } from "../support/wait_for.ts";

interface Rig {
  readonly database: TestDatabase;
  readonly storages: Storages;
  /** A superuser's session with a transaction open. */
  readonly other: ReturnType<typeof postgres>;
}

async function withRig(test: (rig: Rig) => Promise<void>): Promise<void> {
  const database = await createTestDatabase(CHAINS);
  const other = postgres(database.url("admin"), { max: 1, onnotice: () => {} });
  try {
    await other.unsafe("begin");
    const storages = createStorages({
      engine: "postgres",
      databases: database.databases,
      nowSql: database.clock.nowSql,
    });
    await test({ database, storages, other });
  } finally {
    await other.unsafe("rollback").catch(() => {});
    await other.end({ timeout: 5 });
    await database.drop();
  }
}

function insert(fields: Partial<NewWorkItem> = {}, start: ItemInsert["start"] = null): ItemInsert {
  const item = { kind: ANY.name, idempotencyKey: newId(), payload: {}, ...fields };
  const attribution = { actorId: newId(), requestId: null, traceparent: null };
  const built = buildInsert(item, { kind: ANY, attribution, nowMs: Date.now(), payloadLimitBytes: 1_000, start: {} });
  return { ...built, start };
}

function claim({ storages }: Rig, limit = 10): Promise<OwnedItem[]> {
  return storages.work.claim({
    lane: "default",
    kinds: [ANY.name],
    worker: "w",
    leaseMs: 30_000,
    limit,
    token: newId(),
  });
}

function ref({ orgId, item }: OwnedItem): ClaimRef {
  assert.ok(item.claimToken);
  return { orgId, id: item.id, token: item.claimToken };
}

function waiters({ database }: Rig): Promise<number> {
  return database.adminSql(
    "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  ).then(([row]) => Number(row?.n));
}

function waiting(rig: Rig, count: number): Promise<unknown> {
  return waitFor(`${count} sessions waiting`, async () => await waiters(rig) >= count ? true : undefined);
}

Deno.test("claim, promote, requeue, the failing of orphans and both purges pass over rows that others hold", () =>
  withRig(async (rig) => {
    const { work } = rig.storages;
    const { other, database } = rig;
    const orgId = newId();
    const put = async (count: number, start: ItemInsert["start"] = null) => {
      await work.createItems(orgId, Array.from({ length: count }, () => insert({}, start)));
    };
    const hold = (table: string, where: string) =>
      other.unsafe(`select 1 from ${table} where ctid = (select min(ctid) from ${table} where ${where}) for update`);
    await put(3);
    await hold("queue.work_items", "status = 'queued'");
    const claimed = await claim(rig);
    assert.equal(claimed.length, 2);
    await put(3, { delayMs: 1_000 });
    await hold("queue.work_items", "not ready and status = 'queued'");
    await database.clock.advance(31_000);
    assert.equal((await work.promote(10)).promoted, 2);
    await hold("queue.work_items", "status = 'claimed'");
    assert.deepEqual(await work.requeueStale(orgId, 10, DEFAULT_RETRY), { requeued: 1, deadLettered: 0 });
    assert.equal(await work.failStaleOf([orgId], "gone", 10), 0, "the one that is left is held");
    const again = await claim(rig);
    await work.settle(again.map((owned) => ({ ...ref(owned), to: "done" })));
    await database.clock.advance(1_000);
    await hold("queue.work_history", "true");
    assert.equal(await work.purgeItems(500, 10), again.length - 1);
    const gone = ["work_items", "work_history"].map((t) =>
      `not exists (select from queue.${t} t where t.id = k.item_id)`
    );
    await hold("queue.work_keys k", gone.join(" and "));
    assert.equal(await work.purgeKeys(500, 10), again.length - 2);
    assert.equal(await waiters(rig), 0);
  }));

Deno.test("a settlement waits for a row that another session holds, and is written when it lets go", () =>
  withRig(async (rig) => {
    await rig.storages.work.createItems(newId(), [insert()]);
    const [owned] = await claim(rig);
    assert.ok(owned);
    await rig.other.unsafe("select 1 from queue.work_items for update");
    const settled = rig.storages.work.settle([{ ...ref(owned), to: "done" }]);
    await waiting(rig, 1);
    await rig.other.unsafe("rollback");
    assert.deepEqual(await settled, ["WRITTEN"]);
  }));

Deno.test("a batch that the server ends as a deadlock's victim is run again, and none of it is told as refused", () =>
  withRig(async (rig) => {
    const { work } = rig.storages;
    const orgId = newId();
    await work.createItems(orgId, [insert(), insert()]);
    const claimed = await claim(rig);
    const [first, last] = claimed.map(({ item }) => item.id).sort();
    await rig.other.unsafe("set deadlock_timeout = '1min'");
    await rig.other.unsafe(`select 1 from queue.work_items where id = '${last}' for update`);
    const settled = work.settle(claimed.map((owned) => ({ ...ref(owned), to: "done" })));
    await waiting(rig, 1);
    // Only the batch looks for deadlocks soon, so it is the victim; the other goes on, and then lets go.
    await rig.other.unsafe(`select 1 from queue.work_items where id = '${first}' for update`);
    await rig.other.unsafe("rollback");
    assert.deepEqual(await settled, ["WRITTEN", "WRITTEN"]);
  }));

Deno.test("two sweeps that clear the same audit ids in opposite order wait for each other without a deadlock", () =>
  withRig(async (rig) => {
    const { work } = rig.storages;
    const orgId = newId();
    await work.createItems(orgId, Array.from({ length: 3 }, () => insert()));
    const claimed = await claim(rig);
    const rows = claimed.map((owned) => ({ orgId, id: owned.item.id, auditId: newId() }))
      .sort((a, b) => a.id < b.id ? -1 : 1);
    await work.settle(claimed.map((owned) => {
      const auditId = rows.find(({ id }) => id === owned.item.id)?.auditId ?? "";
      return { ...ref(owned), to: "failed", error: "e", auditId };
    }));
    // The middle row holds both up, each with whatever it has locked before it.
    await rig.other.unsafe(`select 1 from queue.work_items where id = '${rows[1]?.id}' for update`);
    const both = Promise.all([work.clearAudit(rows), work.clearAudit([...rows].reverse())]);
    await waiting(rig, 2);
    await rig.other.unsafe("rollback");
    await both;
    assert.deepEqual(await work.readUnaudited(10), []);
  }));
