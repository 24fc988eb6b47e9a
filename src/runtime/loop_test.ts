import assert from "node:assert/strict";
import { z } from "zod";
import { gate, TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import { migrateSqliteUp } from "../db/sqlite_migrator.ts";
import { FAIR_CHAIN } from "../migrations.ts";
import { FinalError, UnavailableError } from "../core/errors.ts";
import { defineKind } from "../work/kinds.ts";
import { defer, type WorkHandler, type WorkKind, type WorkRun } from "../work/types.ts";

const away = () => Promise.reject(new UnavailableError("the database is away", "not-executed"));

Deno.test("the loop claims within its capacity, and again when a slot is free", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const gates: (() => void)[] = [];
    let most = 0;
    let running = 0;
    rig.start(async () => {
      most = Math.max(most, ++running);
      const { promise, open } = gate();
      gates.push(() => open());
      await promise;
      running--;
    }, { capacity: 3 });
    const ids = await Promise.all(Array.from({ length: 7 }, () => rig.enqueue(ctx)));
    await rig.until("three run", () => gates.length === 3);
    await rig.clock.tick(5_000);
    assert.equal(gates.length, 3, "a full worker claims nothing");
    assert.equal(
      (await Promise.all(ids.map((id) => rig.read(ctx, id)))).filter((i) => i.status === "claimed").length,
      3,
    );
    gates[0]?.();
    await rig.until("a fourth runs", () => gates.length === 4);
    for (let i = 1; i < 7; i++) await rig.until("next", () => gates[i] !== undefined).then(() => gates[i]?.());
    for (const id of ids) assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 1);
    assert.equal(most, 3);
  }));

Deno.test("a worker that is to claim fairly gives each org its turn, another takes what is due first", async () => {
  for (const claimOrder of ["fair", "due"] as const) {
    await WorkerRig.with(async (rig) => {
      await migrateSqliteUp(rig.db, [FAIR_CHAIN]);
      const [big, small] = [await rig.org(), await rig.org()];
      for (let i = 0; i < 6; i++) await rig.enqueue(big);
      await rig.clock.tick(1);
      for (let i = 0; i < 2; i++) await rig.enqueue(small);
      const ran: string[] = [];
      rig.start((ctx) => void ran.push(ctx.orgId), { capacity: 1, claimAheadMs: 0, claimOrder });
      await rig.until("all ran", () => ran.length === 8);
      const inFour = ran.slice(0, 4).filter((org) => org === small.orgId).length;
      assert.equal(inFour, claimOrder === "fair" ? 2 : 0);
    });
  }
});

Deno.test("the next item is claimed while outcomes are on their way, but no more than a capacity of them", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let runs = 0;
    const answer = gate();
    rig.start(() => void runs++, {
      capacity: 2,
      work: { complete: (...args) => answer.promise.then(() => rig.managers.work.complete(...args)) },
    });
    const ids = await Promise.all(Array.from({ length: 9 }, () => rig.enqueue(ctx)));
    await rig.until("two capacities of handlers have ended", () => runs === 4);
    await rig.clock.tick(5_000);
    assert.equal(runs, 4, "a database that takes no outcomes is not worked for in vain");
    answer.open();
    for (const id of ids) await rig.untilStatus(ctx, id, "done");
  }));

/** Claims of the rig, held up until they are let go, with how many are on their way and what they ask for. */
function heldClaims(rig: WorkerRig) {
  const waiting: { limit: number; go: () => void }[] = [];
  const claim: WorkerRig["managers"]["work"]["claim"] = async (rctx, options) => {
    const { promise, open } = gate();
    waiting.push({ limit: options.limit, go: () => open() });
    await promise;
    return await rig.managers.work.claim(rctx, options);
  };
  return { waiting, claim };
}

/** Lets every claim go that waits. Always false, to be asked beside a condition. */
function letGo(waiting: { go: () => void }[]): false {
  for (const { go } of waiting.splice(0)) go();
  return false;
}

Deno.test("while claims come back full two are on their way, and never for more items than there is room for", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const items = Array.from({ length: 1_500 }, () => ({
      kind: TASK.name,
      idempotencyKey: crypto.randomUUID(),
      payload: {},
    }));
    await rig.managers.work.enqueueMany(ctx, items);
    const { waiting, claim } = heldClaims(rig);
    const hold = gate();
    let begun = 0;
    rig.start(async () => {
      begun++;
      await hold.promise;
    }, { capacity: 1_200, claimAheadMs: 0, work: { claim } });
    await rig.until("the first claim", () => waiting.length === 1);
    letGo(waiting);
    await rig.until("two claims", () => waiting.length === 2);
    await rig.clock.tick(10);
    assert.deepEqual(
      waiting.map(({ limit }) => limit),
      [500, 200],
      "what 500 that run leave room for, and no third claim",
    );
    await rig.until("all slots are taken", () => letGo(waiting) || begun === 1_200);
    await rig.clock.tick(10_000);
    assert.equal(begun, 1_200);
    hold.open();
    await rig.until("all have begun", () => letGo(waiting) || begun === 1_500);
  }));

Deno.test("what a claim brings beside an item that is to run alone is handed back", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const enqueue = (count: number) =>
      Promise.all(Array.from({ length: count }, () => rig.enqueue(ctx, { priority: 10 })));
    await enqueue(1_200);
    const { waiting, claim } = heldClaims(rig);
    const alone = gate();
    const begun: string[] = [];
    let suspect = "";
    rig.start(async (_ctx, item) => {
      begun.push(item.id);
      if (item.id === suspect) await alone.promise;
    }, { capacity: 1_500, claimAheadMs: 0, work: { claim } });
    await rig.until("the first claim", () => waiting.length === 1);
    letGo(waiting);
    await rig.until("two claims", () => waiting.length === 2);
    suspect = await rig.enqueue(ctx, { priority: 1 });
    await rig.db.write((s) => s.run("update queue_work_items set expiries = 2 where id = ?", suspect));
    // The first of both brings the suspect; the other one comes while that is about to run.
    letGo(waiting);
    await rig.until("the suspect runs", () => begun.includes(suspect));
    const beside = begun.length;
    await rig.clock.tick(1_000);
    assert.equal(begun.length, beside, "nothing begins beside it");
    const rows = await rig.db.read((s) =>
      s.all("select attempts, claims from queue_work_items where status = 'queued'")
    );
    assert.ok(rows.some(({ claims }) => Number(claims) > 0), "what the other claim brought went back");
    assert.ok(rows.every(({ attempts }) => Number(attempts) === 0), "uncharged");
    alone.open();
    await rig.until("all have begun", () => letGo(waiting) || begun.length === 1_201);
  }));

Deno.test("items claimed ahead of quick handlers go back uncharged when a handler is slow all of a sudden", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const slow = gate();
    let runs = 0;
    rig.start(async () => {
      // Each takes 1 ms, until one does not.
      await (++runs <= 60 ? rig.clock.sleep(1) : slow.promise);
    }, { capacity: 1, claimAheadMs: 50 });
    const ids = await Promise.all(Array.from({ length: 100 }, () => rig.enqueue(ctx)));
    await rig.clock.tick(200);
    assert.equal(runs, 61);
    const claimed = async () =>
      (await Promise.all(ids.map((id) => rig.read(ctx, id)))).filter((item) => item.status === "claimed");
    const held = await claimed();
    assert.ok(held.length > 1, "some wait for the only slot");
    await rig.clock.tick(2_000);
    assert.equal((await claimed()).length, 1, "after a second only what runs is held");
    for (const { id } of held) {
      const item = await rig.read(ctx, id);
      if (item.status === "queued") {
        assert.deepEqual([item.attempts, item.note], [0, "handed back: no slot became free for it"]);
      }
    }
    slow.open();
    for (const id of ids) assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 1);
  }));

Deno.test("items claimed ahead are handed back at once by a drain", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const slow = gate();
    let runs = 0;
    const worker = rig.start(async () => {
      await (++runs <= 60 ? rig.clock.sleep(1) : slow.promise);
    }, { capacity: 1, drainGraceMs: 60_000 });
    const ids = await Promise.all(Array.from({ length: 100 }, () => rig.enqueue(ctx)));
    await rig.clock.tick(200);
    const drained = worker.drain();
    await rig.clock.tick(10);
    const items = await Promise.all(ids.map((id) => rig.read(ctx, id)));
    assert.equal(items.filter((item) => item.status === "claimed").length, 1, "what runs has its grace");
    assert.ok(items.every((item) => item.status !== "queued" || item.attempts === 0));
    slow.open();
    await drained;
  }));

Deno.test("an enqueue wakes the loop; without a hint the poll finds the item", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    rig.start(() => {}, { pollMs: 20_000 });
    await rig.clock.tick(1_000);
    const hinted = await rig.enqueue(ctx);
    await rig.clock.tick(1);
    assert.equal((await rig.read(ctx, hinted)).status, "done", "within a millisecond of its hint");
    await rig.topics.close();
    const silent = await rig.enqueue(ctx);
    await rig.clock.tick(10_000);
    assert.equal((await rig.read(ctx, silent)).status, "queued");
    await rig.clock.tick(16_000);
    assert.equal((await rig.read(ctx, silent)).status, "done");
  }));

Deno.test("an item with a start in the future begins when it is due, not a poll later", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const startedMs: number[] = [];
    rig.start(() => void startedMs.push(rig.clock.now()), { pollMs: 60_000 });
    const dueMs = rig.clock.now() + 90_000;
    await rig.enqueue(ctx, {}, { notBefore: new Date(dueMs) });
    await rig.clock.tick(120_000);
    assert.equal(startedMs.length, 1);
    const lateMs = (startedMs[0] ?? 0) - dueMs;
    assert.ok(lateMs >= 0 && lateMs <= 10, `${lateMs} ms late`);
  }));

Deno.test("25 days in the future does not start early, and the worker idles meanwhile", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let runs = 0;
    rig.start(() => void runs++);
    const id = await rig.enqueue(ctx, {}, { delayMs: 25 * 86_400_000 });
    await rig.clock.tick(60_000);
    assert.equal(runs, 0);
    assert.equal((await rig.read(ctx, id)).attempts, 0);
  }));

Deno.test("a handler's outcome becomes the item's: complete, retry, dead letter, defer", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const seen: [string, number, number][] = [];
    rig.start((_ctx, item, run) => {
      const what = String(item.payload.what);
      seen.push([what, run.attempt, run.fence]);
      if (what === "fail") throw new Error("broke");
      if (what === "final") throw new FinalError("hopeless");
      if (what === "once" && run.attempt === 1) throw new Error("first");
      if (what === "later" && seen.filter(([w]) => w === what).length === 1) return defer(5_000, "not yet");
      if (what === "odd") return "odd" as unknown as undefined;
    });
    const put = (what: string) => rig.enqueue(ctx, { payload: { what } });
    const [fail, final, once, later, odd] = [
      await put("fail"),
      await put("final"),
      await put("once"),
      await put("later"),
      await put("odd"),
    ];
    const failed = await rig.untilStatus(ctx, fail, "failed");
    assert.deepEqual([failed.attempts, failed.lastError, failed.auditId], [3, "broke", null]);
    const hopeless = await rig.untilStatus(ctx, final, "failed");
    assert.deepEqual([hopeless.attempts, hopeless.lastError], [1, "FinalError: hopeless"]);
    assert.equal((await rig.untilStatus(ctx, once, "done")).attempts, 2);
    const deferred = await rig.untilStatus(ctx, later, "done");
    assert.deepEqual([deferred.attempts, deferred.claims, deferred.note], [1, 2, "not yet"], "a deferral is uncharged");
    assert.match((await rig.untilStatus(ctx, odd, "failed")).lastError ?? "", /return nothing to complete/);
    const fences = seen.filter(([what]) => what === "later").map(([, attempt, fence]) => [attempt, fence]);
    assert.deepEqual(fences, [[1, 1], [1, 2]], "the fence grows though the attempt was given back");
    const entries = await rig.managers.audit.readEntries(ctx, { limit: 10 });
    assert.deepEqual(
      new Set(entries.map((e) => e.subjectId)),
      new Set([fail, final, odd]),
      "each dead letter is audited",
    );
  }));

Deno.test("whatever a handler throws, its item ends as a readable, bounded dead letter and the worker works on", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const circular = new Error("circular");
    circular.cause = circular;
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const stackless = new Error("no stack");
    delete stackless.stack;
    const values: Record<string, unknown> = {
      nothing: undefined,
      null: null,
      number: 42,
      empty: "",
      symbol: Symbol("s"),
      object: {},
      badMessage: {
        get message() {
          throw new Error("no message for you");
        },
      },
      badToString: {
        toString() {
          throw new Error("no text for you");
        },
      },
      revoked: revoked.proxy,
      circular,
      huge: new Error("x".repeat(10_000_000)),
      aggregate: new AggregateError(Array.from({ length: 10_000 }, (_, i) => new Error(`e${i}`)), "many"),
      stackless,
      nul: new Error("a\u0000b\uD800c"),
    };
    rig.start((_ctx, item) => {
      const name = String(item.payload.name);
      if (name !== "ok") throw values[name];
    }, { capacity: 1 });
    for (const name of Object.keys(values)) {
      const id = await rig.enqueue(ctx, { payload: { name } });
      const ok = await rig.enqueue(ctx, { payload: { name: "ok" } });
      await rig.clock.tick(1_000);
      assert.equal((await rig.read(ctx, ok)).status, "done", `the item behind ${name}`);
      const item = await rig.untilStatus(ctx, id, "failed");
      assert.equal(item.attempts, 3, name);
      const error = item.lastError ?? "";
      assert.ok(error.length > 0 && error.length <= 2_000, `${name}: ${error.length} characters`);
      assert.doesNotMatch(error, /the lease of attempt/, `${name} ended by its own failures`);
      assert.ok(error.isWellFormed() && !error.includes("\u0000"), name);
      assert.ok(!error.includes("expired"), `${name} failed by its run, not by its lease`);
    }
  }));

Deno.test("a payload that does not fit its kind at handle is dead-lettered at once; unknown fields are kept", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const payloads: unknown[] = [];
    rig.start([{
      kind: STRICT,
      handle: (_ctx, item) => void payloads.push(item.payload),
    }]);
    const good = await rig.enqueue(ctx, { kind: "STRICT", payload: { n: 1, extra: "kept" } });
    await rig.untilStatus(ctx, good, "done");
    assert.deepEqual(payloads, [{ n: 1, extra: "kept" }]);
    const bad = await rig.enqueue(ctx, { kind: "STRICT", payload: { n: 2 } }, { delayMs: 1_000 });
    await rig.db.write((s) => s.run('update queue_work_items set payload = \'{"n":"two"}\' where id = ?', bad));
    const item = await rig.untilStatus(ctx, bad, "failed");
    assert.equal(item.attempts, 1);
    assert.match(item.lastError ?? "", /payload\.n/);
  }, { kinds: [STRICT] }));

const STRICT: WorkKind = defineKind("STRICT", { schema: z.object({ n: z.number(), later: z.string().optional() }) });

Deno.test("a run longer than its kind's timeout is aborted, then fails", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { maxAttempts: 1 });
    let run: WorkRun | undefined;
    rig.start((_ctx, _item, r) => {
      run = r;
      return new Promise<void>((_, reject) => r.signal.addEventListener("abort", () => reject(r.signal.reason)));
    });
    await rig.clock.tick(59_900);
    assert.equal(run?.signal.aborted, false);
    const item = await rig.untilStatus(ctx, id, "failed");
    assert.match(item.lastError ?? "", /timed out after 60000 ms/);
    assert.equal(run?.deadline?.getTime(), Date.UTC(2026, 0, 1) + 60_000);
  }));

Deno.test("a handler that returns after its signal fired cannot complete", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { maxAttempts: 1 });
    rig.start((_ctx, _item, run) =>
      new Promise<void>((resolve) => run.signal.addEventListener("abort", () => resolve()))
    );
    assert.equal((await rig.untilStatus(ctx, id, "failed")).status, "failed");
  }));

Deno.test("a deaf handler keeps its slot and is counted, but its item is handed back after the grace", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { maxAttempts: 1 });
    const { promise, open } = gate();
    rig.start((_ctx, item) => item.id === id ? promise : undefined, { capacity: 1 });
    await rig.untilStatus(ctx, id, "failed");
    const behind = await rig.enqueue(ctx);
    await rig.clock.tick(10_000);
    assert.equal((await rig.read(ctx, behind)).status, "queued", "the slot is still taken");
    assert.equal(rig.gauges.get("laneway_deaf_handlers"), 1);
    assert.equal(rig.logged("work.handler_deaf"), 1);
    open();
    await rig.untilStatus(ctx, behind, "done");
    assert.equal((await rig.read(ctx, id)).status, "failed", "its late return changes nothing");
    await rig.clock.tick(1_000);
    assert.equal(rig.gauges.get("laneway_deaf_handlers"), 0);
  }));

Deno.test("a settlement waits for a database that is away, under a lease that is kept", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    let isAway = true;
    let tries = 0;
    const complete: typeof rig.managers.work.complete = (c, item) => {
      tries++;
      return isAway ? away() : rig.managers.work.complete(c, item);
    };
    rig.start(() => {}, { work: { complete } });
    await rig.clock.tick(60_000);
    assert.ok(tries > 3 && tries < 100, `${tries} tries`);
    assert.equal((await rig.read(ctx, id)).status, "claimed");
    isAway = false;
    const item = await rig.untilStatus(ctx, id, "done");
    assert.deepEqual([item.attempts, item.claims], [1, 1]);
  }));

Deno.test("a completion whose answer was lost is told as success when it is repeated", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx);
    let lost = 0;
    const complete: typeof rig.managers.work.complete = async (c, item) => {
      await rig.managers.work.complete(c, item);
      if (lost++ === 0) throw new UnavailableError("the answer was lost", "unknown");
    };
    rig.start(() => {}, { work: { complete } });
    await rig.until("settled", () => rig.counts.get("laneway_items_settled_total TASK default completed") === 1);
    assert.equal(lost, 2);
    assert.equal((await rig.read(ctx, id)).status, "done");
  }));

Deno.test("claims that fail are tried again with a growing pause, one log line a change of state", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let isAway = true;
    let tries = 0;
    const claim: typeof rig.managers.work.claim = (rctx, options) => {
      tries++;
      return isAway ? away() : rig.managers.work.claim(rctx, options);
    };
    const worker = rig.start(() => {}, { work: { claim } });
    const id = await rig.enqueue(ctx);
    await rig.clock.tick(60_000);
    assert.ok(tries >= 15 && tries <= 60, `${tries} tries in a minute`);
    assert.equal(rig.logged("database.out_of_reach"), 1);
    assert.equal(worker.health().ok, false);
    assert.match(worker.health().reasons.join(), /out of reach.*the database is away/);
    isAway = false;
    await rig.clock.tick(5_000);
    assert.equal((await rig.read(ctx, id)).status, "done", "within 5 s of the database being back");
    assert.equal(worker.health().ok, true);
    assert.equal(rig.logged("database.back"), 1);
  }));

Deno.test("an item whose last claim expired runs with nothing beginning beside it", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const suspects = [await rig.enqueue(ctx), await rig.enqueue(ctx)];
    const claimed = await rig.managers.work.claim(rig.rctx, {
      lane: "default",
      kinds: [TASK.name],
      worker: "dead",
      leaseMs: 1_000,
      limit: 10,
    });
    assert.equal(claimed.length, 2);
    await rig.clock.tick(1_001);
    await rig.managers.work.requeueStale(ctx);
    const plain = await Promise.all(Array.from({ length: 4 }, () => rig.enqueue(ctx)));
    const running = new Set<string>();
    const beside: string[] = [];
    rig.start(async (_ctx, item) => {
      if (suspects.includes(item.id)) beside.push(...running);
      else beside.push(...[...running].filter((id) => suspects.includes(id)));
      running.add(item.id);
      await rig.clock.sleep(500);
      running.delete(item.id);
    }, { capacity: 10 });
    for (const id of [...suspects, ...plain]) await rig.untilStatus(ctx, id, "done");
    assert.deepEqual(beside, []);
    assert.equal((await rig.read(ctx, suspects[0] ?? "")).attempts, 2, "the expired attempt stays spent");
  }));

Deno.test("a long item whose claim expired once stays alone until its lease was renewed; twice, or on its last attempt, to its end", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    for (
      const { maxAttempts, deaths, alone } of [
        { maxAttempts: 3, deaths: 1, alone: false },
        { maxAttempts: 4, deaths: 2, alone: true },
        { maxAttempts: 2, deaths: 1, alone: true },
      ]
    ) {
      const lane = `lane-${maxAttempts}`;
      const suspect = await rig.enqueue(ctx, { lane, maxAttempts });
      for (let death = 0; death < deaths; death++) {
        await rig.until("its claim by a worker that dies", async () => {
          await rig.managers.work.promote(rig.rctx, 10);
          const options = { lane, kinds: [TASK.name], worker: "dead", leaseMs: 1_000, limit: 1 };
          return (await rig.managers.work.claim(rig.rctx, options)).length === 1;
        });
        await rig.clock.tick(1_001);
        await rig.managers.work.requeueStale(ctx);
      }
      const { promise, open } = gate();
      const worker = rig.start((_ctx, item) => item.id === suspect ? promise : undefined, { lane });
      await rig.until("the suspect's start", async () => (await rig.read(ctx, suspect)).attempts === deaths + 1);
      const plain = await rig.enqueue(ctx, { lane });
      await rig.clock.tick(5_000);
      assert.equal((await rig.read(ctx, plain)).status, "queued", "nothing begins before the first renewal");
      await rig.clock.tick(20_000);
      assert.equal((await rig.read(ctx, plain)).status, alone ? "queued" : "done");
      open();
      await rig.untilStatus(ctx, suspect, "done");
      await rig.untilStatus(ctx, plain, "done");
      await rig.drain(worker);
    }
  }));

Deno.test("an item that always kills its holder ends as a dead letter and costs its neighbours one attempt at most", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const poison = await rig.enqueue(ctx);
    const innocents = await Promise.all(Array.from({ length: 5 }, () => rig.enqueue(ctx)));
    let worker: ReturnType<typeof rig.start> | undefined;
    const never = new Promise<void>(() => {});
    // A process that dies is played by a worker whose every write fails from the moment the poison begins.
    for (let lives = 0; lives < 6; lives++) {
      let dead = false;
      const live = <T>(run: () => Promise<T>): Promise<T> => dead ? away() : run();
      const { work } = rig.managers;
      worker = rig.start((_ctx, item, run) => {
        if (item.id === poison) {
          dead = true;
          return never;
        }
        void run;
        return rig.clock.sleep(100);
      }, {
        capacity: 10,
        drainGraceMs: 0,
        work: {
          claim: (r, o) => live(() => work.claim(r, o)),
          complete: (c, i) => live(() => work.complete(c, i)),
          fail: (c, i, e) => live(() => work.fail(c, i, e)),
          release: (c, i, n, d) => live(() => work.release(c, i, n, d)),
          extendLeases: (c, l) => live(() => work.extendLeases(c, l)),
        },
      });
      await rig.clock.tick(45_000);
      worker.skipGrace();
      await rig.drain(worker);
    }
    await rig.untilStatus(ctx, poison, "failed");
    for (const id of innocents) {
      const item = await rig.read(ctx, id);
      assert.equal(item.status, "done");
      assert.ok(item.attempts <= 2, `${item.attempts} attempts`);
    }
  }));

Deno.test("kinds without a handler, and two handlers of a kind, are refused when a worker is built", () =>
  WorkerRig.with((rig) => {
    const handler: WorkHandler = { kind: TASK, handle: () => {} };
    assert.throws(() => rig.start([handler, handler]), /Two handlers serve kind TASK/);
    assert.throws(() => rig.start([handler], { kinds: ["OTHER"] }), /Cannot serve kind OTHER.*TASK/);
    return Promise.resolve();
  }));
