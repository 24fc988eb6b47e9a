/**
 * The SQL that the outbox's README gives to every other language, run as it stands there.
 */
import assert from "node:assert/strict";
import { z } from "zod";
import { PostgresClient } from "../../src/db/client.ts";
import { EMPTY_UUID } from "../../src/core/ids.ts";
import { defineKind } from "../../src/work/kinds.ts";
import { ROOT } from "../house/source_files.ts";
import { openManagers } from "../support/managers_rig.ts";

const KIND = defineKind("NOTIFY_SHIPMENT", { schema: z.object({ shipmentId: z.guid() }) });
const ORG = "018f0000-0000-7000-8000-000000000001";
const ITEM = "018f0000-0000-7000-8000-00000000000a";

Deno.test("the README's SQL enqueues in a transaction of its writer's own: with its commit, or not at all", async () => {
  const readme = await Deno.readTextFile(`${ROOT}src/outbox/README.md`);
  const sql = /```sql\n([\s\S]*?)```/.exec(readme)?.[1];
  assert.ok(sql);
  const rig = await openManagers("postgres", { kinds: [KIND] });
  const writer = await PostgresClient.open(rig.test.database?.url("runtime") ?? "");
  try {
    const { tenancy, outbox, work } = rig.managers;
    await tenancy.createOrg(rig.rctx, { id: ORG, name: "Org" });
    const ctx = await tenancy.serviceContext(rig.rctx, ORG);
    await writer.script(`begin; ${sql} rollback;`);
    assert.equal((await outbox.relayPending(rig.rctx, 10)).relayed, 0);
    await writer.script(`begin; ${sql} commit;`);
    await assert.rejects(
      writer.script(`begin; ${sql} commit;`),
      "the same id twice is refused, and nothing is written",
    );
    await writer.script("rollback;");
    assert.equal((await outbox.relayPending(rig.rctx, 10)).relayed, 1);
    const item = await work.read(ctx, ITEM);
    assert.deepEqual(
      [item.kind, item.lane, item.idempotencyKey, item.createdBy, Object.keys(item.payload)],
      ["NOTIFY_SHIPMENT", "default", ITEM, EMPTY_UUID, ["shipmentId"]],
    );
  } finally {
    await writer.close(1_000);
    await rig.close();
  }
});
