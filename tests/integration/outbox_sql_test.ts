/**
 * The SQL that README gives to every other language, run as it stands there.
 */
import assert from "node:assert/strict";
import { z } from "zod";
import { PostgresClient } from "../../src/db/client.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { defineKind } from "../../src/work/kinds.ts";
import { ROOT } from "../house/source_files.ts";
import { openManagers } from "../support/managers_rig.ts";

const KIND = defineKind("NOTIFY_SHIPMENT", { schema: z.object({ shipmentId: z.guid() }) });
const ORG = "018f0000-0000-7000-8000-000000000001";
const ITEM = "018f0000-0000-7000-8000-00000000000a";

Deno.test("the README's SQL enqueues in a transaction of its writer's own: with its commit, or not at all", async () => {
  const readme = await Deno.readTextFile(`${ROOT}README.md`);
  const sql = /```sql\n(select set_config[\s\S]*?)```/.exec(readme)?.[1];
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

Deno.test("a row of a slow transaction, which becomes visible after later ones were relayed, is still relayed", async () => {
  const rig = await openManagers("postgres", { kinds: [KIND] });
  const slow = await PostgresClient.open(rig.test.database?.url("runtime") ?? "");
  try {
    const { outbox, work } = rig.managers;
    const ctx = await rig.member();
    const insert = (id: string) => `
      select set_config('laneway.org_id', '${ctx.orgId}', true);
      insert into core.outbox (org_id, id, kind, payload, actor_id, created_at) values ('${ctx.orgId}', '${id}',
        'work.notify_shipment', '{"shipmentId": "${ITEM}"}', '${EMPTY_UUID}', now());`;
    const [early, late] = [newId(), newId()];
    await slow.script(`begin; ${insert(early)}`);
    const quick = await PostgresClient.open(rig.test.database?.url("runtime") ?? "");
    await quick.script(`begin; ${insert(late)} commit;`);
    await quick.close(1_000);
    assert.equal((await outbox.relayPending(rig.rctx, 10)).relayed, 1);
    assert.equal((await work.read(ctx, late)).status, "queued");
    await slow.script("commit;");
    assert.equal((await outbox.relayPending(rig.rctx, 10)).relayed, 1);
    assert.equal((await work.read(ctx, early)).status, "queued");
  } finally {
    await slow.close(1_000);
    await rig.close();
  }
});
