/**
 * Enqueue inside a caller's own Postgres transaction.
 */
import assert from "node:assert/strict";
import postgres from "postgres";
import type { OpContext } from "../../src/core/context.ts";
import { FinalError, ValidationError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/ids.ts";
import { createManagers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import type { CallerTransaction } from "../../src/work/storage.ts";
import type { NewWorkItem } from "../../src/work/types.ts";
import { ANY } from "../support/managers_rig.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

/** A connection of a producer's own, on the runtime login. */
class Caller implements CallerTransaction {
  readonly #sql: ReturnType<typeof postgres>;

  constructor(database: TestDatabase) {
    this.#sql = postgres(database.url("runtime"), { max: 1, onnotice: () => {} });
  }

  query(text: string, params: readonly unknown[] = []): Promise<unknown> {
    return this.#sql.unsafe(text, params as string[], { prepare: true });
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 5 });
  }
}

async function withDatabase(
  test: (rig: {
    database: TestDatabase;
    ctx: OpContext;
    work: ReturnType<typeof createManagers>["work"];
    item(key: string, payload?: Record<string, unknown>): NewWorkItem;
  }) => Promise<void>,
): Promise<void> {
  const database = await createTestDatabase(CHAINS, { pool: { max: 60 } });
  try {
    const managers = createManagers({
      storages: createStorages({ engine: "postgres", databases: database.databases }),
      topics: new MemoryTopics(),
      clock: systemClock,
      logger: silentLogger,
      metrics: noMetrics,
      kinds: [ANY],
      itemRetentionMs: 60_000,
      keyRetentionMs: 60_000,
      outboxRetentionMs: 60_000,
      markerRetentionMs: 86_400_000,
    });
    const rctx = managers.tenancy.requestContext({ type: "SERVICE", version: "test@1" });
    const org = await managers.tenancy.createOrg(rctx, { name: "Org" });
    const ctx = await managers.tenancy.serviceContext(rctx, org.id);
    const item = (idempotencyKey: string, payload = {}) => ({ kind: ANY.name, idempotencyKey, payload });
    await test({ database, ctx, work: managers.work, item });
  } finally {
    await database.drop();
  }
}

/** Waits until `count` backends wait for a transaction to end. */
function waitForWaiters(database: TestDatabase, count: number): Promise<unknown> {
  return waitFor(`${count} sessions waiting`, async () => {
    const [row] = await database.adminSql(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return Number(row?.n) >= count ? true : undefined;
  });
}

Deno.test("an enqueue in a caller's transaction lands with it or not at all", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    const caller = new Caller(database);
    await caller.query("begin");
    const kept = await work.enqueueIn(caller, ctx, item("kept"));
    assert.equal(kept.outcome, "INSERTED");
    await caller.query("commit");
    await caller.query("begin");
    const dropped = await work.enqueueIn(caller, ctx, item("dropped"));
    await caller.query("rollback");
    assert.equal((await work.read(ctx, kept.id)).status, "queued");
    await assert.rejects(work.read(ctx, dropped.id), { code: "NOT_FOUND" });
    await caller.close();
  }));

Deno.test("an enqueue in a caller's transaction leaves it bound to the org it was bound to", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    const caller = new Caller(database);
    const bound = async () => {
      const [row] = await caller.query("select current_setting('laneway.org_id', true) as org") as { org: string }[];
      return row?.org ?? "";
    };
    await caller.query("begin");
    await work.enqueueIn(caller, ctx, item("unbound"));
    assert.equal(await bound(), "");
    const other = newId();
    await caller.query("select set_config('laneway.org_id', $1, true)", [other]);
    await work.enqueueIn(caller, ctx, item("bound"));
    assert.equal(await bound(), other);
    await caller.query("commit");
    await caller.close();
  }));

Deno.test("a payload that is refused leaves the caller's transaction usable", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    const caller = new Caller(database);
    await caller.query("begin");
    await assert.rejects(
      work.enqueueIn(caller, ctx, item("k", { note: "a\u0000b" })),
      (error: unknown) => error instanceof ValidationError && error.field === "payload.note",
    );
    const clean = await work.enqueueIn(caller, ctx, item("k", { note: "ab" }));
    assert.equal(clean.outcome, "INSERTED");
    await caller.query("commit");
    assert.equal((await work.read(ctx, clean.id)).status, "queued");
    await caller.close();
  }));

Deno.test("a transaction that holds a key and rolls back: one of the others inserts, nobody is told of a row that never was", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    const caller = new Caller(database);
    await caller.query("begin");
    await work.enqueueIn(caller, ctx, item("key"));
    const others = Array.from({ length: 49 }, () => work.enqueue(ctx, item("key")));
    await waitForWaiters(database, 49);
    await caller.query("rollback");
    const results = await Promise.all(others);
    assert.equal(results.filter((r) => r.outcome === "INSERTED").length, 1);
    assert.equal(new Set(results.map((r) => r.id)).size, 1);
    const [row] = await database.adminSql("select count(*)::int as n from queue.work_items");
    assert.equal(row?.n, 1);
    await caller.close();
  }));

Deno.test("a transaction that holds a key and commits: all others are told of its row", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    const caller = new Caller(database);
    await caller.query("begin");
    const first = await work.enqueueIn(caller, ctx, item("key", { from: "first" }));
    const others = Array.from({ length: 49 }, () => work.enqueue(ctx, item("key", { from: "later" })));
    await waitForWaiters(database, 49);
    await caller.query("commit");
    for (const result of await Promise.all(others)) {
      assert.deepEqual([result.outcome, result.id], ["KEY_EXISTS", first.id]);
      assert.deepEqual(result.item?.payload, { from: "first" }, "the first one stands");
    }
    await caller.close();
  }));

Deno.test("under repeatable read and serializable a lost race is success or an error that says to run it again", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    for (const level of ["repeatable read", "serializable"]) {
      const [winner, loser] = [new Caller(database), new Caller(database)];
      await loser.query(`begin isolation level ${level}`);
      await loser.query("select 1");
      await winner.query(`begin isolation level ${level}`);
      const won = await work.enqueueIn(winner, ctx, item(level));
      const lost = work.enqueueIn(loser, ctx, item(level));
      const settled = lost.then((r) => r.outcome, (e: { code?: string; message: string }) => `${e.code}: ${e.message}`);
      await waitForWaiters(database, 1);
      await winner.query("commit");
      assert.match(await settled, /^UNAVAILABLE: .*run it again/);
      await loser.query("rollback");
      assert.equal((await work.enqueue(ctx, item(level))).id, won.id);
      await Promise.all([winner.close(), loser.close()]);
    }
  }));

Deno.test("a key held by a claimed, a done and a dead item: the row is returned and not touched", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    for (const status of ["claimed", "done", "failed"]) {
      const key = newId();
      const { id } = await work.enqueue(ctx, item(key, { status }));
      await database.adminSql(
        `update queue.work_items set status = 'claimed', ready = false, claim_token = '${newId()}',
        lease_expires_at = now() + interval '1 hour' where id = '${id}' returning id`,
      );
      const held = (await work.enqueue(ctx, item(key))).item;
      assert.ok(held);
      if (status === "done") await work.complete(ctx, held);
      if (status === "failed") await work.fail(ctx, held, new FinalError("no more"));
      const xmin = () =>
        database.adminSql(`select xmin::text, idempotency_key from queue.work_items where id = '${id}'
          union all select xmin::text, idempotency_key from queue.work_history where id = '${id}'`);
      const [before] = await xmin();
      const again = await work.enqueue(ctx, item(String(before?.idempotency_key)));
      assert.deepEqual([again.outcome, again.id, again.item?.status], ["KEY_EXISTS", id, status]);
      assert.deepEqual(await xmin(), [before]);
    }
  }));

Deno.test("the embedded store refuses to join a caller's transaction, and says what to do", async () => {
  const { openManagers } = await import("../support/managers_rig.ts");
  const rig = await openManagers("sqlite :memory:");
  const ctx = await rig.member();
  const tx = { query: () => Promise.resolve([]) };
  const item = { kind: ANY.name, idempotencyKey: "k", payload: {} };
  await assert.rejects(rig.managers.work.enqueueIn(tx, ctx, item), /outbox row/);
  await rig.close();
});

Deno.test("an enqueue that meets its own id and key in a transaction that commits is told that the id exists", () =>
  withDatabase(async ({ database, ctx, work, item }) => {
    const caller = new Caller(database);
    try {
      const same = { ...item("same"), id: newId() };
      await caller.query("begin");
      assert.equal((await work.enqueueIn(caller, ctx, same)).outcome, "INSERTED");
      const other = work.enqueue(ctx, same);
      await waitForWaiters(database, 1);
      await caller.query("commit");
      const { outcome, id, item: row } = await other;
      assert.deepEqual([outcome, id, row?.id], ["ID_EXISTS", same.id, same.id]);
    } finally {
      await caller.close();
    }
  }));
