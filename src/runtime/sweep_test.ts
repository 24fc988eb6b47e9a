import assert from "node:assert/strict";
import { z } from "zod";
import { TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import { insertOutboxRows, newOutboxRow } from "../outbox/rows.ts";
import { defineKind } from "../work/kinds.ts";
import type { SweepStep } from "./types.ts";

const OTHER = defineKind("OTHER", { schema: z.looseObject({}) });

Deno.test("the first sweep is at once and takes up what a crash left: claims, outbox rows, audit entries", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const stale = await rig.enqueue(ctx);
    const dead = await rig.enqueue(ctx, { maxAttempts: 1 });
    const options = { lane: "default", kinds: ["TASK"], worker: "dead", leaseMs: 1_000, limit: 10 };
    assert.equal((await rig.managers.work.claim(rig.rctx, options)).length, 2);
    const row = newOutboxRow(ctx, "work.task", { from: "outbox" });
    await rig.db.write((s) => insertOutboxRows(s, [row]));
    await rig.clock.tick(2_000);
    const started: string[] = [];
    rig.start((_ctx, item) => void started.push(item.id));
    await rig.clock.tick(200);
    assert.deepEqual(new Set(started), new Set([stale, row.id]));
    const item = await rig.read(ctx, dead);
    assert.deepEqual([item.status, item.auditId], ["failed", null]);
    const [entry] = await rig.managers.audit.readEntries(ctx, { limit: 5 });
    assert.deepEqual([entry?.subjectId, entry?.action], [dead, "WORK_DEAD_LETTERED"]);
  }));

Deno.test("expired claims of an org that ended are failed without an audit entry, and never run", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const waiting = await rig.enqueue(ctx, {}, { delayMs: 60_000 });
    const options = { lane: "default", kinds: ["TASK"], worker: "dead", leaseMs: 1_000, limit: 10 };
    await rig.managers.work.claim(rig.rctx, options);
    await rig.managers.tenancy.endOrg(rig.rctx, ctx.orgId);
    await rig.clock.tick(2_000);
    let runs = 0;
    rig.start(() => void runs++);
    await rig.clock.tick(75_000);
    for (const one of [id, waiting]) {
      const item = await rig.read(ctx, one);
      assert.deepEqual([item.status, item.auditId, item.lastError], ["failed", null, "the item's org is gone"]);
    }
    assert.equal(runs, 0);
    assert.equal(rig.counts.get("laneway_items_orphaned_total TASK"), 1);
  }));

Deno.test("finished items are purged after their retention, keys after theirs", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { idempotencyKey: "once" });
    rig.start(() => {});
    await rig.untilStatus(ctx, id, "done");
    rig.clock.jumpWall(3_600_000);
    await rig.clock.tick(61_000);
    await assert.rejects(rig.read(ctx, id), { code: "NOT_FOUND" });
    const again = await rig.managers.work.enqueue(ctx, { kind: "TASK", idempotencyKey: "once", payload: {} });
    assert.deepEqual([again.outcome, again.id, again.item], ["KEY_EXISTS", id, null]);
    rig.clock.jumpWall(7_200_000);
    await rig.clock.tick(61_000);
    const fresh = await rig.managers.work.enqueue(ctx, { kind: "TASK", idempotencyKey: "once", payload: {} });
    assert.equal(fresh.outcome, "INSERTED");
  }));

Deno.test("an org whose items cannot be taken back keeps no other org's from coming back", () =>
  WorkerRig.with(async (rig) => {
    const orgs = [await rig.org(), await rig.org(), await rig.org()];
    const ids = await Promise.all(orgs.map((ctx) => rig.enqueue(ctx)));
    const options = { lane: "default", kinds: ["TASK"], worker: "dead", leaseMs: 1_000, limit: 10 };
    assert.equal((await rig.managers.work.claim(rig.rctx, options)).length, 3);
    await rig.clock.tick(2_000);
    const sick = orgs[0]?.orgId;
    const requeueStale: typeof rig.managers.work.requeueStale = (ctx, limit) =>
      ctx.orgId === sick ? Promise.reject(new Error("sick")) : rig.managers.work.requeueStale(ctx, limit);
    rig.start(() => {}, { work: { requeueStale } });
    await rig.clock.tick(60_000);
    const statuses = await Promise.all(ids.map(async (id, i) => {
      const ctx = orgs[i];
      return ctx === undefined ? "" : (await rig.read(ctx, id)).status;
    }));
    assert.deepEqual(statuses, ["claimed", "done", "done"]);
    assert.ok((rig.counts.get("laneway_sweep_steps_total requeue-stale failed") ?? 0) > 0);
  }));

Deno.test("a step that throws is logged and counted, and stops no other", () =>
  WorkerRig.with(async (rig) => {
    let later = 0;
    const steps: SweepStep[] = [
      { name: "broken", run: () => Promise.reject(new Error("step broke")) },
      { name: "later", run: () => Promise.resolve({ count: ++later, more: false }) },
    ];
    rig.start(() => {}, { sweepSteps: steps });
    await rig.clock.tick(1_000);
    assert.equal(later, 1);
    assert.equal(rig.counts.get("laneway_sweep_steps_total broken failed"), 1);
    assert.equal(rig.logged("sweep.step_failed"), 1);
  }));

Deno.test("a pass that runs out of its time budget carries on where it stopped", () =>
  WorkerRig.with(async (rig) => {
    const ran: string[] = [];
    const slow = (name: string): SweepStep => ({
      name,
      run: async () => {
        ran.push(name);
        await rig.clock.sleep(4_000);
        return { count: 0, more: false };
      },
    });
    rig.start(() => {}, { sweepSteps: [slow("a"), slow("b"), slow("c"), slow("d")] });
    await rig.clock.tick(9_000);
    assert.deepEqual(ran, ["a", "b"], "5 s of budget hold two steps of 4 s");
    await rig.clock.tick(18_000);
    assert.deepEqual(ran.slice(0, 4), ["a", "b", "c", "d"]);
  }));

Deno.test("a step with more to do is run again in the same pass", () =>
  WorkerRig.with(async (rig) => {
    let left = 5;
    const step: SweepStep = { name: "big", run: () => Promise.resolve({ count: 1, more: --left > 0 }) };
    rig.start(() => {}, { sweepSteps: [step] });
    await rig.clock.tick(1_000);
    assert.equal(left, 0);
    assert.equal(rig.counts.get("laneway_sweep_rows_total big"), 5);
  }));

Deno.test("a step that can wait has its turn once in its intervals, a fleet's as a lone worker's, and carries on unasked", () =>
  WorkerRig.with(async (rig) => {
    let runs = 0;
    const step: SweepStep = { name: "slow", every: 6, run: () => Promise.resolve({ count: runs++, more: false }) };
    const worker = rig.start(() => {}, { sweepSteps: [step] });
    await rig.clock.tick(600_000);
    assert.ok(runs >= 10 && runs <= 13, `${runs} runs of one worker in ten times its intervals`);
    await rig.drain(worker);
    runs = 0;
    for (let i = 0; i < 5; i++) rig.start(() => {}, { sweepSteps: [step] });
    await rig.clock.tick(600_000);
    assert.ok(runs >= 10 && runs <= 21, `${runs} runs of five workers in ten times its intervals`);
    let left = 12;
    const big: SweepStep = {
      name: "big",
      every: 6,
      run: async () => {
        await rig.clock.sleep(1_000);
        return { count: 1, more: --left > 0 };
      },
    };
    rig.start(() => {}, { sweepSteps: [big] });
    await rig.clock.tick(45_000);
    assert.equal(left, 0, "what the time budget cut short goes on with the next pass");
  }));

Deno.test("several workers run each step once an interval between them", () =>
  WorkerRig.with(async (rig) => {
    let runs = 0;
    const step: SweepStep = { name: "shared", run: () => Promise.resolve({ count: runs++, more: false }) };
    for (let i = 0; i < 5; i++) rig.start(() => {}, { sweepSteps: [step] });
    await rig.clock.tick(60_000);
    assert.ok(runs >= 6 && runs <= 14, `${runs} runs in six intervals`);
  }));

Deno.test("the gauges tell the oldest waiting item, dead letters, parked records and the outbox's lag", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx, { lane: "other" });
    await rig.clock.tick(30_000);
    rig.start(() => {}, { countParked: () => Promise.resolve(4) });
    await rig.clock.tick(1_000);
    assert.equal(rig.gauges.get("laneway_queue_oldest_age_seconds"), 30);
    assert.equal(rig.gauges.get("laneway_work_failed"), 0);
    assert.equal(rig.gauges.get("laneway_records_parked"), 4);
    assert.equal(rig.gauges.get("laneway_outbox_lag_seconds"), 0);
  }));

Deno.test("an idle fleet asks for its turns in one statement a pass, for those that can wait in one of six, and relays of different builds keep their own turns", () =>
  WorkerRig.with(async (rig) => {
    let asked = 0;
    const turns = new Set<string>();
    const { work } = rig.managers;
    const takeSweepSteps: typeof work.takeSweepSteps = async (rctx, steps, intervalMs) => {
      asked++;
      const taken = await work.takeSweepSteps(rctx, steps, intervalMs);
      for (const turn of taken) turns.add(turn);
      return taken;
    };
    for (let i = 0; i < 4; i++) rig.start(() => {}, { work: { takeSweepSteps } });
    rig.start([{ kind: OTHER, handle: () => {} }], { work: { takeSweepSteps } });
    await rig.clock.tick(1_000);
    asked = 0;
    await rig.clock.tick(60_000);
    assert.ok(asked >= 5 * 6 && asked <= 5 * 9, `${asked} statements of five workers in six intervals`);
    assert.deepEqual([...turns].filter((turn) => turn.startsWith("relay-outbox")).sort(), [
      "relay-outbox OTHER",
      "relay-outbox TASK",
    ]);
  }, { kinds: [TASK, OTHER] }));

Deno.test("a turn that the time budget left unused is used by the next pass", () =>
  WorkerRig.with(async (rig) => {
    const ran: string[] = [];
    const slow = (name: string): SweepStep => ({
      name,
      run: async () => {
        ran.push(name);
        await rig.clock.sleep(4_000);
        return { count: 0, more: false };
      },
    });
    rig.start(() => {}, { sweepSteps: [slow("a"), slow("b"), slow("c")] });
    await rig.clock.tick(9_000);
    assert.deepEqual(ran, ["a", "b"], "5 s of budget hold two steps of 4 s");
    await rig.clock.tick(9_500);
    assert.equal(ran[2], "c", "first in the next pass");
  }));

Deno.test("rows that somebody else wrote are relayed at once when a hint says so, by one worker of the fleet", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let relays = 0;
    const relayPending: typeof rig.managers.outbox.relayPending = (rctx, limit) => {
      relays++;
      return rig.managers.outbox.relayPending(rctx, limit);
    };
    const outbox = { ...overlayOutbox(rig), relayPending };
    for (let i = 0; i < 5; i++) rig.start(() => {}, { managers: { ...rig.managers, outbox } });
    await rig.clock.tick(3_000);
    relays = 0;
    const row = newOutboxRow(ctx, "work.task", { from: "sql" });
    await rig.db.write((s) => insertOutboxRows(s, [row]));
    await rig.topics.publish("OUTBOX_PENDING", {});
    await rig.clock.tick(500);
    assert.equal((await rig.read(ctx, row.id)).status, "done");
    assert.ok(relays >= 1 && relays <= 2, `${relays} relays of five workers`);
  }));

function overlayOutbox({ managers: { outbox } }: WorkerRig): WorkerRig["managers"]["outbox"] {
  return {
    relay: (rows) => outbox.relay(rows),
    relayPending: (rctx, limit) => outbox.relayPending(rctx, limit),
    purgeDone: (rctx) => outbox.purgeDone(rctx),
    readLag: (rctx) => outbox.readLag(rctx),
  };
}

Deno.test("the built-in steps stand in order, a container's own before the step it names", () =>
  WorkerRig.with(async (rig) => {
    const none = () => Promise.resolve({ count: 0, more: false });
    const steps: SweepStep[] = [
      { name: "own-last", run: none },
      { name: "resume-parked", before: "relay-outbox", run: none },
      { name: "purge-deleted", before: "purge-markers", run: none },
    ];
    rig.start(() => {}, { sweepSteps: steps });
    await rig.clock.tick(1_000);
    const ran = [...rig.counts.keys()].filter((key) => key.startsWith("laneway_sweep_steps_total "));
    assert.deepEqual(ran.map((key) => key.split(" ")[1]), [
      "requeue-stale",
      "fail-orphans",
      "audit-dead-letters",
      "resume-parked",
      "relay-outbox",
      "prune-host-orgs",
      "archive-done",
      "purge-outbox",
      "purge-items",
      "purge-attempts",
      "purge-keys",
      "purge-deleted",
      "purge-markers",
      "purge-tickets",
      "purge-sessions",
      "own-last",
    ]);
    assert.throws(() => rig.start(() => {}, { sweepSteps: [{ name: "x", before: "nope", run: none }] }), {
      code: "SETTINGS",
    });
  }));

Deno.test("sessions and tickets that are over are purged by the sweep, live ones are kept", () =>
  WorkerRig.with(async (rig) => {
    const { tenancy } = rig.managers;
    const org = await tenancy.createOrg(rig.rctx, { name: "rig" });
    const user = await tenancy.createUser(rig.rctx, { name: "Ada" });
    await tenancy.addMember(rig.rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
    const ctx = await tenancy.memberContext(rig.rctx, org.id, user.id);
    const over = await tenancy.createSession(ctx);
    await tenancy.endSession(ctx, over.session.id);
    await tenancy.createSocketTicket(ctx, 1_000);
    await rig.clock.tick(2_000);
    const live = await tenancy.createSession(ctx);
    const ticket = await tenancy.createSocketTicket(ctx);
    rig.start(() => {});
    await rig.clock.tick(1_000);
    assert.equal(rig.counts.get("laneway_sweep_rows_total purge-sessions"), 1);
    assert.equal(rig.counts.get("laneway_sweep_rows_total purge-tickets"), 1);
    await tenancy.authenticate(rig.rctx, org.id, live.secret);
    await tenancy.redeemSocketTicket(rig.rctx, org.id, ticket);
  }));
