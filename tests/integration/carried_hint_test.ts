/**
 * A hint that leaves with the insert it tells of: once, with the commit, when something was inserted.
 */
import assert from "node:assert/strict";
import { UnavailableError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { systemClock } from "../../src/core/clock.ts";
import { PostgresClient } from "../../src/db/client.ts";
import {
  type CarriedHint,
  encodeHint,
  HINT_CHANNEL,
  type TopicName,
  type TopicPayloads,
  type Topics,
} from "../../src/infra/topics.ts";
import { CHAINS } from "../../src/migrations.ts";
import { PostgresWorkStorage } from "../../src/work/storage/postgres.ts";
import type { WorkStorage } from "../../src/work/storage.ts";
import { createWorkManager } from "../../src/work/work_manager.ts";
import { insertOf } from "../support/breach_world.ts";
import { ANY, type ManagersRig, openManagers } from "../support/managers_rig.ts";
import { overlay } from "../support/overlay.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

Deno.test("createItems() sends the hint it is given with its commit, and only when it inserted something", async () => {
  const db = await createTestDatabase(CHAINS);
  const heard: string[] = [];
  const client = await PostgresClient.open(db.url("system"), { onNotify: (_channel, text) => heard.push(text) });
  try {
    await client.query(`listen ${HINT_CHANNEL}`);
    const storage = new PostgresWorkStorage(db.databases.queue);
    const [orgId, first, second] = [newId(), insertOf(), insertOf()];
    assert.deepEqual(await storage.createItems(orgId, [first], "one"), ["INSERTED"]);
    assert.deepEqual(await storage.createItems(orgId, [first], "again"), ["ID_EXISTS"]);
    const sameKey = insertOf({ idempotencyKey: first.item.idempotencyKey });
    assert.deepEqual(await storage.createItems(orgId, [sameKey], "the key"), ["KEY_EXISTS"]);
    assert.deepEqual(await storage.createItems(orgId, [first, second, insertOf()], "some"), [
      "ID_EXISTS",
      "INSERTED",
      "INSERTED",
    ]);
    assert.deepEqual(await storage.createItems(orgId, [insertOf()]), ["INSERTED"]);
    await client.query("select pg_notify($1, 'last')", [HINT_CHANNEL]);
    await waitFor("the last notification", () => heard.includes("last"));
    assert.deepEqual(heard, ["one", "some", "last"]);
  } finally {
    await client.close();
    await db.drop();
  }
});

/** Topics that let every hint be carried, or none, and note what they are asked. */
class NotedTopics implements Topics {
  published = 0;
  carried = 0;
  ended = 0;
  carries = true;

  publish(): Promise<void> {
    this.published++;
    return Promise.resolve();
  }

  carry<T extends TopicName>(topic: T, payload: TopicPayloads[T]): CarriedHint | null {
    if (!this.carries) return null;
    this.carried++;
    return { text: encodeHint(topic, payload), ended: () => void this.ended++ };
  }

  subscribe(): () => void {
    return () => {};
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function workOver(rig: ManagersRig, topics: Topics, storage: WorkStorage) {
  return createWorkManager({
    storage,
    tenancy: rig.managers.tenancy,
    audit: rig.managers.audit,
    topics,
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [ANY],
    itemRetentionMs: 60_000,
    keyRetentionMs: 120_000,
  });
}

const item = () => ({ kind: ANY.name, idempotencyKey: newId(), payload: {} });

Deno.test("enqueue() has its hint carried where topics allow it now, and else publishes it behind the insert", async () => {
  const rig = await openManagers("postgres");
  try {
    const topics = new NotedTopics();
    const ctx = await rig.member();
    const work = workOver(rig, topics, rig.storages.work);
    const again = item();
    assert.equal((await work.enqueue(ctx, again)).outcome, "INSERTED");
    assert.deepEqual([topics.carried, topics.ended, topics.published], [1, 1, 0]);
    assert.equal((await work.enqueue(ctx, again)).outcome, "KEY_EXISTS");
    assert.deepEqual([topics.carried, topics.ended, topics.published], [2, 2, 0]);
    topics.carries = false;
    assert.equal((await work.enqueue(ctx, again)).outcome, "KEY_EXISTS");
    assert.equal(topics.published, 0);
    assert.equal((await work.enqueue(ctx, item())).outcome, "INSERTED");
    assert.equal(topics.published, 1);
  } finally {
    await rig.close();
  }
});

Deno.test("an insert whose answer is lost carries its hint in the next try too; one that fails lets go of it", async () => {
  const rig = await openManagers("postgres");
  try {
    const topics = new NotedTopics();
    const ctx = await rig.member();
    const hints: (string | null | undefined)[] = [];
    const storage = overlay<WorkStorage>(rig.storages.work, {
      createItems(orgId, inserts, hint) {
        hints.push(hint);
        if (hints.length === 1) return Promise.reject(new UnavailableError("lost before it landed", "unknown"));
        if (hints.length === 3) return Promise.reject(new UnavailableError("down", "not-executed"));
        return rig.storages.work.createItems(orgId, inserts, hint);
      },
    });
    const work = workOver(rig, topics, storage);
    assert.equal((await work.enqueue(ctx, item())).outcome, "INSERTED");
    const text = encodeHint("WORK_AVAILABLE", { lane: "default" });
    assert.deepEqual(hints, [text, text]);
    await assert.rejects(work.enqueue(ctx, item()), UnavailableError);
    assert.deepEqual([topics.carried, topics.ended, topics.published], [2, 2, 0]);
  } finally {
    await rig.close();
  }
});

Deno.test("a store that sends no hints has none carried: they are published", async () => {
  const rig = await openManagers("sqlite :memory:");
  try {
    const topics = new NotedTopics();
    await workOver(rig, topics, rig.storages.work).enqueue(await rig.member(), item());
    assert.deepEqual([topics.carried, topics.published], [0, 1]);
  } finally {
    await rig.close();
  }
});
