import assert from "node:assert/strict";
import { gate, WorkerRig } from "../../tests/support/worker_rig.ts";
import { ConflictError, UnavailableError } from "../core/errors.ts";
import type { WorkManager } from "../work/manager.ts";
import type { WorkHandler } from "../work/types.ts";

const LEASE_MS = 30_000;

/** A handler that runs until its signal fires or `end` is opened, and says when it was aborted. */
function patient(rig: WorkerRig): { handle: WorkHandler["handle"]; end(): void; abortedAtMs: number[] } {
  const { promise, open } = gate();
  const abortedAtMs: number[] = [];
  return {
    abortedAtMs,
    end: () => open(),
    handle: (_ctx, _item, run) =>
      Promise.race([
        promise,
        new Promise<void>((_, reject) =>
          run.signal.addEventListener("abort", () => {
            abortedAtMs.push(rig.clock.monotonic());
            reject(run.signal.reason);
          })
        ),
      ]),
  };
}

Deno.test("a running item's lease is renewed every third of it, all items in one call, until it is settled", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const ids = await Promise.all([rig.enqueue(ctx), rig.enqueue(ctx)]);
    const task = patient(rig);
    const calls: number[] = [];
    const extendLeases: WorkManager["extendLeases"] = (claimed, leaseMs) => {
      calls.push(claimed.length);
      return rig.managers.work.extendLeases(claimed, leaseMs);
    };
    rig.start(task.handle, { work: { extendLeases } });
    await rig.clock.tick(10 * LEASE_MS / 6 + 100);
    assert.deepEqual(calls, [2, 2, 2, 2, 2]);
    assert.deepEqual(task.abortedAtMs, []);
    task.end();
    for (const id of ids) assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 1);
    await rig.clock.tick(LEASE_MS);
    assert.equal(calls.length, 5, "nothing is renewed when nothing runs");
  }));

Deno.test("a renewal that is refused aborts its run at once, and the run writes nothing", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const other = await rig.enqueue(ctx);
    const task = patient(rig);
    rig.start(task.handle);
    await rig.clock.tick(1_000);
    const thief = "01890000-0000-7000-8000-000000000000";
    await rig.db.write((s) => s.run("update queue_work_items set claim_token = ? where id = ?", thief, id));
    await rig.clock.tick(LEASE_MS / 3);
    assert.equal(task.abortedAtMs.length, 1, "only the one that was refused");
    assert.equal(rig.logged("lease.lost"), 1);
    const item = await rig.read(ctx, id);
    assert.deepEqual([item.status, item.claimToken, item.lastError], ["claimed", thief, null]);
    task.end();
    await rig.untilStatus(ctx, other, "done");
    assert.equal(rig.counts.get("laneway_items_settled_total TASK default refused"), 1);
  }));

Deno.test("a renewal refused because the item is finished under this very claim lets the run end", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const answer = gate();
    const complete: WorkManager["complete"] = async (c, item) => {
      await rig.managers.work.complete(c, item);
      await answer.promise;
    };
    rig.start(() => {}, { work: { complete } });
    await rig.clock.tick(4 * LEASE_MS);
    assert.equal((await rig.read(ctx, id)).status, "done");
    assert.equal(rig.logged("lease.lost"), 0);
    answer.open();
    await rig.until("settled", () => rig.counts.get("laneway_items_settled_total TASK default completed") === 1);
  }));

Deno.test("a run whose item somebody finished under its claim goes on to its own end, also once the item was moved away", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx);
    const task = patient(rig);
    let reads = 0;
    rig.start(task.handle, {
      work: {
        extendLeases: async (claimed, leaseMs) =>
          (await rig.managers.work.extendLeases(claimed, leaseMs)).map(() => false),
        readClaim: ({ orgId }, { id, claimToken }) => {
          const state = { orgId, id, status: "done", token: claimToken, leaseLive: false } as const;
          return Promise.resolve(reads++ === 0 ? state : null);
        },
        complete: () => Promise.reject(new ConflictError("it was moved away")),
      },
    });
    await rig.clock.tick(1.1 * LEASE_MS);
    assert.deepEqual([reads, task.abortedAtMs], [1, []], "it is known once and for all");
    task.end();
    await rig.until("settled", () => rig.counts.get("laneway_items_settled_total TASK default completed") === 1);
    assert.deepEqual([rig.logged("lease.lost"), rig.logged("work.outcome_refused")], [0, 0]);
  }));

/** How many items there are. */
async function countItems(rig: WorkerRig): Promise<unknown> {
  return (await rig.db.read((s) => s.get("select count(*) as n from queue_work_items")))?.n;
}

Deno.test("where completed items are not kept, a renewal refused because the item is gone lets the run end", () =>
  WorkerRig.with(async (rig) => {
    await rig.enqueue(await rig.org());
    const answer = gate();
    const complete: WorkManager["complete"] = async (c, item) => {
      await rig.managers.work.complete(c, item);
      await answer.promise;
    };
    rig.start(() => {}, { work: { complete } });
    await rig.clock.tick(4 * LEASE_MS);
    assert.equal(await countItems(rig), 0, "gone with its completion");
    assert.ok((rig.counts.get("laneway_lease_renewals_total refused") ?? 0) > 0);
    assert.equal(rig.logged("lease.lost"), 0);
    answer.open();
    await rig.until("settled", () => rig.counts.get("laneway_items_settled_total TASK default completed") === 1);
  }, { itemRetentionMs: 0 }));

Deno.test("a renewal refused because the item is gone while its handler runs aborts the run", () =>
  WorkerRig.with(async (rig) => {
    await rig.enqueue(await rig.org());
    const task = patient(rig);
    rig.start(task.handle);
    await rig.clock.tick(1_000);
    await rig.db.write((s) => s.run("delete from queue_work_items"));
    await rig.clock.tick(LEASE_MS / 3);
    assert.equal(task.abortedAtMs.length, 1);
    assert.equal(rig.logged("lease.lost"), 1);
  }, { itemRetentionMs: 0 }));

Deno.test("a renewal that fails or hangs is tried again, and a later one keeps the run", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const task = patient(rig);
    let calls = 0;
    const extendLeases: WorkManager["extendLeases"] = (claimed, leaseMs) => {
      calls++;
      if (calls % 2 === 1) return calls % 4 === 1 ? away() : new Promise(() => {});
      return rig.managers.work.extendLeases(claimed, leaseMs);
    };
    rig.start(task.handle, { work: { extendLeases }, leaseMs: LEASE_MS });
    // Asked again at the next interval only, a failed renewal would cost two thirds of a lease: more than the half.
    await rig.clock.tick(LEASE_MS * 1.9);
    assert.ok(calls >= 8, `${calls} renewals`);
    assert.deepEqual(task.abortedAtMs, []);
    task.end();
    const item = await rig.untilStatus(ctx, id, "done");
    assert.equal(item.attempts, 1);
  }));

function away(): Promise<never> {
  return Promise.reject(new UnavailableError("the database is away", "not-executed"));
}

Deno.test("a run aborts itself when half a lease has passed since its last successful renewal was sent", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx);
    const task = patient(rig);
    rig.start(task.handle, { work: { extendLeases: away } });
    const startMs = rig.clock.monotonic();
    await rig.clock.tick(LEASE_MS);
    const [abortedAtMs] = task.abortedAtMs;
    assert.ok(abortedAtMs !== undefined);
    const afterMs = abortedAtMs - startMs;
    assert.ok(afterMs >= LEASE_MS / 2 && afterMs <= LEASE_MS / 2 + 50, `aborted after ${afterMs} ms`);
  }));

Deno.test("half a lease is counted from when the renewal was sent, not from when it was answered", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx);
    const task = patient(rig);
    let calls = 0;
    const extendLeases: WorkManager["extendLeases"] = async (claimed, leaseMs) => {
      if (++calls > 1) return await away();
      const renewed = await rig.managers.work.extendLeases(claimed, leaseMs);
      await rig.clock.sleep(4_000);
      return renewed;
    };
    rig.start(task.handle, { work: { extendLeases } });
    const startMs = rig.clock.monotonic();
    await rig.clock.tick(LEASE_MS * 2);
    const afterMs = (task.abortedAtMs[0] ?? 0) - startMs;
    const wantMs = LEASE_MS / 3 + LEASE_MS / 2;
    assert.ok(Math.abs(afterMs - wantMs) <= 50, `aborted after ${afterMs} ms, sent at ${LEASE_MS / 3}`);
  }));

Deno.test("a host that slept is seen by wall time: the run aborts when it wakes", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    const task = patient(rig);
    rig.start(task.handle, { work: { extendLeases: away } });
    await rig.clock.tick(1_000);
    rig.clock.jumpWall(3_600_000);
    await rig.clock.tick(LEASE_MS / 12 + 10);
    assert.equal(task.abortedAtMs.length, 1);
    assert.equal((await rig.read(ctx, id)).status, "claimed", "the lost run writes nothing");
  }));

Deno.test("a wall clock set back does not stretch a lease", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    await rig.enqueue(ctx);
    const task = patient(rig);
    rig.start(task.handle, { work: { extendLeases: away } });
    await rig.clock.tick(1_000);
    rig.clock.jumpWall(-3_600_000);
    await rig.clock.tick(LEASE_MS / 2);
    assert.equal(task.abortedAtMs.length, 1);
  }));

Deno.test("what a dead worker held is run elsewhere after lease and sweep; its late outcome is refused", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    // A worker whose event loop stands still neither renews nor aborts: it only comes back with its result.
    const [held] = await rig.managers.work.claim(rig.rctx, {
      lane: "default",
      kinds: ["TASK"],
      worker: "stuck",
      leaseMs: LEASE_MS,
      limit: 1,
    });
    assert.ok(held);
    let runs = 0;
    rig.start(() => void runs++);
    await rig.clock.tick(LEASE_MS + 10_000 + 1_000);
    const item = await rig.read(ctx, id);
    assert.deepEqual([item.status, item.attempts, runs], ["done", 2, 1]);
    await assert.rejects(rig.managers.work.complete(held.ctx, held.item), { code: "CONFLICT" });
    await assert.rejects(rig.managers.work.fail(held.ctx, held.item, new Error("late")), { code: "CONFLICT" });
  }));
