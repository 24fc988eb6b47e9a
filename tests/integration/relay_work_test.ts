/**
 * From a core write's outbox rows to the item and the event, with the real work and activity rooms behind the relay.
 *
 * @module
 */
import assert from "node:assert/strict";
import { z } from "zod";
import { FakeClock } from "../../src/core/fake_clock.ts";
import { newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { encodeOutboxRows, insertOutboxRows, newOutboxRow, outboxInsertCte } from "../../src/outbox/rows.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import { createStorages, type Storages, type Store } from "../../src/storages.ts";
import { defineKind } from "../../src/work/kinds.ts";
import { createTestDatabase } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const NOTIFY = defineKind("NOTIFY_SHIPMENT", { schema: z.object({ shipmentId: z.string() }) });
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

interface World {
  readonly storages: Storages;
  readonly managers: Managers;
  readonly woken: string[];
  /** Writes rows as a core write does; on Postgres only when `changed`. */
  write(rows: readonly OutboxRow[], changed?: boolean): Promise<void>;
}

function build(store: Store, write: World["write"]): World {
  const storages = createStorages(store);
  const topics = new MemoryTopics();
  const woken: string[] = [];
  topics.subscribe("WORK_AVAILABLE", (event) => event.type === "message" && woken.push(String(event.payload.lane)));
  const managers = createManagers({
    storages,
    topics,
    clock: new FakeClock(),
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [NOTIFY],
    itemRetentionMs: 7 * DAY_MS,
    keyRetentionMs: 7 * DAY_MS,
    outboxRetentionMs: DAY_MS,
    markerRetentionMs: 86_400_000,
  });
  return { storages, managers, woken, write };
}

async function onSqlite(run: (world: World) => Promise<void>): Promise<void> {
  const db = new SqliteDatabase(":memory:", { clock: new FakeClock() });
  try {
    await migrateSqliteUp(db, CHAINS);
    await run(
      build(
        { engine: "sqlite", db },
        (rows, changed = true) => db.write((session) => insertOutboxRows(session, changed ? rows : [])),
      ),
    );
  } finally {
    db.close();
  }
}

async function onPostgres(run: (world: World) => Promise<void>): Promise<void> {
  const db = await createTestDatabase(CHAINS);
  try {
    const insert = `with written as (select 1 where $2::boolean),
      ${outboxInsertCte(1, { onlyIf: "exists (select from written)" })} select 1`;
    await run(build({ engine: "postgres", databases: db.databases }, async (rows, changed = true) => {
      await db.databases.core.tenant(rows[0]?.orgId ?? newId(), insert, [encodeOutboxRows(rows), changed]);
    }));
  } finally {
    await db.drop();
  }
}

for (const [engine, on] of [["sqlite", onSqlite], ["postgres", onPostgres]] as const) {
  Deno.test(`a work row relayed twice leaves one item under the row's id and key, with its actor, request and trace, on ${engine}`, async () => {
    await on(async ({ managers: { tenancy, outbox }, storages, write }) => {
      const rctx = tenancy.requestContext({ type: "SERVICE", version: "api@1" }, { traceparent: TRACE });
      const org = await tenancy.createOrg(rctx, { name: "Łódź" });
      const user = await tenancy.createUser(rctx, { name: "Ada" });
      await tenancy.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
      const ctx = await tenancy.memberContext(rctx, org.id, user.id);
      const row = newOutboxRow(ctx, "work.notify_shipment", { lane: "bulk", shipmentId: "S-1" });
      await write([row]);
      assert.equal((await outbox.relay([row])).relayed, 1);
      const item = await storages.work.readItem(org.id, row.id) ?? assert.fail("no item");
      assert.equal((await outbox.relay([row])).relayed, 1);
      assert.deepEqual(await storages.work.readItem(org.id, row.id), item);
      assert.equal((await storages.work.readItemByKey(org.id, row.id))?.id, row.id);
      assert.deepEqual(
        [item.id, item.idempotencyKey, item.kind, item.lane, item.createdBy, item.requestId, item.traceparent],
        [row.id, row.id, "NOTIFY_SHIPMENT", "bulk", user.id, rctx.requestId, TRACE],
      );
      assert.deepEqual(item.payload, { shipmentId: "S-1" });
      assert.equal((await storages.outbox.readLag()).pending, 0);
    });
  });

  Deno.test(`many relays at once leave one item and one event a row, and wake the lane, on ${engine}`, async () => {
    await on(async ({ managers: { tenancy, outbox, audit }, storages, woken, write }) => {
      const rctx = tenancy.requestContext({ type: "SERVICE", version: "api@1" });
      const ctx = await tenancy.serviceContext(rctx, (await tenancy.createOrg(rctx, { name: "A" })).id);
      const rows = Array.from(
        { length: 30 },
        (_, i) =>
          i % 2 === 0
            ? newOutboxRow(ctx, "work.notify_shipment", { shipmentId: `S-${i}` })
            : newOutboxRow(ctx, "shipments.shipment.created", { id: newId() }),
      );
      await write(rows);
      await Promise.all([outbox.relay(rows), outbox.relayPending(rctx, 50), outbox.relay([...rows].reverse())]);
      assert.equal((await storages.outbox.readLag()).pending, 0);
      assert.equal((await storages.work.readGauges()).queued, 15);
      const events = await audit.readEvents(ctx, { afterSeq: 0, limit: 100 });
      assert.deepEqual(events.map((event) => event.seq), Array.from({ length: 15 }, (_, i) => i + 1));
      assert.ok(woken.length >= 15 && woken.every((lane) => lane === "default"));
    });
  });

  Deno.test(`a row whose payload its kind refuses stays pending and harms no other, on ${engine}`, async () => {
    await on(async ({ managers: { tenancy, outbox }, storages, write }) => {
      const rctx = tenancy.requestContext({ type: "SERVICE", version: "api@1" });
      const ctx = await tenancy.serviceContext(rctx, (await tenancy.createOrg(rctx, { name: "A" })).id);
      const bad = newOutboxRow(ctx, "work.notify_shipment", { shipmentId: 7 });
      const later = newOutboxRow(ctx, "work.not_yet_known", {});
      const good = newOutboxRow(ctx, "work.notify_shipment", { shipmentId: "S-1" });
      await write([bad, later, good]);
      assert.deepEqual(await outbox.relayPending(rctx, 10), { relayed: 1, unknownKind: 1, failed: 1, tooOld: 0 });
      assert.deepEqual((await storages.outbox.readPending(10)).map((row) => row.id), [bad.id, later.id]);
    });
  });

  Deno.test(`a core write that changed nothing leaves no outbox row, on ${engine}`, async () => {
    await on(async ({ managers: { tenancy }, storages, write }) => {
      const rctx = tenancy.requestContext({ type: "SERVICE", version: "api@1" });
      const ctx = await tenancy.serviceContext(rctx, (await tenancy.createOrg(rctx, { name: "A" })).id);
      await write([newOutboxRow(ctx, "work.notify_shipment", { shipmentId: "S-1" })], false);
      assert.equal((await storages.outbox.readLag()).pending, 0);
    });
  });
}

Deno.test("outboxInsertCte() writes no row of an org other than the statement's own", async () => {
  await onPostgres(async ({ managers: { tenancy }, storages, write }) => {
    const rctx = tenancy.requestContext({ type: "SERVICE", version: "api@1" });
    const contexts = [];
    for (const name of ["A", "B"]) {
      contexts.push(await tenancy.serviceContext(rctx, (await tenancy.createOrg(rctx, { name })).id));
    }
    const rows = contexts.map((ctx) => newOutboxRow(ctx, "work.notify_shipment", { shipmentId: "S-1" }));
    await write(rows);
    assert.deepEqual((await storages.outbox.readPending(10)).map((row) => row.id), [rows[0]?.id]);
  });
});
