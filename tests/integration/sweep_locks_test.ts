/**
 * Whole sweeps of several workers at once on Postgres, among claims and settlements, under locks that others hold.
 *
 * @module
 */
import assert from "node:assert/strict";
import postgres from "postgres";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext, RequestContext } from "../../src/core/context.ts";
import { newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { encodeOutboxRows, newOutboxRow, outboxInsertCte } from "../../src/outbox/rows.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import { builtInSteps } from "../../src/runtime/sweep.ts";
import { createStorages, type Storages } from "../../src/storages.ts";
import type { ClaimedItem } from "../../src/work/types.ts";
import { ANY } from "../support/managers_rig.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

const WORKERS = 4;
const DAY_MS = 86_400_000;

interface Rig {
  readonly database: TestDatabase;
  readonly storages: Storages;
  /** One set a worker, so that no batch is shared. */
  readonly workers: readonly Managers[];
  /** The first worker's. */
  readonly managers: Managers;
  readonly rctx: RequestContext;
  /** A member of a new org. */
  readonly ctx: OpContext;
  /** Locks the first row of a table that matches, until `letGo()`. */
  hold(table: string, where?: string): Promise<void>;
  letGo(): Promise<void>;
}

async function withRig(test: (rig: Rig) => Promise<void>): Promise<void> {
  const database = await createTestDatabase(CHAINS, { pool: { max: 20 } });
  const other = postgres(database.url("admin"), { max: 1, onnotice: () => {} });
  const { databases, clock: { nowSql } } = database;
  try {
    const storages = createStorages({ engine: "postgres", databases, nowSql });
    const workers = Array.from({ length: WORKERS }, () => managersOver(storages));
    const [managers] = workers;
    assert.ok(managers);
    const rctx = managers.tenancy.requestContext({ type: "WORKER", version: "test@1" });
    const org = await managers.tenancy.createOrg(rctx, { name: "Org" });
    const user = await managers.tenancy.createUser(rctx, { name: "Ana" });
    await managers.tenancy.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
    const ctx = await managers.tenancy.memberContext(rctx, org.id, user.id);
    await other.unsafe("begin");
    await test({
      ...{ database, storages, workers, managers, rctx, ctx },
      async hold(table, where = "true") {
        const held = await other.unsafe(
          `select 1 from ${table} where ctid = (select min(ctid) from ${table} where ${where}) for update`,
        );
        assert.equal(held.length, 1, `there is a row of ${table} to hold`);
      },
      letGo: () => other.unsafe("rollback").then(() => {}),
    });
  } finally {
    await other.unsafe("rollback").catch(() => {});
    await other.end({ timeout: 5 });
    await database.drop();
  }
}

function managersOver(storages: Storages): Managers {
  return createManagers({
    storages,
    topics: new MemoryTopics(),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [ANY],
    itemRetentionMs: 7 * DAY_MS,
    keyRetentionMs: 7 * DAY_MS,
    outboxRetentionMs: DAY_MS,
    markerRetentionMs: DAY_MS,
  });
}

async function writeRows({ database }: Rig, rows: readonly OutboxRow[]): Promise<void> {
  const [first] = rows;
  assert.ok(first);
  const insert = `with ${outboxInsertCte(1, { nowSql: database.clock.nowSql })} select 1`;
  await database.databases.core.tenant(first.orgId, insert, [encodeOutboxRows(rows)]);
}

/** Every step that `wants`, in order from the given one on, each to its end. Adds what it did to `counts`. */
async function sweep(
  { rctx }: Rig,
  managers: Managers,
  options: { from?: string; wants?: RegExp; counts: Map<string, number> },
): Promise<void> {
  const steps = builtInSteps(managers, [ANY.name]);
  const first = Math.max(steps.findIndex(({ name }) => name === options.from), 0);
  for (const step of [...steps.slice(first), ...steps.slice(0, first)]) {
    if (options.wants !== undefined && !options.wants.test(step.name)) continue;
    for (let more = true; more;) {
      const result = await step.run(rctx);
      options.counts.set(step.name, (options.counts.get(step.name) ?? 0) + result.count);
      more = result.more;
    }
  }
}

function claim({ rctx }: Rig, managers: Managers, leaseMs = 600_000): Promise<ClaimedItem[]> {
  return managers.work.claim(rctx, { lane: "default", kinds: [ANY.name], worker: "w", leaseMs, limit: 7 });
}

async function enqueue({ managers, ctx }: Rig, count: number): Promise<void> {
  const items = Array.from({ length: count }, () => ({ kind: ANY.name, idempotencyKey: newId(), payload: {} }));
  await managers.work.enqueueMany(ctx, items);
}

async function claimAll(rig: Rig, leaseMs?: number): Promise<ClaimedItem[]> {
  const all: ClaimedItem[] = [];
  for (let some = await claim(rig, rig.managers, leaseMs); some.length > 0;) {
    all.push(...some);
    some = await claim(rig, rig.managers, leaseMs);
  }
  return all;
}

/** Claims and completes until `stop`, as a worker beside the sweeps does. */
async function workUntil(stop: AbortSignal, rig: Rig, managers: Managers): Promise<void> {
  while (!stop.aborted) {
    const claimed = await claim(rig, managers);
    await Promise.all(claimed.map(({ ctx, item }) => managers.work.complete(ctx, item)));
    if (claimed.length === 0) await systemClock.sleep(5, stop);
  }
}

/** Deadlocks the server has broken. Told for certain once every session has ended, so the pools are closed first. */
async function deadlocks({ database }: Rig): Promise<number> {
  await database.open.close();
  await waitFor("the workers' sessions to end", async () => {
    const [row] = await database.adminSql(
      "select count(*)::int as n from pg_stat_activity where datname = current_database() and usename like 'laneway%'",
    );
    return row?.n === 0;
  });
  const [row] = await database.adminSql(
    "select deadlocks::int as n from pg_stat_database where datname = current_database()",
  );
  return Number(row?.n);
}

Deno.test("the purges of four sweeps at once pass over rows that others hold, and remove the others once", () =>
  withRig(async (rig) => {
    const { managers: { tenancy, idempotency, outbox }, ctx, rctx } = rig;
    for (let i = 0; i < 5; i++) {
      await tenancy.createSession(ctx);
      await tenancy.createSocketTicket(ctx);
      await idempotency.once(ctx, { key: newId(), request: {} }, () => Promise.resolve({}));
    }
    await writeRows(rig, Array.from({ length: 5 }, () => newOutboxRow(ctx, "work.any", {})));
    assert.equal((await outbox.relayPending(rctx, 10)).relayed, 5);
    await rig.database.clock.advance(40 * DAY_MS);
    const tables = ["core.outbox", "core.idempotency_markers", "core.socket_tickets", "core.sessions"];
    for (const table of tables) await rig.hold(table);
    const wants = /^purge-(outbox|markers|tickets|sessions)$/;
    const counts = new Map<string, number>();
    await Promise.all(rig.workers.map((managers) => sweep(rig, managers, { wants, counts })));
    assert.deepEqual([...counts.values()], [4, 4, 4, 4], "all came to their end while the locks were held");
    await rig.letGo();
    await sweep(rig, rig.managers, { wants, counts });
    assert.deepEqual([...counts.values()], [5, 5, 5, 5]);
    assert.equal(await deadlocks(rig), 0);
  }));

Deno.test("four sweeps at once, among claims, all held up by others' locks: each piece of work once and no deadlock", () =>
  withRig(async (rig) => {
    const { managers: { work, audit }, storages, ctx, workers } = rig;
    // Ten dead letters whose audit entry a crash left out, one item that is held, thirty claims that expired.
    await enqueue(rig, 10);
    const dead = (await claimAll(rig)).map(({ item }) => item);
    await storages.work.settle(dead.map(({ id, claimToken }) => {
      const ref = { orgId: ctx.orgId, id, token: claimToken ?? "" };
      return { ...ref, to: "failed" as const, error: "e", auditId: newId() };
    }));
    await enqueue(rig, 1);
    const [held] = await claimAll(rig);
    assert.ok(held);
    await enqueue(rig, 30);
    const stale = (await claimAll(rig, 30_000)).map(({ item }) => item.id);
    await rig.database.clock.advance(60_000);
    // Forty rows that wait in the outbox, half of them events, of which one was appended before.
    const relayed = Array.from({ length: 20 }, () => newOutboxRow(ctx, "work.any", {}));
    const changes = Array.from({ length: 20 }, () => newOutboxRow(ctx, "things.thing.made", { id: newId() }));
    await writeRows(rig, [...relayed, ...changes]);
    const [first] = changes;
    assert.ok(first);
    await audit.appendEvent({ ...first, requestId: null });

    await rig.hold("queue.work_items", `id = '${dead[5]?.id}'`);
    await rig.hold("queue.work_items", `id = '${held.item.id}'`);
    await rig.hold("queue.work_items", `id = '${stale[15]}'`);
    await rig.hold("core.outbox", `id = '${relayed[10]?.id}'`);
    await rig.hold("activity.event_cursors");
    const stop = new AbortController();
    const counts = new Map<string, number>();
    const working = workers.map((managers) => workUntil(stop.signal, rig, managers));
    const sweeping = workers.map((managers, i) =>
      sweep(rig, managers, { counts, ...(i % 2 === 0 ? {} : { from: "relay-outbox" }) })
    );
    const swept = Promise.all([...sweeping, work.complete(held.ctx, held.item)]);
    // A failure is told where it is awaited, not while the locks are still being waited for.
    for (const all of [swept, ...working]) all.catch(() => {});
    await waitFor("two sweeps, two relays and a settlement waiting for locks", async () => {
      const [row] = await rig.database.adminSql(
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return Number(row?.n) >= 5;
    });
    await rig.letGo();
    await swept;
    // The claim that was held is left to the next pass.
    await sweep(rig, rig.managers, { counts });
    const mine = [...stale, ...relayed.map(({ id }) => id)];
    await waitFor("every item to be done", async () => {
      const items = await Promise.all(mine.map((id) => work.read(ctx, id)));
      return items.every(({ status }) => status === "done");
    });
    stop.abort();
    await Promise.all(working);

    assert.equal(counts.get("requeue-stale"), 30);
    for (const id of stale) assert.equal((await work.read(ctx, id)).claims, 2);
    for (const { id } of relayed) assert.equal((await work.read(ctx, id)).claims, 1);
    assert.equal((await work.read(ctx, held.item.id)).status, "done");
    const entries = await audit.readEntries(ctx, { limit: 100 });
    assert.deepEqual(entries.map(({ subjectId }) => subjectId).sort(), dead.map(({ id }) => id).sort());
    assert.deepEqual(await storages.work.readUnaudited(10), []);
    const events = await audit.readEvents(ctx, { afterSeq: 0, limit: 100 });
    assert.deepEqual(events.map(({ seq }) => seq), changes.map((_, i) => i + 1));
    assert.deepEqual(events.map(({ id }) => id).sort(), changes.map(({ id }) => id).sort());
    assert.deepEqual(await storages.outbox.readPending(10), []);
    assert.equal(await deadlocks(rig), 0);
  }));
