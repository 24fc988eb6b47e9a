import assert from "node:assert/strict";
import { z } from "zod";
import { TASK, WorkerRig } from "../../tests/support/worker_rig.ts";
import { FinalError, UnavailableError, ValidationError } from "../core/errors.ts";
import { defineKind } from "../work/kinds.ts";
import { defer, Deferral, type WorkItem } from "../work/types.ts";

Deno.test("an item that runs alone and turns deaf keeps its own slot, and the worker works on", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const suspect = await rig.enqueue(ctx, { maxAttempts: 2 });
    await rig.managers.work.claim(rig.rctx, {
      lane: "default",
      kinds: [TASK.name],
      worker: "dead",
      leaseMs: 1_000,
      limit: 1,
    });
    await rig.clock.tick(1_001);
    await rig.managers.work.requeueStale(ctx);
    let release: () => void = () => {};
    rig.start((_ctx, item) => {
      if (item.id === suspect) return new Promise<void>((resolve) => release = resolve);
    }, { capacity: 2 });
    await rig.untilStatus(ctx, suspect, "claimed");
    const plain = await rig.enqueue(ctx);
    await rig.clock.tick(30_000);
    assert.equal((await rig.read(ctx, plain)).status, "queued", "nothing begins beside it while it runs");
    await rig.untilStatus(ctx, plain, "done");
    release();
  }));

Deno.test("a handler that defers by no valid time fails with the range in its error, without waiting for its lease", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const wrong: Record<string, () => Deferral> = {
      nan: () => defer(NaN),
      negative: () => defer(-1),
      fraction: () => new Deferral(1.5, null),
      endless: () => new Deferral(Infinity, null),
    };
    rig.start((_ctx, item) => wrong[String(item.payload.name)]?.());
    for (const name of Object.keys(wrong)) {
      const id = await rig.enqueue(ctx, { payload: { name }, maxAttempts: 1 });
      await rig.clock.tick(1_000);
      const item = await rig.read(ctx, id);
      assert.equal(item.status, "failed", name);
      assert.match(item.lastError ?? "", /delayMs .* whole number from 0 to/, name);
    }
  }));

Deno.test("a payload error that a handler throws is retried: only its own payload's misfit is final", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let runs = 0;
    rig.start(() => {
      if (++runs === 1) throw new ValidationError("payload.a", "Cannot use payload.a: of the item it enqueues");
    });
    const id = await rig.enqueue(ctx);
    assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 2);
  }));

Deno.test("a thrown value that answers no question at all fails its item at once, not by its lease", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    rig.start(() => {
      throw revoked.proxy;
    });
    const id = await rig.enqueue(ctx, { maxAttempts: 1 });
    await rig.clock.tick(1_000);
    const item = await rig.read(ctx, id);
    assert.equal(item.status, "failed");
    assert.match(item.lastError ?? "", /unreadable/);
    assert.equal(rig.logged("work.run_broke"), 0);
  }));

Deno.test("a FinalError that a kind's own schema throws is final", async () => {
  let first = true;
  const kind = defineKind("ODD", {
    schema: z.looseObject({}).refine(() => {
      if (first) return true;
      throw new FinalError("never");
    }),
  });
  await WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { kind: kind.name });
    first = false;
    rig.start([{ kind, handle: () => {} }]);
    assert.equal((await rig.untilStatus(ctx, id, "failed")).lastError, "FinalError: never");
  }, { kinds: [kind] });
});

Deno.test("what a handler does to its item and payload does not reach what becomes of it", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    rig.start((_ctx, item) => {
      const mine = item as { -readonly [K in keyof WorkItem]: WorkItem[K] };
      mine.id = crypto.randomUUID();
      mine.claimToken = null;
      mine.attempts = 99;
      (mine.payload as Record<string, unknown>).list = "changed";
      throw new Error("after it changed all it could");
    });
    const id = await rig.enqueue(ctx, { payload: { list: [1] }, maxAttempts: 2 });
    await rig.clock.tick(500);
    const item = await rig.read(ctx, id);
    assert.deepEqual([item.status, item.attempts, item.payload], ["queued", 1, { list: [1] }]);
  }));

Deno.test("unknown fields are kept at handle at every depth, and the schema's defaults are filled in", async () => {
  const kind = defineKind("NESTED", {
    schema: z.object({
      address: z.object({ city: z.string(), country: z.string().default("SE") }),
      lines: z.array(z.object({ sku: z.string() })),
    }),
  });
  await WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const seen: unknown[] = [];
    rig.start([{ kind, handle: (_ctx, item) => void seen.push(item.payload) }]);
    const payload = { address: { city: "Umeå", floor: 3 }, lines: [{ sku: "a", gift: true }], later: { x: 1 } };
    const id = await rig.enqueue(ctx, { kind: kind.name, payload });
    await rig.untilStatus(ctx, id, "done");
    assert.deepEqual(seen, [{ ...payload, address: { ...payload.address, country: "SE" } }]);
  }, { kinds: [kind] });
});

Deno.test("what a claim brings after half its lease is handed back, and does not run", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const ids = [await rig.enqueue(ctx), await rig.enqueue(ctx)];
    const started: string[] = [];
    let slow = true;
    rig.start((_ctx, item) => void started.push(item.id), {
      leaseMs: 2_000,
      work: {
        claim: async (rctx, options) => {
          const claimed = await rig.managers.work.claim(rctx, options);
          if (slow && claimed.length > 0) await rig.clock.sleep(1_200);
          return claimed;
        },
      },
    });
    await rig.clock.tick(1_300);
    assert.deepEqual(started, []);
    slow = false;
    for (const id of ids) assert.equal((await rig.untilStatus(ctx, id, "done")).attempts, 1, "uncharged");
  }));

Deno.test("an item of a kind the worker lacks is handed back uncharged, and not claimable again at once", () => {
  const OTHER = defineKind("OTHER", { schema: z.looseObject({}) });
  return WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    const id = await rig.enqueue(ctx, { kind: OTHER.name });
    const { work } = rig.managers;
    // Bounded, so that an item claimable at once fails this test and does not spin in it.
    let brought = 0;
    rig.start(() => assert.fail("its handler is of another kind"), {
      work: {
        claim: async (rctx, options) => {
          const claimed = brought < 3 ? await work.claim(rctx, { ...options, kinds: [OTHER.name] }) : [];
          brought += claimed.length;
          return claimed;
        },
      },
    });
    await rig.until("handed back", async () => (await rig.read(ctx, id)).note !== null);
    const item = await rig.read(ctx, id);
    assert.deepEqual([item.status, item.attempts, item.claims], ["queued", 0, 1]);
    assert.match(item.note ?? "", /no handler for OTHER/);
    await rig.clock.tick(30_000);
    assert.equal((await rig.read(ctx, id)).claims, 1, "it waits for a worker that has the kind");
    assert.equal(rig.logged("work.run_broke"), 0);
  }, { kinds: [TASK, OTHER] });
});

Deno.test("a renewal that failed does not leave an idle worker unhealthy once the database answers again", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let away = false;
    const orFail = <T>(call: () => Promise<T>) =>
      away ? Promise.reject(new UnavailableError("the database is away", "not-executed")) : call();
    const { work } = rig.managers;
    const worker = rig.start(
      (_ctx, _item, run) => new Promise<void>((resolve) => run.signal.addEventListener("abort", () => resolve())),
      {
        work: {
          claim: (rctx, options) => orFail(() => work.claim(rctx, options)),
          extendLeases: (claimed, leaseMs) => orFail(() => work.extendLeases(claimed, leaseMs)),
        },
      },
    );
    await rig.enqueue(ctx, { maxAttempts: 1 });
    await rig.clock.tick(1_000);
    away = true;
    await rig.clock.tick(25_000);
    assert.equal(worker.health().ok, false);
    away = false;
    await rig.clock.tick(60_000);
    assert.deepEqual(worker.health(), { ok: true, reasons: [] });
    assert.equal(rig.gauges.get("laneway_database_up"), 1);
  }));

Deno.test("one renewal that fails is no outage; renewals that fail for two heartbeat windows are", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let failures = 1;
    const { work } = rig.managers;
    let end: () => void = () => {};
    const worker = rig.start(() => new Promise<void>((resolve) => end = resolve), {
      capacity: 1,
      work: {
        extendLeases: (claimed, leaseMs) =>
          failures-- > 0
            ? Promise.reject(new UnavailableError("the answer was lost", "unknown"))
            : work.extendLeases(claimed, leaseMs),
      },
    });
    await rig.clock.tick(60_000);
    await rig.enqueue(ctx);
    for (let i = 0; i < 60; i++) {
      await rig.clock.tick(500);
      assert.deepEqual(worker.health().reasons, []);
    }
    failures = Infinity;
    await rig.until("unhealthy", () => !worker.health().ok, 20_000);
    assert.match(worker.health().reasons.join(), /out of reach for the renewal/);
    await rig.clock.tick(30_000);
    assert.equal(worker.health().ok, false, "a full worker hears of nothing else");
    failures = 0;
    end();
    await rig.until("healthy", () => worker.health().ok, 20_000);
  }));

Deno.test("one claim that fails after a long time without any is no outage", () =>
  WorkerRig.with(async (rig) => {
    const ctx = await rig.org();
    let failures = 0;
    let end: () => void = () => {};
    const { work } = rig.managers;
    const worker = rig.start(() => new Promise<void>((resolve) => end = resolve), {
      capacity: 1,
      work: {
        claim: (rctx, options) =>
          failures-- > 0
            ? Promise.reject(new UnavailableError("the answer was lost", "unknown"))
            : work.claim(rctx, options),
      },
    });
    await rig.untilStatus(ctx, await rig.enqueue(ctx), "claimed");
    await rig.clock.tick(50_000);
    failures = 1;
    end();
    for (let i = 0; i < 40; i++) {
      await rig.clock.tick(25);
      assert.deepEqual(worker.health().reasons, []);
    }
    assert.ok(rig.logged("database.out_of_reach") === 1);
  }));
