/**
 * What every storage of sample records must do, as a function that registers the cases for a store.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId, newOutboxRow, type OpContext, type OutboxRow } from "laneway";
import { sampleRecordStorage, type TestContainer } from "../container.ts";
import type { SampleRecordStorage } from "../sample_records/types.ts";
import { member, request } from "./world.ts";

interface World {
  readonly storage: SampleRecordStorage;
  readonly ctx: OpContext;
  readonly stranger: OpContext;
  /** How many outbox rows wait. */
  pending(): Promise<number>;
}

/** Registers the cases. @param open Opens a migrated store, empty of sample records. */
export function testSampleRecordStorage(store: string, open: () => Promise<TestContainer>): void {
  for (const [name, run] of Object.entries(CASES)) {
    Deno.test(`${name}, on ${store}`, async () => {
      const container = await open();
      try {
        await run({
          storage: sampleRecordStorage(container.store),
          ctx: await member(container),
          stranger: await member(container),
          pending: async () => (await container.managers.outbox.readLag(request(container))).pending,
        });
      } finally {
        await container.close();
      }
    });
  }
}

function insertOf({ userId }: OpContext, id = newId()) {
  return { id, reference: "Łódź № 1", effectId: newId(), createdBy: userId };
}

function rowOf(ctx: OpContext, id: string): OutboxRow {
  return newOutboxRow(ctx, "sample_records.sample_record.created", { id });
}

const CASES: Readonly<Record<string, (world: World) => Promise<void>>> = {
  "create() writes the sample record with its outbox rows, once": async ({ storage, ctx, pending }) => {
    const insert = insertOf(ctx);
    const created = await storage.create(ctx.orgId, insert, [rowOf(ctx, insert.id)]);
    assert.deepEqual([created?.version, created?.status, created?.reference], [1, "open", insert.reference]);
    assert.deepEqual(await storage.read(ctx.orgId, insert.id), created);
    assert.equal(await storage.create(ctx.orgId, { ...insert, reference: "other" }, [rowOf(ctx, insert.id)]), null);
    assert.deepEqual(await storage.read(ctx.orgId, insert.id), created);
    assert.equal(await pending(), 1);
  },

  "markDone() takes the expected version alone, and writes its outbox rows only when it does": async (
    { storage, ctx, pending },
  ) => {
    const insert = insertOf(ctx);
    await storage.create(ctx.orgId, insert, []);
    const mark = { id: insert.id, expectedVersion: 2, updatedBy: ctx.userId };
    assert.equal(await storage.markDone(ctx.orgId, mark, [rowOf(ctx, insert.id)]), null);
    assert.equal(await pending(), 0);
    const marked = await storage.markDone(ctx.orgId, { ...mark, expectedVersion: 1 }, [rowOf(ctx, insert.id)]);
    assert.deepEqual([marked?.version, marked?.status], [2, "done"]);
    assert.ok(marked?.doneAt instanceof Date);
    assert.equal(await storage.markDone(ctx.orgId, mark, [rowOf(ctx, insert.id)]), null);
    assert.equal(await pending(), 1);
  },

  "nothing is read or written across orgs": async ({ storage, ctx, stranger }) => {
    const insert = insertOf(ctx);
    const created = await storage.create(ctx.orgId, insert, []);
    const mark = { id: insert.id, expectedVersion: 1, updatedBy: stranger.userId };
    assert.equal(await storage.read(stranger.orgId, insert.id), null);
    assert.equal(await storage.markDone(stranger.orgId, mark, []), null);
    assert.deepEqual(await storage.read(ctx.orgId, insert.id), created);
  },
};
