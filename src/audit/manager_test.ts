import assert from "node:assert/strict";
import { ValidationError } from "../core/errors.ts";
import { EMPTY_UUID, newId } from "../core/ids.ts";
import type { OpContext, RequestContext } from "../core/context.ts";
import { createAuditManager } from "./manager.ts";
import type { AuditEntry, AuditStorage } from "./types.ts";

const RCTX = { requestId: newId(), app: { type: "WORKER", version: "t@0" } } as RequestContext;

function entry(detail: AuditEntry["detail"] = null): AuditEntry {
  return {
    id: newId(),
    orgId: newId(),
    actorId: EMPTY_UUID,
    action: "WORK_DEAD_LETTERED",
    subjectType: "work_item",
    subjectId: newId(),
    requestId: null,
    app: "t@0",
    detail,
    createdAt: new Date(0),
  };
}

/** A storage that notes the sizes of its batches and the orgs it was asked for. */
function recorder(): { storage: AuditStorage; batches: number[]; asked: unknown[][] } {
  const batches: number[] = [];
  const asked: unknown[][] = [];
  const storage: AuditStorage = {
    createEntries: (entries) => Promise.resolve(void batches.push(entries.length)),
    appendEvent: () => Promise.resolve({ seq: 1, inserted: true }),
    readEntries: (...args) => Promise.resolve(void asked.push(args)).then(() => []),
    readEvents: (...args) => Promise.resolve(void asked.push(args)).then(() => []),
  };
  return { storage, batches, asked };
}

Deno.test("appendEntries() writes long lists in chunks of one statement each", async () => {
  const { storage, batches } = recorder();
  await createAuditManager(storage).appendEntries(RCTX, Array.from({ length: 1_001 }, () => entry()));
  assert.deepEqual(batches, [500, 500, 1]);
});

Deno.test("appendEntries() refuses a detail that JSON would change before it writes any entry", async () => {
  const { storage, batches } = recorder();
  const refused = createAuditManager(storage).appendEntries(RCTX, [entry(), entry({ n: NaN })]);
  await assert.rejects(refused, (e) => e instanceof ValidationError && e.field === "entries[1].detail.n");
  assert.deepEqual(batches, []);
});

Deno.test("readEntries() and readEvents() ask for the context's org and refuse odd pages", async () => {
  const { storage, asked } = recorder();
  const manager = createAuditManager(storage);
  const ctx = { orgId: newId() } as OpContext;
  await manager.readEntries(ctx, { limit: 5 });
  await manager.readEvents(ctx, { afterSeq: 0, limit: 7 });
  assert.deepEqual(asked, [[ctx.orgId, 5], [ctx.orgId, 0, 7]]);
  await assert.rejects(manager.readEntries(ctx, { limit: 0 }), ValidationError);
  await assert.rejects(manager.readEvents(ctx, { afterSeq: -1, limit: 7 }), ValidationError);
  await assert.rejects(manager.readEvents(ctx, { afterSeq: 0, limit: 1_001 }), ValidationError);
});
