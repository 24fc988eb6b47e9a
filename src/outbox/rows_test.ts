import assert from "node:assert/strict";
import type { OpContext } from "../core/context.ts";
import { ValidationError } from "../core/errors.ts";
import { isUuid, newId } from "../core/ids.ts";
import { changedEntity } from "./rules.ts";
import { newOutboxRow } from "./rows.ts";

const CTX = {
  orgId: newId(),
  userId: newId(),
  role: "MEMBER",
  requestId: newId(),
  causedByRequestId: newId(),
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  app: { type: "SERVICE", version: "t@0" },
} as unknown as OpContext;

const refusing = (field: string) => (error: unknown) => error instanceof ValidationError && error.field === field;

Deno.test("newOutboxRow() stamps org, actor, request and trace from the context, under a fresh id", () => {
  const row = newOutboxRow(CTX, "work.notify_shipment", { lane: "default" });
  assert.ok(isUuid(row.id));
  assert.notEqual(row.id, newOutboxRow(CTX, "work.notify_shipment", {}).id);
  assert.deepEqual(
    [row.orgId, row.actorId, row.requestId, row.traceparent],
    [CTX.orgId, CTX.userId, CTX.requestId, CTX.traceparent],
  );
  assert.equal(
    newOutboxRow({ ...CTX, traceparent: undefined } as unknown as OpContext, "work.x", {}).traceparent,
    null,
  );
});

Deno.test("newOutboxRow() refuses kinds of neither form", () => {
  for (const kind of ["", "work.", "work.A", "work.a.b", "a.b", "a.b.c.d", "A.b.c", "shipments.shipment.", "a b.c.d"]) {
    assert.throws(() => newOutboxRow(CTX, kind, { id: newId() }), refusing("kind"), `kind "${kind}" was taken`);
  }
});

Deno.test("newOutboxRow() refuses payloads that JSON would change, name no entity, or are too large", () => {
  assert.throws(() => newOutboxRow(CTX, "work.x", { a: [NaN] }), refusing("payload.a[0]"));
  assert.throws(() => newOutboxRow(CTX, "work.x", [] as never), refusing("payload"));
  assert.throws(() => newOutboxRow(CTX, "shipments.shipment.created", {}), refusing("payload.id"));
  assert.throws(() => newOutboxRow(CTX, "work.x", { text: "x".repeat(262_144) }), refusing("payload"));
  assert.throws(() => newOutboxRow(CTX, "work.x", { text: "0123456789" }, { maxBytes: 10 }), refusing("payload"));
});

Deno.test("changedEntity() takes the entity from the kind and its id from the payload", () => {
  const id = newId();
  assert.deepEqual(changedEntity(newOutboxRow(CTX, "shipments.shipment.created", { id })), {
    entity: "shipment",
    entityId: id,
  });
  assert.equal(changedEntity(newOutboxRow(CTX, "work.x", {})), null);
});
