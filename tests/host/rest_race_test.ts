/**
 * Claims over REST beside claims by SQL: every item is held by exactly one.
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import type { OwnedItem } from "../../src/work/storage.ts";
import {
  buildHost,
  type HostWorld,
  KIND,
  LEASE_MS,
  refOf,
  rowOf,
  type TestHost,
  withHosts,
} from "../support/host_world.ts";
import { type Fate, scriptedRest } from "../support/scripted_rest.ts";

type Claimer = (limit: number) => Promise<OwnedItem[]>;

function bySql({ sql }: HostWorld): Claimer {
  return (limit) =>
    sql.work.claim({ lane: "default", kinds: [KIND], worker: "sql", leaseMs: LEASE_MS, limit, token: newId() });
}

function byRest(host: TestHost): Claimer {
  return (limit) => host.claim({ limit });
}

/** Each item once, and the row says of each holder that it is held by it. */
async function heldByOne({ db }: HostWorld, claimed: readonly OwnedItem[], count: number): Promise<void> {
  assert.equal(new Set(claimed.map(({ item }) => item.id)).size, claimed.length, "no item was handed out twice");
  assert.equal(claimed.length, count);
  const rows = await db.adminSql<{ id: string; claim_token: string; claims: string; attempts: number }>(
    "select id, claim_token, claims, attempts from queue.work_items where status = 'claimed'",
  );
  const told = new Map(claimed.map(({ item }) => [item.id, item.claimToken]));
  for (const row of rows) {
    assert.equal(row.claim_token, told.get(row.id));
    assert.deepEqual([row.claims, row.attempts], ["1", 1]);
  }
  assert.equal(rows.length, count);
}

Deno.test("many claimers over REST and by SQL share few items at the same moment, each held by exactly one", () =>
  withHosts(async (world) => {
    const hosts = [await world.host("host-1"), await world.host("host-2"), await world.host("host-3")];
    for (const host of hosts) await host.api.beat(null);
    // Two runners of each host.
    const claimers = [...hosts, ...hosts].map(byRest).concat([bySql(world), bySql(world)]);
    for (let round = 0; round < 15; round++) {
      const few = 3;
      for (let n = 0; n < few; n++) await world.put();
      const all = (await Promise.all(claimers.map((claim) => claim(few)))).flat();
      await heldByOne(world, all, few);
      await world.db.adminSql("delete from queue.work_items");
    }
  }));

Deno.test("claimers over REST and by SQL drain a backlog together without an item twice or one left", () =>
  withHosts(async (world) => {
    const hosts = [await world.host("host-1"), await world.host("host-2")];
    for (const host of hosts) await host.api.beat(null);
    const items = 120;
    for (let n = 0; n < items; n++) await world.put({ priority: 5 + (n % 3) });
    const drain = async (claim: Claimer): Promise<OwnedItem[]> => {
      const all: OwnedItem[] = [];
      for (let empty = 0; empty < 3;) {
        const some = await claim(4);
        empty = some.length === 0 ? empty + 1 : 0;
        all.push(...some);
      }
      return all;
    };
    const told = await Promise.all([...hosts, ...hosts].map(byRest).concat([bySql(world)]).map(drain));
    await heldByOne(world, told.flat(), items);
  }));

Deno.test("an item claimed and handed back between the read and the write of a claim is not taken by the old read", () =>
  withHosts(async (world) => {
    const item = await world.put();
    const server = scriptedRest(world.rest.url);
    await world.host("wsl1");
    const host = buildHost(rowOf("wsl1", world.a), { url: server.url, readKey: () => world.rest.key("wsl1") });
    try {
      let between = false;
      server.script = async ({ method, path }): Promise<Fate> => {
        if (method === "PATCH" && path === "/work_items" && !between) {
          between = true;
          const [owned] = await bySql(world)(1);
          assert.ok(owned);
          const back = { ...refOf(owned), to: "back", delayMs: 0, note: null, ran: false } as const;
          assert.deepEqual(await world.sql.work.settle([back]), ["WRITTEN"]);
        }
        return "pass";
      };
      assert.deepEqual(await host.claim(), [], "attempts, token and status are as they were read; the claims are not");
      const [owned] = await host.claim();
      assert.deepEqual([owned?.item.id, owned?.item.claims, owned?.item.attempts], [item.id, 2, 1]);
    } finally {
      await server.stop();
    }
  }));

Deno.test("a claim that became forbidden between its read and its write takes nothing", () =>
  withHosts(async (world) => {
    const item = await world.put();
    const server = scriptedRest(world.rest.url);
    await world.host("wsl1");
    const host = buildHost(rowOf("wsl1", world.a), { url: server.url, readKey: () => world.rest.key("wsl1") });
    try {
      server.script = async ({ method, path }): Promise<Fate> => {
        if (method === "PATCH" && path === "/work_items") {
          await world.db.adminSql("update queue.hosts set enabled = false");
        }
        return "pass";
      };
      assert.deepEqual(await host.claim(), []);
      assert.equal((await world.read(item)).status, "queued");
    } finally {
      await server.stop();
    }
  }));
