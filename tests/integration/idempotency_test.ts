import assert from "node:assert/strict";
import { UnavailableError } from "../../src/core/errors.ts";
import { newId } from "../../src/core/ids.ts";
import { createIdempotencyManager } from "../../src/idempotency/manager.ts";
import type { IdempotencyStorage } from "../../src/idempotency/types.ts";
import { ANY, type ManagersRig, openManagers } from "../support/managers_rig.ts";
import { ENGINES } from "../support/stores.ts";

const CASES: Readonly<Record<string, (rig: ManagersRig) => Promise<void>>> = {
  "once() carries a request out once and replays what came of it, whatever the order of its keys": async (rig) => {
    const ctx = await rig.member();
    const { idempotency } = rig.managers;
    const key = newId();
    const seen: string[] = [];
    const run = (request: { a: number; b: number }) =>
      idempotency.once(ctx, { key, request }, (recordId) => {
        seen.push(recordId);
        return Promise.resolve({ recordId });
      });
    const first = await run({ a: 1, b: 2 });
    assert.deepEqual(await run({ b: 2, a: 1 }), first);
    assert.deepEqual(seen, [first.recordId]);
    await assert.rejects(run({ a: 1, b: 3 }), /belongs to another request/);
  },
  "once() at the same time: one runs, the others are told to come back, then replay": async (rig) => {
    const ctx = await rig.member();
    const { idempotency } = rig.managers;
    const key = newId();
    let runs = 0;
    const all = await Promise.allSettled(
      Array.from({ length: 10 }, () =>
        idempotency.once(ctx, { key, request: {} }, async () => {
          runs++;
          await new Promise((resolve) => setTimeout(resolve, 20));
          return "made";
        })),
    );
    assert.equal(runs, 1);
    for (const result of all) {
      if (result.status === "fulfilled") assert.equal(result.value, "made");
      else assert.match(String(result.reason), /another attempt holds it/);
    }
    assert.equal(await idempotency.once(ctx, { key, request: {} }, () => Promise.resolve("again")), "made");
  },
  "an operation that throws releases its attempt: the next begins at once, with the same record id": async (rig) => {
    const ctx = await rig.member();
    const { idempotency } = rig.managers;
    const key = newId();
    const ids: string[] = [];
    const run = (fail: boolean) =>
      idempotency.once(ctx, { key, request: {} }, (recordId) => {
        ids.push(recordId);
        return fail ? Promise.reject(new Error("no")) : Promise.resolve(recordId);
      });
    await assert.rejects(run(true), /no/);
    assert.equal(await run(false), ids[0]);
    assert.equal(new Set(ids).size, 1);
  },
  "an attempt that died is taken over when its lease is out, and its late finish is refused": async (rig) => {
    const ctx = await rig.member();
    const { idempotency } = rig.managers;
    const options = { key: newId(), request: {}, leaseMs: 5_000 };
    const dead = await idempotency.begin(ctx, options);
    assert.equal(dead.state, "STARTED");
    await assert.rejects(idempotency.begin(ctx, options), { code: "CONFLICT" });
    await rig.test.advance(5_001);
    const next = await idempotency.begin(ctx, options);
    assert.ok(dead.state === "STARTED" && next.state === "STARTED");
    assert.equal(next.attempt.recordId, dead.attempt.recordId);
    await assert.rejects(idempotency.finish(ctx, dead.attempt, 1), { code: "CONFLICT" });
    await idempotency.finish(ctx, next.attempt, 2);
    assert.deepEqual(await idempotency.begin(ctx, options), {
      state: "FINISHED",
      recordId: next.attempt.recordId,
      outcome: 2,
    });
  },
  "create and enqueue, repeated after a crash between the two, makes one record and one item": async (rig) => {
    const ctx = await rig.member();
    const { idempotency, work } = rig.managers;
    const records = new Set<string>();
    const options = { key: newId(), request: { order: 7 } };
    let crashed = false;
    const run = () =>
      idempotency.once(ctx, options, async (recordId) => {
        records.add(recordId);
        const key = `notify:${recordId}`;
        const { id } = await work.enqueue(ctx, { kind: ANY.name, idempotencyKey: key, payload: { recordId } });
        if (!crashed) {
          crashed = true;
          throw new Error("crash");
        }
        return { recordId, itemId: id };
      });
    await assert.rejects(run(), /crash/);
    const made = await run();
    assert.deepEqual(await run(), made);
    assert.equal(records.size, 1);
    assert.equal((await work.read(ctx, made.itemId)).payload.recordId, made.recordId);
  },
  "answers that were lost are asked for again, at every move": async (rig) => {
    const ctx = await rig.member();
    const lossy = new Proxy(rig.storages.idempotency, {
      get(target, name) {
        const move = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
        let calls = 0;
        return async (...args: unknown[]) => {
          const answer = await move.apply(target, args);
          if (++calls === 1) throw new UnavailableError("the answer was lost", "unknown");
          return answer;
        };
      },
    });
    const methods = new Map<string | symbol, unknown>();
    // One wrapper a method, so that each loses its first answer only.
    const storage = new Proxy(lossy, {
      get(target, name) {
        if (!methods.has(name)) methods.set(name, Reflect.get(target, name));
        return methods.get(name);
      },
    }) as IdempotencyStorage;
    const idempotency = createIdempotencyManager(storage, { markerRetentionMs: 1_000 });
    const options = { key: newId(), request: {} };
    assert.equal(await idempotency.once(ctx, options, () => Promise.resolve("made")), "made");
    assert.equal(await idempotency.once(ctx, options, () => Promise.resolve("again")), "made");
  },
  "bad keys, leases, ids and requests are refused naming the field": async (rig) => {
    const ctx = await rig.member();
    const { idempotency } = rig.managers;
    const good = { key: "k", request: {} };
    for (
      const [field, bad] of Object.entries({
        key: { ...good, key: "" },
        leaseMs: { ...good, leaseMs: 999 },
        recordId: { ...good, recordId: "x" },
        "request.a": { ...good, request: { a: "\u0000" } },
      })
    ) {
      await assert.rejects(idempotency.begin(ctx, bad), { code: "VALIDATION", field });
    }
  },
};

for (const engine of ENGINES) {
  Deno.test(`IdempotencyManager on ${engine}`, async (t) => {
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
