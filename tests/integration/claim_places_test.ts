/**
 * Completion by the place a claim left its row at: the place is a hint, the fence is the whole of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { PostgresClient } from "../../src/db/client.ts";
import type { Param, StatementOptions } from "../../src/db/database.ts";
import { newId } from "../../src/core/ids.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages, type Storages } from "../../src/storages.ts";
import type { ClaimRef } from "../../src/work/storage.ts";
import { PostgresWorkStorage } from "../../src/work/storage/postgres.ts";
import { workSql } from "../../src/work/storage/sql.ts";
import { insertOf, KIND } from "../support/breach_world.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

interface Rig {
  readonly database: TestDatabase;
  readonly storages: Storages;
  readonly orgId: string;
}

async function withRig(test: (rig: Rig) => Promise<void>): Promise<void> {
  const database = await createTestDatabase(CHAINS);
  try {
    const storages = createStorages({ engine: "postgres", databases: database.databases });
    await test({ database, storages, orgId: newId() });
  } finally {
    await database.drop();
  }
}

/** Items of one lane, claimed, in claim order. */
async function claimed({ storages, orgId }: Rig, count: number): Promise<ClaimRef[]> {
  const lane = newId();
  await storages.work.createItems(orgId, Array.from({ length: count }, () => insertOf({ lane })));
  const token = newId();
  const rows = await storages.work.claim({ lane, kinds: [KIND], worker: "w", leaseMs: 60_000, limit: count, token });
  assert.equal(rows.length, count);
  return rows.map(({ item }) => ({ orgId, id: item.id, token }));
}

async function places({ database }: Rig): Promise<Map<string, string>> {
  const rows = await database.adminSql("select id, ctid::text as place from queue.work_items");
  return new Map(rows.map((row) => [String(row.id), String(row.place)]));
}

const done = (refs: readonly ClaimRef[], keep = true) => refs.map((ref) => ({ ...ref, to: "done", keep }) as const);

Deno.test("another's row at a claim's place is not touched, whatever part of the fence it shares", () =>
  withRig(async (rig) => {
    const [mine, theirs] = await claimed(rig, 2);
    assert.ok(mine && theirs);
    const place = (await places(rig)).get(theirs.id);
    const client = await PostgresClient.open(rig.database.url("system"));
    try {
      const sql = workSql("now()");
      for (const text of [sql.completePlaced, sql.completePlacedAndDrop]) {
        const others: ClaimRef[] = [
          mine,
          { ...theirs, orgId: newId() },
          { ...theirs, id: mine.id },
          { ...theirs, token: newId() },
        ];
        for (const ref of others) {
          const params = [ref.orgId, ref.id, ref.token, `"${place}"`].map((value) => `{${value}}`);
          assert.deepEqual((await client.query(text, params)).map(({ n }) => Number(n)), [1]);
        }
      }
      assert.equal((await places(rig)).get(theirs.id), place);
      // Nor past its lease, which is the whole fence but the time.
      await rig.database.adminSql("update queue.work_items set lease_expires_at = now()");
      const moved = (await places(rig)).get(theirs.id);
      const params = [theirs.orgId, theirs.id, theirs.token, `"${moved}"`].map((value) => `{${value}}`);
      assert.equal((await client.query(sql.completePlaced, params)).length, 1);
      assert.equal((await places(rig)).size, 2);
    } finally {
      await client.close();
    }
  }));

Deno.test("what was renewed, or moved by a rewrite of the table, is completed by its key", () =>
  withRig(async (rig) => {
    const { work } = rig.storages;
    const refs = await claimed(rig, 4);
    const before = await places(rig);
    assert.deepEqual(await work.extendLeases(refs.slice(0, 2), 60_000), ["WRITTEN", "WRITTEN"]);
    const renewed = await places(rig);
    assert.deepEqual(refs.map(({ id }) => before.get(id) !== renewed.get(id)), [true, true, false, false]);
    assert.deepEqual(await work.settle(done(refs)), Array(4).fill("WRITTEN"));
    assert.deepEqual(await work.settle(done(refs)), Array(4).fill("ALREADY"));
    const others = await claimed(rig, 3);
    await rig.database.adminSql("vacuum full queue.work_items");
    assert.deepEqual(await work.settle(done(others, false)), Array(3).fill("WRITTEN"));
    assert.equal((await places(rig)).size, 0);
  }));

Deno.test("a place beyond the end of the table is no place", () =>
  withRig(async (rig) => {
    const refs = await claimed(rig, 2);
    await rig.database.adminSql("delete from queue.work_items");
    await rig.database.adminSql("vacuum (truncate) queue.work_items");
    assert.deepEqual(await rig.storages.work.settle(done(refs)), ["REFUSED", "REFUSED"]);
  }));

Deno.test("what lies where its claim left it is completed without a look at its key", () =>
  withRig(async (rig) => {
    const asked: string[] = [];
    const db = new Proxy(rig.database.databases.queue, {
      get(target, property) {
        if (property !== "system") return Reflect.get(target, property);
        return (sql: string, ...rest: [Param[], StatementOptions]) => {
          asked.push(sql);
          return target.system(sql, ...rest);
        };
      },
    });
    const storages = { ...rig.storages, work: new PostgresWorkStorage(db) };
    const refs = await claimed({ ...rig, storages }, 50);
    asked.length = 0;
    assert.deepEqual(await storages.work.settle(done([...refs].reverse())), Array(50).fill("WRITTEN"));
    assert.deepEqual(asked, [workSql("now()").completePlaced]);
  }));
