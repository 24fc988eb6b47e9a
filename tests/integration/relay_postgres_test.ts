import assert from "node:assert/strict";
import { createAuditManager } from "../../src/audit/manager.ts";
import { PostgresAuditStorage } from "../../src/audit/storage/postgres.ts";
import type { NewEvent } from "../../src/audit/types.ts";
import { UnavailableError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/ids.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createOutboxRelay } from "../../src/outbox/relay.ts";
import { encodeOutboxRows, newOutboxRow, outboxInsertCte } from "../../src/outbox/rows.ts";
import { PostgresOutboxStorage } from "../../src/outbox/storage/postgres.ts";
import { guardStrayErrors } from "../../src/db/stray_errors.ts";
import { createTenancyManager } from "../../src/tenancy/manager.ts";
import { PostgresTenancyStorage } from "../../src/tenancy/storage/postgres.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

async function withDatabase(run: (db: TestDatabase) => Promise<void>): Promise<void> {
  const db = await createTestDatabase(CHAINS);
  try {
    await run(db);
  } finally {
    await db.drop();
  }
}

Deno.test("three relays at once on Postgres leave one event a row, no gap and nothing pending", async () => {
  await withDatabase(async (db) => {
    const { core, activity } = db.databases;
    const tenancy = createTenancyManager(new PostgresTenancyStorage(core));
    const rctx = tenancy.requestContext({ type: "SERVICE", version: "test@0" });
    const ctx = await tenancy.serviceContext(rctx, (await tenancy.createOrg(rctx, { name: "Łódź" })).id);
    const rows = Array.from({ length: 40 }, () => newOutboxRow(ctx, "shipments.shipment.created", { id: newId() }));
    await core.tenant(ctx.orgId, `with ${outboxInsertCte(1)} select 1`, [encodeOutboxRows(rows)]);
    const storage = new PostgresOutboxStorage(core);
    const audit = createAuditManager(new PostgresAuditStorage(activity));
    const relay = () =>
      createOutboxRelay({
        storage,
        audit,
        sink: () => assert.fail("no row is work"),
        topics: new MemoryTopics(),
        keyRetentionMs: 604_800_000,
        retentionMs: 0,
      });
    await Promise.all([relay().relayPending(rctx, 100), relay().relay(rows), relay().relayPending(rctx, 100)]);
    const events = await audit.readEvents(ctx, { afterSeq: 0, limit: 1_000 });
    assert.deepEqual(events.map((event) => event.seq), Array.from({ length: 40 }, (_, i) => i + 1));
    assert.deepEqual(new Set(events.map((event) => event.id)), new Set(rows.map((row) => row.id)));
    assert.equal((await storage.readLag()).pending, 0);
  });
});

Deno.test("events appended while connections are cut, each until it is there, have one seq each and no gap", async () => {
  // As every process of ours has it: cut in the middle of a write, the driver's socket may throw where none can catch.
  let strays = 0;
  const unguard = guardStrayErrors(() => strays++);
  await withDatabase(async (db) => {
    const storage = new PostgresAuditStorage(db.databases.activity);
    const orgId = newId();
    let running = true;
    let killed = 0;
    const killing = (async () => {
      while (running) killed += await db.killBackends("usename = 'laneway_test_runtime'");
    })();
    let cut = 0;
    const appendUntilThere = async (event: NewEvent): Promise<number> => {
      for (let tries = 0; tries < 200; tries++) {
        try {
          return (await storage.appendEvent(event)).seq;
        } catch (error) {
          if (!(error instanceof UnavailableError)) throw error;
          cut++;
        }
      }
      throw new Error("200 tries were not enough");
    };
    const seqs: number[] = [];
    let started = 0;
    // Goes on until enough was cut to show something; the bound is far beyond what that takes.
    const appender = async () => {
      while ((started < 60 || killed < 20) && started < 5_000) {
        started++;
        const event = { id: newId(), orgId, kind: "a.b.c", actorId: newId(), requestId: null, payload: {} };
        seqs.push(await appendUntilThere(event));
      }
    };
    try {
      await Promise.all([appender(), appender(), appender()]);
    } finally {
      running = false;
      await killing;
    }
    const expected = Array.from({ length: started }, (_, i) => i + 1);
    assert.deepEqual(seqs.sort((a, b) => a - b), expected);
    // By a connection of its own: those of the pool may have been cut last.
    const rows = await db.adminSql("select seq from activity.events where org_id = $1::uuid order by seq", [orgId]);
    assert.deepEqual(rows.map((row) => Number(row.seq)), expected);
    assert.ok(killed >= 20, `${killed} connections were cut, which shows little`);
    console.log(`${started} events, ${killed} connections cut, ${cut} appends repeated, ${strays} stray errors`);
  }).finally(unguard);
});
