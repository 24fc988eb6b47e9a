import assert from "node:assert/strict";
import type { RequestContext } from "../../src/core/context.ts";
import { FinalError, UnavailableError, ValidationError } from "../../src/core/errors.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { MemoryTopics } from "../../src/infra/memory_topics.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import { MAX_DELAY_MS } from "../../src/work/rules.ts";
import type { ClaimedItem, NewWorkItem } from "../../src/work/types.ts";
import { createWorkManager } from "../../src/work/work_manager.ts";
import { ANY, type ManagersRig, openManagers, withStorage } from "../support/managers_rig.ts";
import { ENGINES } from "../support/stores.ts";

const NUL = "\u0000";
const LONE = "\uD83D";

function item(fields: Partial<NewWorkItem> = {}): NewWorkItem {
  return { kind: ANY.name, idempotencyKey: newId(), payload: {}, lane: "default", ...fields };
}

function claim(rig: ManagersRig, lane: string, rctx: RequestContext = rig.rctx, limit = 10): Promise<ClaimedItem[]> {
  return rig.managers.work.claim(rctx, { lane, kinds: [ANY.name], worker: "w", leaseMs: 30_000, limit });
}

function lane(): string {
  return `lane-${newId()}`;
}

function outboxRow(orgId: string, fields: Partial<OutboxRow> = {}): OutboxRow {
  return {
    id: newId(),
    orgId,
    kind: "work.any",
    payload: { note: "x" },
    actorId: newId(),
    requestId: newId(),
    traceparent: "00-11111111111111111111111111111111-2222222222222222-01",
    createdAt: new Date(),
    ...fields,
  };
}

/** Counts hints of one lane. */
function hints(topics: MemoryTopics, ofLane: string): () => Promise<number> {
  let count = 0;
  topics.subscribe("WORK_AVAILABLE", (event) => {
    if (event.type === "message" && event.payload.lane === ofLane) count++;
  });
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, 0));
    return count;
  };
}

const CASES: Readonly<Record<string, (rig: ManagersRig) => Promise<void>>> = {
  "enqueue() stamps actor, status and attempts over what was sent, and keeps id and timestamps": async (rig) => {
    const ctx = await rig.member();
    const createdAt = new Date(Date.UTC(2025, 5, 1));
    const id = newId();
    const sent = {
      ...item({ id, createdAt, updatedAt: createdAt }),
      status: "done",
      attempts: 7,
      claimToken: newId(),
      claimedBy: "me",
      createdBy: newId(),
      lastError: "x",
    };
    const { outcome } = await rig.managers.work.enqueue(ctx, sent);
    assert.equal(outcome, "INSERTED");
    const row = await rig.managers.work.read(ctx, id);
    assert.deepEqual(
      [row.status, row.attempts, row.claimToken, row.claimedBy, row.lastError, row.createdBy, row.updatedBy],
      ["queued", 0, null, null, null, ctx.userId, ctx.userId],
    );
    assert.deepEqual([row.createdAt, row.updatedAt], [createdAt, createdAt]);
    assert.deepEqual([row.requestId, row.traceparent], [ctx.requestId, ctx.traceparent]);
  },
  "enqueue() publishes when it inserted, and only then": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const count = hints(rig.topics, inLane);
    const one = item({ lane: inLane });
    await rig.managers.work.enqueue(ctx, one);
    assert.equal(await count(), 1);
    await rig.managers.work.enqueue(ctx, one);
    await assert.rejects(rig.managers.work.enqueue(ctx, item({ lane: inLane, payload: { a: NUL } })));
    assert.equal(await count(), 1);
  },
  "a retried enqueue leaves a claimed, a done and a dead item as it stands, and returns it": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    for (const end of ["claimed", "done", "failed"] as const) {
      const one = item({ id: newId(), lane: inLane });
      await rig.managers.work.enqueue(ctx, one);
      const [held] = await claim(rig, inLane);
      assert.ok(held);
      if (end === "done") await rig.managers.work.complete(held.ctx, held.item);
      if (end === "failed") await rig.managers.work.fail(held.ctx, held.item, new FinalError("no"));
      const before = await rig.managers.work.read(ctx, held.item.id);
      assert.equal(before.status, end);
      const sameId = await rig.managers.work.enqueue(ctx, one);
      assert.deepEqual([sameId.outcome, sameId.id, sameId.item], ["ID_EXISTS", one.id, before]);
      const sameKey = await rig.managers.work.enqueue(ctx, { ...item(), idempotencyKey: one.idempotencyKey });
      assert.deepEqual([sameKey.outcome, sameKey.id, sameKey.item], ["KEY_EXISTS", one.id, before]);
      assert.deepEqual(await rig.managers.work.read(ctx, held.item.id), before);
    }
  },
  "fifty enqueues of one key at once: one is told inserted, all get that item's id": async (rig) => {
    const ctx = await rig.member();
    const key = newId();
    const results = await Promise.all(
      Array.from({ length: 50 }, () => rig.managers.work.enqueue(ctx, item({ idempotencyKey: key }))),
    );
    assert.equal(new Set(results.map((r) => r.id)).size, 1);
    assert.equal(results.filter((r) => r.outcome === "INSERTED").length, 1);
  },
  "payloads that JSON or Postgres would change are refused before any statement, naming the path": async (rig) => {
    const ctx = await rig.member();
    const key = newId();
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const bad: [unknown, string][] = [
      [{ note: `a${NUL}b` }, "payload.note"],
      [{ a: [{ b: NUL }] }, "payload.a[0].b"],
      [{ [`k${NUL}`]: 1 }, 'payload["k\\u0000"]'],
      [{ note: `a${LONE}b` }, "payload.note"],
      [{ a: [{ b: LONE }] }, "payload.a[0].b"],
      [{ [LONE]: 1 }, 'payload["\\ud83d"]'],
      [{ a: [1, undefined] }, "payload.a[1]"],
      [{ a: NaN }, "payload.a"],
      [{ a: -Infinity }, "payload.a"],
      [{ a: 1n }, "payload.a"],
      [{ a: new Date() }, "payload.a"],
      [{ a: new Map() }, "payload.a"],
      [{ a: 2 ** 53 }, "payload.a"],
      [{ a: Symbol("s") }, "payload.a"],
      [{ a: () => 1 }, "payload.a"],
      [circular, "payload.self"],
      [[], "payload"],
      ["text", "payload"],
      [null, "payload"],
      [{ big: "x".repeat(262_144) }, "payload"],
    ];
    for (const [payload, path] of bad) {
      await assert.rejects(
        rig.managers.work.enqueue(ctx, item({ idempotencyKey: key, payload: payload as never })),
        (error: unknown) => error instanceof ValidationError && error.field === path && error.message.includes(path),
        path,
      );
    }
    const legal = { a: "\u0001", b: "🚚", c: "\\u0000", d: 2 ** 53 - 1, e: 5e-324, f: 0.1, absent: undefined };
    const result = await rig.managers.work.enqueue(ctx, item({ idempotencyKey: key, payload: legal }));
    assert.equal(result.outcome, "INSERTED", "the key is still free");
    const { absent: _absent, ...expected } = legal;
    assert.deepEqual((await rig.managers.work.read(ctx, result.id)).payload, expected);
  },
  "numbers and times out of range are refused naming the field, never clipped": async (rig) => {
    const ctx = await rig.member();
    const { work } = rig.managers;
    for (const priority of [32_768, 2_147_483_648, -1, 1.5, NaN]) {
      await assert.rejects(work.enqueue(ctx, item({ priority })), { field: "priority" });
    }
    for (const maxAttempts of [0, -1, 2_147_483_648, 1.5]) {
      await assert.rejects(work.enqueue(ctx, item({ maxAttempts })), { field: "maxAttempts" });
    }
    for (const delayMs of [-1, NaN, 1.5, Infinity, 9_007_199_254_740_991]) {
      await assert.rejects(work.enqueue(ctx, item(), { delayMs }), { field: "delayMs" });
    }
    for (
      const [field, fields] of Object.entries({
        idempotencyKey: { idempotencyKey: "" },
        lane: { lane: "no spaces" },
        id: { id: "not-a-uuid" },
        targetId: { targetId: "x" },
        kind: { kind: "UNKNOWN" },
      })
    ) {
      await assert.rejects(work.enqueue(ctx, item(fields)), { field });
    }
    await assert.rejects(work.enqueue(ctx, item({ idempotencyKey: "k".repeat(201) })), { field: "idempotencyKey" });
    await assert.rejects(work.enqueue(ctx, item({ idempotencyKey: NUL })), { field: "idempotencyKey" });
    await assert.rejects(work.enqueue(ctx, item(), { delayMs: 1, notBefore: new Date() }), { field: "notBefore" });
  },
  "long delays are stored to the second and do not run": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const start = Date.now();
    for (const delayMs of [25 * 86_400_000, 2 ** 31 + 1, MAX_DELAY_MS]) {
      const { id } = await rig.managers.work.enqueue(ctx, item({ lane: inLane }), { delayMs });
      const { availableAt } = await rig.managers.work.read(ctx, id);
      const wanted = (rig.storages.work.engine === "sqlite" ? Date.UTC(2026, 0, 1) : start) + delayMs;
      const off = availableAt.getTime() - wanted;
      // The embedded store's clock is the test's own and may have been moved on by other cases.
      assert.ok(off >= -1_000 && off <= 10_000_000, `${delayMs}: ${off} ms off`);
    }
    await rig.managers.work.promote(rig.rctx, 1_000);
    assert.deepEqual(await claim(rig, inLane), []);
  },
  "enqueueMany() gives each item its own result, and one bad item harms no other": async (rig) => {
    const ctx = await rig.member();
    const first = item();
    await rig.managers.work.enqueue(ctx, first);
    const results = await rig.managers.work.enqueueMany(ctx, [
      item(),
      item({ payload: { a: NUL } }),
      { ...item(), idempotencyKey: first.idempotencyKey },
      item(),
    ]);
    assert.deepEqual(results.map((r) => r instanceof ValidationError ? r.field : "outcome" in r ? r.outcome : r), [
      "INSERTED",
      "payload.a",
      "KEY_EXISTS",
      "INSERTED",
    ]);
  },
  "enqueueMany() takes more items than one statement holds": async (rig) => {
    const ctx = await rig.member();
    const results = await rig.managers.work.enqueueMany(
      ctx,
      Array.from({ length: 2_500 }, () => item({ lane: lane() })),
    );
    assert.equal(results.filter((r) => "outcome" in r && r.outcome === "INSERTED").length, 2_500);
  },
  "enqueueRelayed() takes id, key, actor, request and trace from the row, the lane from its payload": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const count = hints(rig.topics, inLane);
    const row = outboxRow(ctx.orgId, { payload: { lane: inLane, note: "x" } });
    assert.equal(await rig.managers.work.enqueueRelayed(ctx.orgId, row), "ENQUEUED");
    const stored = await rig.managers.work.read(ctx, row.id);
    assert.deepEqual(
      [stored.idempotencyKey, stored.kind, stored.lane, stored.payload, stored.createdBy],
      [row.id, "ANY", inLane, { note: "x" }, row.actorId],
    );
    assert.deepEqual([stored.requestId, stored.traceparent], [row.requestId, row.traceparent]);
    assert.equal(await rig.managers.work.enqueueRelayed(ctx.orgId, row), "EXISTS");
    assert.equal(await count(), 2, "a second relay that meets its own row still queued publishes");
    const [held] = await claim(rig, inLane);
    assert.equal(held?.item.id, row.id, "one item");
    assert.equal(await rig.managers.work.enqueueRelayed(ctx.orgId, row), "EXISTS");
    assert.equal(await count(), 2, "once it is claimed nobody is woken");
    assert.equal(
      await rig.managers.work.enqueueRelayed(ctx.orgId, outboxRow(ctx.orgId, { kind: "work.nope" })),
      "UNKNOWN_KIND",
    );
  },
  "claim() gives the enqueuer's context under the service role, each item's own request as its cause": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const { id } = await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const second = outboxRow(ctx.orgId, { payload: { lane: inLane }, actorId: ctx.userId });
    await rig.managers.work.enqueueRelayed(ctx.orgId, second);
    const request = rig.managers.tenancy.requestContext({ type: "WORKER", version: "w@1" });
    const claimed = await claim(rig, inLane, request);
    assert.deepEqual(new Set(claimed.map((c) => c.item.id)), new Set([id, second.id]));
    for (const { ctx: under, item: held } of claimed) {
      assert.deepEqual(
        [under.orgId, under.userId, under.role, under.requestId, under.app.version],
        [ctx.orgId, ctx.userId, "SERVICE", request.requestId, "w@1"],
      );
      assert.equal(under.causedByRequestId, held.id === id ? ctx.requestId : second.requestId);
      assert.ok(held.claimToken !== null);
    }
  },
  "claim() gives the org's service context for the system's items and for those of a member who left": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const service = await rig.managers.tenancy.serviceContext(rig.rctx, ctx.orgId);
    await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    await rig.managers.work.enqueue(service, item({ lane: inLane }));
    await rig.managers.tenancy.endMembership(rig.rctx, ctx.orgId, ctx.userId);
    const claimed = await claim(rig, inLane);
    assert.deepEqual(claimed.map((c) => c.ctx.userId), [EMPTY_UUID, EMPTY_UUID]);
  },
  "claim() fails an item whose org is gone, never hands it out, and goes on with the others": async (rig) => {
    const [gone, here] = [await rig.member(), await rig.member()];
    const inLane = lane();
    const orphan = await rig.managers.work.enqueue(gone, item({ lane: inLane }));
    const { id } = await rig.managers.work.enqueue(here, item({ lane: inLane }));
    await rig.managers.tenancy.endOrg(rig.rctx, gone.orgId);
    assert.deepEqual((await claim(rig, inLane)).map((c) => c.item.id), [id]);
    const row = await rig.managers.work.read(gone, orphan.id);
    assert.deepEqual([row.status, row.auditId, row.lastError], ["failed", null, "the item's org is gone"]);
    assert.deepEqual(await rig.managers.audit.readEntries(gone, { limit: 5 }), [], "no audit entry for an orphan");
  },
  "claim() moves on past an ended org's backlog in one call": async (rig) => {
    const [gone, here] = [await rig.member(), await rig.member()];
    const inLane = lane();
    await rig.managers.work.enqueueMany(gone, Array.from({ length: 12 }, () => item({ lane: inLane, priority: 1 })));
    const { id } = await rig.managers.work.enqueue(here, item({ lane: inLane }));
    await rig.managers.tenancy.endOrg(rig.rctx, gone.orgId);
    assert.deepEqual((await claim(rig, inLane, rig.rctx, 5)).map((c) => c.item.id), [id]);
  },
  "claim() releases its whole batch, uncharged, when the contexts cannot be read": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const { id } = await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const broken = createWorkManager({
      storage: rig.storages.work,
      tenancy: {
        ...rig.managers.tenancy,
        claimContexts: () => Promise.reject(new UnavailableError("core is away", "not-executed")),
      },
      audit: rig.managers.audit,
      topics: rig.topics,
      clock: systemClock,
      logger: silentLogger,
      metrics: noMetrics,
      kinds: [ANY],
      itemRetentionMs: 1,
      keyRetentionMs: 1,
    });
    const options = { lane: inLane, kinds: [ANY.name], worker: "w", leaseMs: 30_000, limit: 5 };
    await assert.rejects(broken.claim(rig.rctx, options), { code: "UNAVAILABLE" });
    const row = await rig.managers.work.read(ctx, id);
    assert.deepEqual([row.status, row.attempts], ["queued", 0]);
    assert.equal((await claim(rig, inLane)).length, 1);
  },
  "a claim whose answer was lost is found again by its token and runs, its attempt spent once": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    let lost = false;
    const work = withStorage(rig, {
      claim: async (request) => {
        const rows = await rig.storages.work.claim(request);
        if (lost) return rows;
        lost = true;
        throw new UnavailableError("the answer was lost", "unknown");
      },
    });
    const options = { lane: inLane, kinds: [ANY.name], worker: "w", leaseMs: 30_000, limit: 5 };
    await assert.rejects(work.claim(rig.rctx, options), { code: "UNAVAILABLE" });
    const [found, ...more] = await work.claim(rig.rctx, options);
    assert.ok(found);
    assert.equal(more.length, 0);
    assert.equal(found.item.attempts, 1);
    await work.complete(found.ctx, found.item);
  },
  "an enqueue whose answer was lost is told inserted, and there is one row": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    let calls = 0;
    const work = withStorage(rig, {
      createItems: async (orgId, inserts) => {
        const outcomes = await rig.storages.work.createItems(orgId, inserts);
        if (++calls === 1) throw new UnavailableError("the answer was lost", "unknown");
        return outcomes;
      },
    });
    assert.equal((await work.enqueue(ctx, item({ lane: inLane }))).outcome, "INSERTED");
    assert.equal((await claim(rig, inLane)).length, 1);
  },
  "one row whose data the storage refuses harms no other settlement of its batch": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    await rig.managers.work.enqueueMany(ctx, Array.from({ length: 3 }, () => item({ lane: inLane })));
    const claimed = await claim(rig, inLane);
    const [bad] = claimed;
    const work = withStorage(rig, {
      settle: (settlements) => {
        if (settlements.some((s) => s.id === bad?.item.id)) throw new ValidationError("note", "this row's data");
        return rig.storages.work.settle(settlements);
      },
    });
    const results = await Promise.allSettled(claimed.map((c) => work.complete(c.ctx, c.item)));
    assert.deepEqual(results.map((r) => r.status), ["rejected", "fulfilled", "fulfilled"]);
  },
  "every write after the enqueue signs as the system": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const { work } = rig.managers;
    const acts: [string, (c: ClaimedItem) => Promise<unknown>][] = [
      ["complete", (c) => work.complete(c.ctx, c.item)],
      ["fail", (c) => work.fail(c.ctx, c.item, new Error("x"))],
      ["dead-letter", (c) => work.fail(c.ctx, c.item, new FinalError("x"))],
      ["defer", (c) => work.defer(c.ctx, c.item, 3_600_000)],
      ["extend", (c) => work.extendLease(c.ctx, c.item, 60_000)],
      ["release", (c) => work.release(c.ctx, c.item, "note", 3_600_000)],
    ];
    for (const [name, act] of acts) {
      await work.enqueue(ctx, item({ lane: inLane }));
      const [held] = await claim(rig, inLane);
      assert.ok(held, name);
      await act(held);
      const row = await work.read(ctx, held.item.id);
      assert.deepEqual([row.updatedBy, row.createdBy], [EMPTY_UUID, ctx.userId], name);
    }
  },
  "a dead letter gets one audit entry that names it, and a crash between the two is made good by the sweep": async (
    rig,
  ) => {
    const ctx = await rig.member();
    const inLane = lane();
    const { work, audit } = rig.managers;
    await work.enqueueMany(ctx, [item({ lane: inLane }), item({ lane: inLane })]);
    const [first, second] = await claim(rig, inLane);
    assert.ok(first && second);
    assert.equal(await work.fail(first.ctx, first.item, new FinalError("for good")), "DEAD_LETTERED");
    const crashed = createWorkManager({
      storage: rig.storages.work,
      tenancy: rig.managers.tenancy,
      audit: { ...audit, appendEntries: () => Promise.reject(new Error("crash")) },
      topics: rig.topics,
      clock: systemClock,
      logger: silentLogger,
      metrics: noMetrics,
      kinds: [ANY],
      itemRetentionMs: 1,
      keyRetentionMs: 1,
    });
    await crashed.fail(second.ctx, second.item, new FinalError("crashed"));
    assert.ok((await work.read(ctx, second.item.id)).auditId !== null);
    assert.equal((await audit.readEntries(ctx, { limit: 5 })).length, 1);
    await work.auditDeadLetters(rig.rctx);
    await work.auditDeadLetters(rig.rctx);
    const entries = await audit.readEntries(ctx, { limit: 5 });
    assert.deepEqual(new Set(entries.map((e) => e.subjectId)), new Set([first.item.id, second.item.id]));
    assert.equal(entries.length, 2);
    for (const id of [first.item.id, second.item.id]) assert.equal((await work.read(ctx, id)).auditId, null);
  },
  "a dead-lettering whose answer was lost, repeated, leaves one audit entry": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    let lost = false;
    const work = withStorage(rig, {
      settle: async (settlements) => {
        const outcomes = await rig.storages.work.settle(settlements);
        if (lost) return outcomes;
        lost = true;
        throw new UnavailableError("the answer was lost", "unknown");
      },
    });
    await work.enqueue(ctx, item({ lane: inLane }));
    const [held] = await claim(rig, inLane);
    assert.ok(held);
    const error = new FinalError("for good");
    await assert.rejects(work.fail(held.ctx, held.item, error), { code: "UNAVAILABLE" });
    assert.equal(await work.fail(held.ctx, held.item, error), "DEAD_LETTERED");
    await work.auditDeadLetters(rig.rctx);
    const entries = await rig.managers.audit.readEntries(ctx, { limit: 5 });
    assert.deepEqual(entries.map((e) => e.subjectId), [held.item.id]);
  },
  "release() wakes the lane, so that another worker begins at once": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    await rig.managers.work.enqueue(ctx, item({ lane: inLane }));
    const [held] = await claim(rig, inLane);
    assert.ok(held);
    const count = hints(rig.topics, inLane);
    await rig.managers.work.release(held.ctx, held.item);
    assert.equal(await count(), 1);
  },
  "fail() at a high attempt number stays in the documented range and ends as a dead letter": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const { work } = rig.managers;
    for (const attempts of [31, 32, 63, 64, 98, 99]) {
      const { id } = await work.enqueue(ctx, item({ lane: inLane, maxAttempts: 100 }));
      await rig.test.sql(
        `update ${rig.test.table("queue.work_items")} set attempts = ${attempts} where id = '${id}' returning id`,
      );
      const [held] = await claim(rig, inLane);
      assert.ok(held);
      const outcome = await work.fail(held.ctx, held.item, new Error("x"));
      assert.equal(outcome, attempts === 99 ? "DEAD_LETTERED" : "RETRIED");
      const row = await work.read(ctx, id);
      const delayMs = row.availableAt.getTime() - row.updatedAt.getTime();
      if (outcome === "RETRIED") assert.ok(delayMs > 0 && delayMs <= 3_600_000, `${attempts}: ${delayMs}`);
    }
  },
  "complete(), fail() and the others refuse an item that was never claimed": async (rig) => {
    const ctx = await rig.member();
    const { work } = rig.managers;
    const { item: stored } = await work.enqueue(ctx, item());
    assert.ok(stored);
    await assert.rejects(work.complete(ctx, stored), { code: "CONFLICT" });
    await assert.rejects(work.extendLease(ctx, stored, 30_000), { code: "CONFLICT" });
  },
  "purgeItems() and purgeKeys() go by the retention of the options": async (rig) => {
    const ctx = await rig.member();
    const inLane = lane();
    const { work } = rig.managers;
    const { id } = await work.enqueue(ctx, item({ lane: inLane }));
    const [held] = await claim(rig, inLane);
    assert.ok(held);
    await work.complete(held.ctx, held.item);
    await work.purgeItems(rig.rctx);
    assert.equal((await work.read(ctx, id)).status, "done", "not before its retention");
    await rig.test.advance(61_000);
    assert.ok(await work.purgeItems(rig.rctx) >= 1);
    await assert.rejects(work.read(ctx, id), { code: "NOT_FOUND" });
    await rig.test.advance(61_000);
    assert.ok(await work.purgeKeys(rig.rctx) >= 1);
  },
  "read() finds nothing of another org": async (rig) => {
    const [one, other] = [await rig.member(), await rig.member()];
    const { id } = await rig.managers.work.enqueue(one, item());
    await assert.rejects(rig.managers.work.read(other, id), { code: "NOT_FOUND" });
  },
};

for (const engine of ENGINES) {
  Deno.test(`WorkManager on ${engine}`, async (t) => {
    const rig = await openManagers(engine);
    try {
      for (const [name, run] of Object.entries(CASES)) {
        await t.step({ name, fn: () => run(rig), sanitizeOps: false, sanitizeResources: false });
      }
    } finally {
      await rig.close();
    }
  });
}
