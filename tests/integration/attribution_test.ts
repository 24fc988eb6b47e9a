/**
 * Who is named for what a worker does: the person who asked, in what runs for them; nobody, in what is bookkeeping.
 */
import assert from "node:assert/strict";
import type { OpContext } from "../../src/core/context.ts";
import { FinalError } from "../../src/core/errors.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import { ANY, openManagers } from "../support/managers_rig.ts";
import { ENGINES } from "../support/stores.ts";
import { TASK, WorkerRig } from "../support/worker_rig.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

for (const engine of ENGINES) {
  Deno.test(`an audit entry names no person, the item's own request and the program that wrote it, on ${engine}`, async () => {
    const rig = await openManagers(engine);
    try {
      const { work, tenancy, audit } = rig.managers;
      const ctx = await rig.member();
      const worker = tenancy.requestContext({ type: "WORKER", version: "worker@1" });
      const sweeper = tenancy.requestContext({ type: "WORKER", version: "sweeper@2" });
      const claim = { lane: "default", kinds: [ANY.name], worker: "w", leaseMs: 1_000, limit: 1 };
      const make = () => work.enqueue(ctx, { kind: ANY.name, idempotencyKey: newId(), payload: {}, maxAttempts: 1 });

      // By the worker that ran it; by the sweep, after its claim expired; and of an item the relay made.
      const failed = await make();
      const [held] = await work.claim(worker, claim);
      assert.ok(held);
      await work.fail(held.ctx, held.item, new FinalError("no"));
      const expired = await make();
      await work.claim(worker, claim);
      await rig.test.advance(2_000);
      await work.requeueStale(await tenancy.serviceContext(sweeper, ctx.orgId));
      await work.auditDeadLetters(sweeper);
      const relayed = outboxRow(ctx);
      await work.enqueueRelayed(ctx.orgId, relayed);
      const [third] = await work.claim(worker, claim);
      assert.equal(third?.item.id, relayed.id);
      await work.fail(third.ctx, third.item, new FinalError("no"));

      const entries = await audit.readEntries(ctx, { limit: 10 });
      const told = (id: string) => {
        const entry = entries.find(({ subjectId }) => subjectId === id);
        return [entry?.action, entry?.subjectType, entry?.orgId, entry?.actorId, entry?.requestId, entry?.app];
      };
      const bookkeeping = ["WORK_DEAD_LETTERED", "work_item", ctx.orgId, EMPTY_UUID];
      assert.equal(entries.length, 3);
      assert.deepEqual(told(failed.id), [...bookkeeping, ctx.requestId, "worker@1"]);
      assert.deepEqual(told(expired.id), [...bookkeeping, ctx.requestId, "sweeper@2"]);
      assert.deepEqual(told(relayed.id), [...bookkeeping, relayed.requestId, "worker@1"]);
    } finally {
      await rig.close();
    }
  });
}

Deno.test("a handler runs under the person who asked, and what it enqueues is theirs and of the same trace", async () => {
  await WorkerRig.with(async (rig) => {
    const { tenancy, work } = rig.managers;
    const request = tenancy.requestContext({ type: "SERVICE", version: "site@7" }, { traceparent: TRACE });
    const org = await tenancy.createOrg(request, { name: "Org" });
    const user = await tenancy.createUser(request, { name: "Ana" });
    await tenancy.addMember(request, { orgId: org.id, userId: user.id, role: "OWNER" });
    const asked = await tenancy.memberContext(request, org.id, user.id);
    const ran: OpContext[] = [];
    const first = await rig.enqueue(asked, { payload: { then: "child" } });
    rig.start(async (ctx, item) => {
      ran.push(ctx);
      if (item.payload.then === undefined) return;
      await work.enqueue(ctx, { kind: TASK.name, idempotencyKey: "child", payload: {} });
    });
    await rig.until("both ran", () => ran.length === 2);
    await rig.untilStatus(asked, first, "done");

    for (const ctx of ran) {
      assert.deepEqual([ctx.orgId, ctx.userId, ctx.role, ctx.app.version], [org.id, user.id, "SERVICE", "rig@0"]);
      assert.equal(ctx.traceparent, TRACE);
    }
    const [parent, child] = ran;
    assert.equal(parent?.causedByRequestId, asked.requestId);
    assert.notEqual(parent?.requestId, asked.requestId, "the run is a request of its own");
    assert.equal(child?.causedByRequestId, parent?.requestId, "caused by the run that asked for it");
    const { item } = await work.enqueue(asked, { kind: TASK.name, idempotencyKey: "child", payload: {} });
    assert.deepEqual(
      [item?.createdBy, item?.requestId, item?.traceparent],
      [user.id, parent?.requestId, TRACE],
    );
  });
});

function outboxRow(ctx: OpContext): OutboxRow {
  return {
    id: newId(),
    orgId: ctx.orgId,
    kind: "work.any",
    payload: {},
    actorId: ctx.userId,
    requestId: newId(),
    traceparent: TRACE,
    createdAt: new Date(),
  };
}
