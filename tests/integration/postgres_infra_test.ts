/** Topics and cache on real Postgres: the contracts, and the listener under a killed server process and a black hole. */
import assert from "node:assert/strict";
import type { LogFields, Logger } from "../../src/core/log.ts";
import type { MigrationChain } from "../../src/db/chain.ts";
import { listenOn } from "../../src/db/listener.ts";
import { PostgresCache } from "../../src/infra/postgres_cache.ts";
import { FakeClock } from "../../src/core/fake_clock.ts";
import { LONGEST_HINT_GAP_MS } from "../../src/infra/hint_pace.ts";
import { PostgresTopics, type PostgresTopicsOptions } from "../../src/infra/postgres_topics.ts";
import { testCache } from "../contracts/cache.ts";
import { testTopics } from "../contracts/topics.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { waitFor } from "../support/wait_for.ts";

const CACHE_CHAIN: MigrationChain = {
  name: "core",
  area: "core",
  postgres: [{
    version: 1,
    name: "cache",
    up: `create unlogged table core.cache_entries (
        scope text not null, key text not null, value text not null, expires_at timestamptz not null,
        primary key (scope, key)
      );
      grant select, insert, update, delete on core.cache_entries to laneway_system;`,
    down: "drop table core.cache_entries;",
  }],
  sqlite: [],
};

interface Line {
  readonly event: string;
  readonly fields: LogFields | undefined;
}

function recordingLogger(lines: Line[]): Logger {
  const record = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  return { debug: record, info: record, warn: record, error: record };
}

function topicsOn(db: TestDatabase, options: Partial<PostgresTopicsOptions> = {}): PostgresTopics {
  return new PostgresTopics({
    run: (sql, params) => db.databases.queue.system(sql, params),
    listen: listenOn(db.url("system")),
    ...options,
  });
}

async function withDatabase(work: (db: TestDatabase) => Promise<void>): Promise<void> {
  const db = await createTestDatabase([]);
  try {
    await work(db);
  } finally {
    await db.drop();
  }
}

async function listeners(db: TestDatabase): Promise<number> {
  const rows = await db.adminSql(
    "select from pg_stat_activity where datname = current_database() and application_name = 'laneway-listen'",
  );
  return rows.length;
}

testTopics("PostgresTopics between two processes", async () => {
  const db = await createTestDatabase([]);
  const publisher = topicsOn(db);
  const subscriber = topicsOn(db);
  return {
    publisher,
    subscriber,
    async close() {
      await Promise.all([publisher.close(), subscriber.close()]);
      await db.drop();
    },
  };
});

testTopics("PostgresTopics without LISTEN, within one process", async () => {
  const db = await createTestDatabase([]);
  const topics = topicsOn(db, { listen: undefined });
  return {
    publisher: topics,
    subscriber: topics,
    async close() {
      await topics.close();
      await db.drop();
    },
  };
});

testCache("PostgresCache", async () => {
  const db = await createTestDatabase([CACHE_CHAIN]);
  return {
    cache: new PostgresCache(db.databases.core, { nowSql: db.clock.nowSql }),
    advance: (ms: number) => db.clock.advance(ms),
    close: () => db.drop(),
  };
});

Deno.test("PostgresCache drops expired rows as it writes", async () => {
  const db = await createTestDatabase([CACHE_CHAIN]);
  try {
    const cache = new PostgresCache(db.databases.core, { nowSql: db.clock.nowSql });
    for (let i = 0; i < 15; i++) await cache.set("WORKER_LIVENESS", `gone ${i}`, "1", 1_000);
    await db.clock.advance(10_000);
    await cache.set("WORKER_LIVENESS", "alive", "1", 60_000);
    assert.deepEqual(await db.adminSql("select key from core.cache_entries"), [{ key: "alive" }]);
  } finally {
    await db.drop();
  }
});

Deno.test("a killed listener listens again within 5 s, says resubscribed, and holds one connection", async () => {
  await withDatabase(async (db) => {
    const lines: Line[] = [];
    const topics = topicsOn(db, { logger: recordingLogger(lines) });
    const events: string[] = [];
    topics.subscribe(
      "WORK_AVAILABLE",
      (event) => events.push(event.type === "message" ? String(event.payload.lane) : event.type),
    );
    topics.subscribe("OUTBOX_PENDING", () => {});
    try {
      await waitFor("listening", () => topics.listening);
      for (let round = 1; round <= 3; round++) {
        assert.equal(await db.killBackends("application_name = 'laneway-listen'"), 1);
        await waitFor("resubscribed", () => events.filter((e) => e === "resubscribed").length === round + 1, {
          timeoutMs: 5_000,
        });
        await topics.publish("WORK_AVAILABLE", { lane: `round ${round}` });
        await waitFor("the hint", () => events.includes(`round ${round}`), { timeoutMs: 5_000 });
        assert.equal(await listeners(db), 1);
      }
      // One line for each change that lasts, none for each attempt.
      const said = () => lines.map((line) => line.event).filter((event) => /listening/.test(event));
      await waitFor("it to be said", () => said().at(-1) === "listening for hints");
      const [first, ...changes] = said();
      assert.equal(first, "listening for hints");
      assert.ok(changes.length >= 2 && changes.length <= 6, changes.join());
      assert.ok(changes.every((event, i) => event.startsWith(i % 2 === 0 ? "not listening" : "listening")));
    } finally {
      await topics.close();
    }
    await waitFor("the listening connection to end", async () => await listeners(db) === 0);
  });
});

Deno.test("a half-open listening connection is noticed by its probe and replaced", async () => {
  await withDatabase(async (db) => {
    const proxy = new TcpProxy(Number(new URL(db.url("system")).port));
    const lines: Line[] = [];
    const topics = topicsOn(db, {
      listen: listenOn(proxy.through(db.url("system"))),
      checkMs: 100,
      answerMs: 300,
      logger: recordingLogger(lines),
    });
    let resubscribed = 0;
    topics.subscribe("WORK_AVAILABLE", (event) => event.type === "resubscribed" && resubscribed++);
    try {
      await waitFor("listening", () => topics.listening);
      proxy.blackHole();
      await waitFor("the black hole to be noticed", () => !topics.listening);
      assert.match(String(lines.at(-1)?.fields?.error), /did not arrive within 300 ms/);
      proxy.resume();
      await waitFor("listening again", () => topics.listening);
      assert.equal(resubscribed, 2);
    } finally {
      await topics.close();
      await proxy.close();
    }
  });
});

Deno.test("topics start before their database and close while it is away", async () => {
  const lines: Line[] = [];
  const topics = new PostgresTopics({
    run: () => Promise.reject(new Error("out of reach")),
    listen: listenOn("postgres://nobody@127.0.0.1:1/nowhere"),
    logger: recordingLogger(lines),
  });
  topics.subscribe("WORK_AVAILABLE", () => {});
  await Promise.all([1, 2, 3].map(() => topics.publish("OUTBOX_PENDING", {})));
  await topics.publish("OUTBOX_PENDING", {});
  await waitFor("the failure to be told", () => lines.length === 2);
  assert.deepEqual(lines.map((line) => line.event).toSorted(), [
    "hints cannot be sent",
    "not listening for hints, polling only",
  ]);
  await topics.close();
});

Deno.test("equal hints published while one is in flight leave once, in one statement", async () => {
  const sent: string[][] = [];
  let release = () => {};
  const topics = new PostgresTopics({
    async run(_sql, params) {
      sent.push((JSON.parse(params[1] ?? "[]") as string[]).map((text) => JSON.parse(text).payload.lane));
      await new Promise<void>((resolve) => release = resolve);
    },
  });
  const first = topics.publish("WORK_AVAILABLE", { lane: "a" });
  await waitFor("the first to leave", () => sent.length === 1);
  const later = ["b", "b", "c", "b"].map((lane) => topics.publish("WORK_AVAILABLE", { lane }));
  release();
  await first;
  await waitFor("the second to leave", () => sent.length === 2);
  release();
  await Promise.all(later);
  assert.deepEqual(sent, [["a"], ["b", "c"]]);
  await topics.close();
});

Deno.test("equal hints in quick succession leave at once, then as one a gap, and the last of them on close", async () => {
  const clock = new FakeClock();
  const sentMs: number[] = [];
  const topics = new PostgresTopics({ run: () => Promise.resolve(sentMs.push(clock.monotonic())), clock });
  const publish = () => void topics.publish("WORK_AVAILABLE", { lane: "a" });
  publish();
  await clock.tick(0);
  assert.deepEqual(sentMs, [0], "the first at once");
  for (let ms = 0; ms < 1_000; ms++) {
    publish();
    await clock.tick(1);
  }
  assert.ok(sentMs.length >= 50 && sentMs.length <= 125, `${sentMs.length} statements for a thousand hints`);
  await clock.tick(LONGEST_HINT_GAP_MS);
  assert.ok((sentMs.at(-1) ?? 0) >= 999, "one left behind the last that was asked for");
  const left = sentMs.length;
  await clock.tick(60_000);
  assert.equal(sentMs.length, left, "and none for nothing");
  publish();
  await clock.tick(0);
  publish();
  await topics.close();
  assert.equal(sentMs.length, left + 2, "what was held back leaves on close");
});

Deno.test("no more than a thousand hints wait", async () => {
  const counts: number[] = [];
  let release = () => {};
  const topics = new PostgresTopics({
    async run(_sql, params) {
      counts.push((JSON.parse(params[1] ?? "[]") as string[]).length);
      await new Promise<void>((resolve) => release = resolve);
    },
  });
  const first = topics.publish("WORK_AVAILABLE", { lane: "first" });
  await waitFor("the first to leave", () => counts.length === 1);
  const later = Array.from({ length: 1_500 }, (_, i) => topics.publish("WORK_AVAILABLE", { lane: `${i}` }));
  release();
  await first;
  await waitFor("the rest to leave", () => counts.length === 2);
  release();
  await Promise.all(later);
  assert.deepEqual(counts, [1, 1_000]);
  await topics.close();
});
