import assert from "node:assert/strict";
import { createAuditManager } from "../audit/manager.ts";
import { SqliteAuditStorage } from "../audit/storage/sqlite.ts";
import type { AuditManager, AuditStorage } from "../audit/types.ts";
import type { RequestContext } from "../core/context.ts";
import { UnavailableError } from "../core/errors.ts";
import { FakeClock, settlePromises } from "../core/fake_clock.ts";
import { newId } from "../core/ids.ts";
import type { Logger } from "../core/log.ts";
import { SqliteDatabase } from "../db/sqlite.ts";
import { migrateSqliteUp } from "../db/sqlite_migrator.ts";
import { MemoryTopics } from "../infra/memory_topics.ts";
import type { TopicPayloads } from "../infra/topics.ts";
import { CHAINS } from "../migrations.ts";
import { createOutboxRelay, type OutboxRelayOptions } from "./relay.ts";
import { insertOutboxRows } from "./rows.ts";
import { SqliteOutboxStorage } from "./storage/sqlite.ts";
import type { OutboxRelay, OutboxRow, OutboxStorage, RelaySink } from "./types.ts";

const RCTX = { requestId: newId(), app: { type: "WORKER", version: "t@0" } } as RequestContext;
const DAY_MS = 86_400_000;

/** A sink that keeps one item an id, as work does, and knows one kind. */
class Items implements RelaySink {
  readonly rows = new Map<string, OutboxRow>();
  calls = 0;

  enqueueRelayed(orgId: string, row: OutboxRow): Promise<"ENQUEUED" | "EXISTS" | "UNKNOWN_KIND"> {
    this.calls++;
    assert.equal(orgId, row.orgId);
    if (row.kind !== "work.notify_shipment") return Promise.resolve("UNKNOWN_KIND");
    if (this.rows.has(row.id)) return Promise.resolve("EXISTS");
    this.rows.set(row.id, row);
    return Promise.resolve("ENQUEUED");
  }
}

interface World {
  readonly clock: FakeClock;
  readonly storage: OutboxStorage;
  readonly auditStorage: AuditStorage;
  readonly audit: AuditManager;
  readonly items: Items;
  readonly topics: MemoryTopics;
  readonly changes: TopicPayloads["ENTITY_CHANGED"][];
  readonly logged: string[];
  readonly gauges: Map<string, number>;
  seed(rows: readonly OutboxRow[]): Promise<void>;
  pending(): Promise<string[]>;
  relay(overrides?: Partial<OutboxRelayOptions>): OutboxRelay;
}

function test(name: string, run: (world: World) => Promise<void>): void {
  Deno.test(name, async () => {
    const clock = new FakeClock();
    const db = new SqliteDatabase(":memory:", { clock });
    try {
      await migrateSqliteUp(db, CHAINS);
      await run(build(db, clock));
    } finally {
      db.close();
    }
  });
}

function build(db: SqliteDatabase, clock: FakeClock): World {
  const storage = new SqliteOutboxStorage(db);
  const auditStorage = new SqliteAuditStorage(db);
  const audit = createAuditManager(auditStorage);
  const items = new Items();
  const topics = new MemoryTopics();
  const changes: TopicPayloads["ENTITY_CHANGED"][] = [];
  topics.subscribe("ENTITY_CHANGED", (event) => event.type === "message" && changes.push(event.payload));
  const logged: string[] = [];
  const log = (event: string) => void logged.push(event);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const gauges = new Map<string, number>();
  const metrics = {
    count: (name: string, labels?: Record<string, string>, by = 1) => {
      const key = `${name}/${labels?.outcome}`;
      gauges.set(key, (gauges.get(key) ?? 0) + by);
    },
    set: (name: string, value: number) => void gauges.set(name, value),
    observe: () => {},
  };
  const base = { storage, audit, sink: () => items, topics, keyRetentionMs: 7 * DAY_MS, retentionMs: DAY_MS };
  return {
    ...{ clock, storage, auditStorage, audit, items, topics, changes, logged, gauges },
    seed: (rows) => db.write((session) => insertOutboxRows(session, rows)),
    pending: async () => (await storage.readPending(1_000)).map((row) => row.id),
    relay: (overrides = {}) => createOutboxRelay({ ...base, logger, metrics, ...overrides }),
  };
}

function row(kind: string, fields: Partial<OutboxRow> = {}): OutboxRow {
  return {
    id: newId(),
    orgId: newId(),
    kind,
    payload: { id: newId() },
    actorId: newId(),
    requestId: newId(),
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    createdAt: new Date(0),
    ...fields,
  };
}

const workRow = (fields?: Partial<OutboxRow>) => row("work.notify_shipment", fields);
const eventRow = (fields?: Partial<OutboxRow>) => row("shipments.shipment.created", fields);

async function eventIds(world: World, orgId: string): Promise<string[]> {
  return (await world.auditStorage.readEvents(orgId, 0, 1_000)).map((event) => event.id);
}

const NOTHING = { relayed: 0, unknownKind: 0, failed: 0, tooOld: 0 };

test("relay() hands a work row to the sink as it stands and marks it done", async (world) => {
  const work = workRow();
  await world.seed([work]);
  assert.deepEqual(await world.relay().relay([work]), { ...NOTHING, relayed: 1 });
  assert.deepEqual(world.items.rows.get(work.id), work);
  assert.deepEqual(await world.pending(), []);
});

test("relay() makes an entity change an event under the row's id and actor, and publishes it", async (world) => {
  const change = eventRow();
  await world.seed([change]);
  await world.relay().relay([change]);
  const [event] = await world.auditStorage.readEvents(change.orgId, 0, 10);
  const { createdAt: _at, ...rest } = event ?? assert.fail("no event");
  const { id, orgId, kind, actorId, requestId, payload } = change;
  assert.deepEqual(rest, { id, orgId, kind, actorId, requestId, payload, seq: 1 });
  await settlePromises();
  assert.deepEqual(world.changes, [{ orgId, entity: "shipment", entityId: payload.id, seq: 1 }]);
  assert.deepEqual(await world.pending(), []);
});

test("a row relayed twice leaves one item or one event", async (world) => {
  const rows = [workRow(), eventRow()];
  await world.seed(rows);
  const relay = world.relay();
  await relay.relay(rows);
  assert.deepEqual(await relay.relay([...rows].reverse()), { ...NOTHING, relayed: 2 });
  assert.equal(world.items.rows.size, 1);
  assert.deepEqual(await eventIds(world, rows[1]?.orgId ?? ""), [rows[1]?.id]);
  assert.deepEqual(await relay.relayPending(RCTX, 10), NOTHING);
});

test("two relays at once leave one item and one event a row, and no gap", async (world) => {
  const orgId = newId();
  const rows = Array.from({ length: 40 }, (_, i) => i % 2 === 0 ? workRow({ orgId }) : eventRow({ orgId }));
  await world.seed(rows);
  await Promise.all([
    world.relay().relayPending(RCTX, 100),
    world.relay().relayPending(RCTX, 100),
    world.relay().relay(rows),
  ]);
  assert.equal(world.items.rows.size, 20);
  const events = await world.auditStorage.readEvents(orgId, 0, 100);
  assert.deepEqual(events.map((event) => event.seq), Array.from({ length: 20 }, (_, i) => i + 1));
  assert.deepEqual(await world.pending(), []);
});

// Each step of handing on, cut before it happens and after it happened but before the relay hears of it.
const STEPS = ["enqueue", "append", "publish", "mark"] as const;
for (const step of STEPS) {
  for (const when of ["before", "after"] as const) {
    test(`a relay cut ${when} the ${step} leaves one item and one event once another relay has run`, async (world) => {
      const rows = [workRow(), eventRow()];
      await world.seed(rows);
      const cut = async <T>(name: typeof STEPS[number], act: () => Promise<T>): Promise<T> => {
        if (name === step && when === "before") throw new Error("cut");
        const result = await act();
        if (name === step) throw new Error("cut");
        return result;
      };
      const { storage, audit, items, topics } = world;
      const first = world.relay({
        storage: Object.assign(Object.create(storage) as OutboxStorage, {
          readPending: (limit: number, excluding?: readonly string[]) => storage.readPending(limit, excluding),
          markDone: (refs: readonly OutboxRow[]) => cut("mark", () => storage.markDone(refs)),
        }),
        audit: { ...audit, appendEvent: (event) => cut("append", () => audit.appendEvent(event)) } as AuditManager,
        sink: () => ({ enqueueRelayed: (o, r) => cut("enqueue", () => items.enqueueRelayed(o, r)) }),
        topics: {
          publish: (topic, payload) => cut("publish", () => topics.publish(topic, payload)),
          subscribe: (topic, listener) => topics.subscribe(topic, listener),
          close: () => topics.close(),
        },
      });
      const counts = await first.relay(rows);
      assert.ok(counts.failed >= 1, "the cut was not met");
      await world.relay().relayPending(RCTX, 10);
      assert.equal(items.rows.size, 1);
      assert.deepEqual(await eventIds(world, rows[1]?.orgId ?? ""), [rows[1]?.id]);
      await settlePromises();
      assert.ok(world.changes.length >= 1, "nobody was told of the change");
      assert.deepEqual(await world.pending(), []);
    });
  }
}

test("relayPending() takes what a crash left, oldest first, up to the limit", async (world) => {
  const rows = [workRow(), workRow(), workRow()];
  for (const r of rows) {
    await world.seed([r]);
    await world.clock.tick(1_000);
  }
  assert.deepEqual(await world.relay().relayPending(RCTX, 2), { ...NOTHING, relayed: 2 });
  assert.deepEqual(await world.pending(), [rows[2]?.id]);
});

test("relayPending() keeps the order of an org's changes, across pages", async (world) => {
  const orgId = newId();
  const rows = Array.from({ length: 600 }, () => eventRow({ orgId }));
  await world.seed(rows);
  assert.deepEqual(await world.relay().relayPending(RCTX, 1_000), { ...NOTHING, relayed: 600 });
  assert.deepEqual(await eventIds(world, orgId), rows.map((r) => r.id));
});

test("relayPending() leaves an unknown kind pending, counts it, and relays what stands behind it", async (world) => {
  const unknown = [row("work.not_yet_known"), row("work.not_yet_known")];
  const known = workRow();
  for (const r of [...unknown, known]) {
    await world.seed([r]);
    await world.clock.tick(1);
  }
  assert.deepEqual(await world.relay().relayPending(RCTX, 1), { ...NOTHING, relayed: 1, unknownKind: 2 });
  assert.deepEqual(await world.pending(), unknown.map((r) => r.id));
  assert.equal(world.gauges.get("laneway_outbox_unknown_kind"), 2);
});

test("relayPending() looks past more rows left behind than a page holds", async (world) => {
  const unknown = Array.from({ length: 1_100 }, () => row("work.not_yet_known"));
  await world.seed(unknown);
  await world.clock.tick(1);
  const known = workRow();
  await world.seed([known]);
  assert.deepEqual(await world.relay().relayPending(RCTX, 500), { ...NOTHING, relayed: 1, unknownKind: 1_100 });
  assert.ok(world.items.rows.has(known.id));
});

test("relayPending() looks past ten thousand rows and no more: a pass is bounded", async (world) => {
  const orgId = newId();
  await world.seed(Array.from({ length: 10_200 }, () => row("work.not_yet_known", { orgId })));
  await world.clock.tick(1);
  await world.seed([workRow()]);
  assert.deepEqual(await world.relay().relayPending(RCTX, 500), { ...NOTHING, unknownKind: 10_000 });
});

test("relayPending() does not let one row's failure stop the others, nor be tried twice in a pass", async (world) => {
  const rows = [workRow(), workRow(), eventRow(), eventRow(), workRow()];
  await world.seed(rows);
  const bad = new Set([rows[0]?.id, rows[2]?.id]);
  let tries = 0;
  const trip = (id: string) => {
    if (!bad.has(id)) return;
    tries++;
    throw new Error("this row is bad");
  };
  const relay = world.relay({
    audit: { ...world.audit, appendEvent: async (e) => (trip(e.id), await world.audit.appendEvent(e)) } as AuditManager,
    sink: () => ({ enqueueRelayed: async (o, r) => (trip(r.id), await world.items.enqueueRelayed(o, r)) }),
  });
  assert.deepEqual(await relay.relayPending(RCTX, 10), { ...NOTHING, relayed: 3, failed: 2 });
  assert.equal(tries, 2);
  assert.deepEqual(new Set(await world.pending()), bad);
  assert.equal(world.gauges.get("laneway_outbox_relayed_total/failed"), 2);
});

test("relayPending() stops asking an area that is out of reach, and goes on with the other", async (world) => {
  const work = Array.from({ length: 200 }, () => workRow());
  const change = eventRow();
  await world.seed(work);
  await world.clock.tick(1);
  await world.seed([change]);
  let tries = 0;
  const relay = world.relay({
    sink: () => ({
      enqueueRelayed: () => {
        tries++;
        return Promise.reject(new UnavailableError("down", "not-executed"));
      },
    }),
  });
  assert.deepEqual(await relay.relayPending(RCTX, 500), { ...NOTHING, relayed: 1, failed: 200 });
  assert.ok(tries < 30, `${tries} rows were tried`);
  assert.deepEqual(await eventIds(world, change.orgId), [change.id]);
});

test("relayPending() never relays a row older than the key retention: it alarms", async (world) => {
  const [old, fresh] = [workRow(), workRow()];
  await world.seed([old]);
  await world.clock.tick(7 * DAY_MS + 1);
  await world.seed([fresh]);
  assert.deepEqual(await world.relay().relayPending(RCTX, 10), { ...NOTHING, relayed: 1, tooOld: 1 });
  assert.deepEqual([...world.items.rows.keys()], [fresh.id]);
  assert.deepEqual(await world.pending(), [old.id]);
  assert.equal(world.gauges.get("laneway_outbox_too_old"), 1);
  assert.ok(world.logged.some((event) => event.includes("older than the key retention")));
  await world.storage.markDone([old]);
  await world.relay().relayPending(RCTX, 10);
  assert.equal(world.gauges.get("laneway_outbox_too_old"), 0);
});

test("relayPending() relays a row that is just as old as the key retention", async (world) => {
  await world.seed([workRow()]);
  await world.clock.tick(7 * DAY_MS);
  assert.deepEqual(await world.relay().relayPending(RCTX, 10), { ...NOTHING, relayed: 1 });
});

test("a page is marked done by one call", async (world) => {
  const rows = Array.from({ length: 30 }, (_, i) => i % 2 === 0 ? workRow() : eventRow());
  await world.seed(rows);
  const marked: number[] = [];
  const storage = Object.assign(Object.create(world.storage) as OutboxStorage, {
    readPending: (limit: number, excluding?: readonly string[]) => world.storage.readPending(limit, excluding),
    markDone: (refs: readonly OutboxRow[]) => {
      marked.push(refs.length);
      return world.storage.markDone(refs);
    },
  });
  await world.relay({ storage }).relayPending(RCTX, 100);
  assert.deepEqual(marked, [30]);
});

test("relay() never throws, whatever breaks", async (world) => {
  const rows = [workRow(), eventRow()];
  await world.seed(rows);
  const broken = world.relay({
    storage: { ...world.storage, markDone: () => Promise.reject(new Error("no")) } as OutboxStorage,
    audit: { ...world.audit, appendEvent: () => Promise.reject(undefined) } as AuditManager,
    sink: () => {
      throw new Error("work is not built yet");
    },
  });
  assert.deepEqual(await broken.relay(rows), { ...NOTHING, failed: 2 });
  assert.deepEqual(new Set(await world.pending()), new Set(rows.map((r) => r.id)));
});

test("relayPending() tells that the outbox itself is out of reach", async (world) => {
  const down = new UnavailableError("down", "not-executed");
  const relay = world.relay({
    storage: { ...world.storage, readPending: () => Promise.reject(down) } as OutboxStorage,
  });
  await assert.rejects(relay.relayPending(RCTX, 10), down);
});

test("purgeDone() goes by the outbox retention, readLag() by the oldest pending row", async (world) => {
  const [done, pending] = [workRow(), workRow()];
  await world.seed([done]);
  const relay = world.relay();
  await relay.relay([done]);
  await world.seed([pending]);
  await world.clock.tick(DAY_MS);
  assert.equal(await relay.purgeDone(RCTX), 0);
  await world.clock.tick(1);
  assert.equal(await relay.purgeDone(RCTX), 1);
  assert.deepEqual(await relay.readLag(RCTX), { pending: 1, oldestAgeSeconds: (DAY_MS + 1) / 1_000 });
});
