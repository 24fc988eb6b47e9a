/**
 * The handler over the memory container. Every item is run twice, as a crash after the effect would have it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { ConflictError, FinalError, newId, type OpContext, type WorkItem } from "laneway";
import { forTests, type TestContainer, type TestOptions } from "../container.ts";
import { HandleSampleRecordHandler } from "../handler.ts";
import type { HandleSampleRecordPayload } from "../kind.ts";
import type { SampleRecord } from "../sample_records/types.ts";
import { claimOne, member, runOf, WatchedEffect } from "./world.ts";

interface World {
  readonly container: TestContainer;
  readonly ctx: OpContext;
  readonly item: WorkItem<HandleSampleRecordPayload>;
  readonly sampleRecord: SampleRecord;
  /** The sample record as it stands. */
  read(): Promise<SampleRecord>;
}

/** One created sample record whose item is claimed. */
async function withClaim(options: TestOptions, test: (world: World) => Promise<void>): Promise<void> {
  const container = await forTests(options);
  try {
    const { sampleRecord } = await container.sampleRecords.create(await member(container), { reference: "№ 1" });
    const { ctx, item } = await claimOne(container);
    await test({ container, ctx, item, sampleRecord, read: () => container.sampleRecords.read(ctx, sampleRecord.id) });
  } finally {
    await container.close();
  }
}

Deno.test("an item run twice makes one effect and marks its sample record once", async () => {
  const effect = new WatchedEffect();
  await withClaim({ effect }, async ({ container, ctx, item, sampleRecord, read }) => {
    await container.handler.handle(ctx, item, runOf());
    const marked = await read();
    await container.handler.handle(ctx, item, runOf());
    assert.deepEqual(await read(), marked);
    assert.deepEqual([marked.status, marked.version], ["done", 2]);
    assert.deepEqual(effect.made, [{ id: sampleRecord.id, effectId: item.idempotencyKey }]);
  });
});

Deno.test("a crash between the effect and the mark makes the effect again, under its id, and marks once", async () => {
  const effect = new WatchedEffect();
  await withClaim({ effect }, async ({ container, ctx, item, read }) => {
    const dying = new HandleSampleRecordHandler({
      sampleRecords: {
        read: (on, id) => container.sampleRecords.read(on, id),
        markDone: () => Promise.reject(new Error("killed")),
      },
      effect,
      timeoutMs: 5_000,
    });
    await assert.rejects(dying.handle(ctx, item, runOf()), /killed/);
    assert.equal((await read()).status, "open");
    await container.handler.handle(ctx, item, runOf());
    assert.equal((await read()).version, 2);
    assert.equal(effect.made.length, 2);
    assert.equal(new Set(effect.made.map(({ effectId }) => effectId)).size, 1);
  });
});

Deno.test("a mark that lost its compare-and-set reads again: done by another is fine, moved on is marked anew", async () => {
  await withClaim({}, async ({ container, ctx, item, read }) => {
    let refusals = 1;
    const racing = new HandleSampleRecordHandler({
      sampleRecords: {
        read: (on, id) => container.sampleRecords.read(on, id),
        markDone: (on, id, version) =>
          refusals-- > 0
            ? Promise.reject(new ConflictError("lost"))
            : container.sampleRecords.markDone(on, id, version),
      },
      effect: new WatchedEffect(),
      timeoutMs: 5_000,
    });
    await racing.handle(ctx, item, runOf());
    assert.equal((await read()).version, 2);
  });
  let meanwhile: () => Promise<unknown> = () => Promise.resolve();
  const effect = new WatchedEffect(async () => void await meanwhile());
  await withClaim({ effect }, async ({ container, ctx, item, sampleRecord, read }) => {
    meanwhile = () => container.sampleRecords.markDone(ctx, sampleRecord.id, 1);
    for (let run = 0; run < 2; run++) await container.handler.handle(ctx, item, runOf());
    assert.equal((await read()).version, 2);
    assert.equal(effect.made.length, 1);
  });
});

Deno.test("an effect that fails leaves its sample record open, and is made again", async () => {
  const effect = new WatchedEffect((_run, times) => times === 1 ? Promise.reject(new Error("503")) : Promise.resolve());
  await withClaim({ effect }, async ({ container, ctx, item, read }) => {
    await assert.rejects(container.handler.handle(ctx, item, runOf()), /503/);
    assert.equal((await read()).status, "open");
    await container.handler.handle(ctx, item, runOf());
    assert.equal((await read()).status, "done");
  });
});

Deno.test("an effect that hangs is cut by its time limit, and by the run's own signal", async () => {
  const hang = () =>
    new WatchedEffect(({ signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
    );
  await withClaim({ effect: hang(), timeoutMs: 20 }, async ({ container, ctx, item, read }) => {
    for (let run = 0; run < 2; run++) {
      await assert.rejects(container.handler.handle(ctx, item, runOf()), /longer than 20 ms/);
    }
    assert.equal((await read()).status, "open");
  });
  await withClaim({ effect: hang() }, async ({ container, ctx, item }) => {
    const stop = new AbortController();
    const runs = [1, 2].map(() => container.handler.handle(ctx, item, runOf({ signal: stop.signal })));
    stop.abort(new Error("drained"));
    for (const run of runs) await assert.rejects(run, /drained/);
  });
});

Deno.test("an item of what does not exist, or is another org's, is a dead letter at once", async () => {
  await withClaim({}, async ({ container, ctx, item }) => {
    const stranger = await member(container);
    const unknown = { ...item, payload: { sampleRecordId: newId() } };
    for (let run = 0; run < 2; run++) {
      await assert.rejects(container.handler.handle(stranger, item, runOf()), FinalError);
      await assert.rejects(container.handler.handle(ctx, unknown, runOf()), FinalError);
    }
  });
});
