/**
 * A host's storage over a real PostgREST: names at the edges, times, fences, and what a host leaves to others.
 */
import assert from "node:assert/strict";
import * as z from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { FinalError } from "../../src/core/errors.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createHostTenancy } from "../../src/tenancy/host_contexts.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { OwnedItem, Settlement } from "../../src/work/storage.ts";
import { createWorkManager } from "../../src/work/work_manager.ts";
import { buildHost, KIND, LEASE_MS, refOf, rowOf, type TestHost, withHosts } from "../support/host_world.ts";
import { scriptedRest } from "../support/scripted_rest.ts";

Deno.test("names with commas, quotes, dots, parentheses and other scripts are claimed as they are", () =>
  withHosts(async (world) => {
    const odd = ['a,"b"\\c', "x.eq.(y)", "sp ace+plus%20&and=#", "日本 🚚", "null", "in.(a)", "*", "'; drop--"];
    const host = await world.host("wsl1", { row: { kinds: odd, weights: odd, lane: odd[0] ?? "" } });
    for (const name of odd) {
      const item = await world.put({ kind: name, weight: name, lane: odd[0] ?? "", payload: { name } });
      const [owned] = await host.claim();
      assert.deepEqual([owned?.item.id, owned?.item.kind, owned?.item.payload], [item.id, name, { name }]);
      if (owned !== undefined) {
        await host.storage.settle([{ ...refOf(owned), to: "failed", error: name, auditId: newId() }]);
      }
      assert.equal((await world.read(item)).last_error, name);
    }
  }));

Deno.test("a claim brings the whole item, in the order of priority, time and id across kinds", () =>
  withHosts(async (world) => {
    const kinds = [KIND, "REVIEW_PR", "ABSENT"];
    const host = await world.host("wsl1", { row: { kinds } });
    const requestId = newId();
    const late = await world.put({ priority: 50, kind: "REVIEW_PR" });
    const early = await world.put({ requestId, traceparent: "tp", targetId: newId(), payload: { n: [1, { x: "ü" }] } });
    const first = await world.put({ priority: 7, kind: "REVIEW_PR" });
    const claimed = await host.claim({ limit: 2 });
    assert.deepEqual(claimed.map(({ item }) => item.id), [first.id, early.id]);
    const [, owned] = claimed;
    assert.ok(owned);
    const bySql = (await world.sql.work.readClaimed(owned.item.claimToken ?? "")).find(({ item }) =>
      item.id === early.id
    );
    assert.deepEqual(owned, bySql, "as SQL reads it");
    assert.equal((await world.read(late)).status, "queued");
  }));

Deno.test("of one millisecond the earlier microsecond goes first, whatever the ids", () =>
  withHosts(async (world) => {
    const host = await world.host("wsl1");
    const items = [await world.put(), await world.put(), await world.put()];
    const micros = ["2026-01-01T00:00:00.0007Z", "2026-01-01T00:00:00.00025Z", "2026-01-01T00:00:00Z"];
    for (const [n, { id }] of items.entries()) {
      await world.db.adminSql("update queue.work_items set available_at = $2::text::timestamptz where id = $1::uuid", [
        ...[id, micros[n] ?? ""],
      ]);
    }
    assert.deepEqual((await host.claim()).map(({ item: { id } }) => id), items.map(({ id }) => id).reverse());
  }));

Deno.test("a host of a thousand orgs asks with URLs that gateways take, and finds what is due in each", () =>
  withHosts(async (world) => {
    const server = scriptedRest(world.rest.url);
    try {
      const orgIds = [world.a, ...Array.from({ length: 998 }, () => newId()), world.b];
      await world.host("wsl1", { row: { orgIds } });
      const readKey = () => world.rest.key("wsl1");
      const host = buildHost(rowOf("wsl1", world.a, { orgIds }), { url: server.url, readKey });
      const late = await world.put({ priority: 20 });
      const soon = await world.put({ priority: 7 }, { orgId: world.b });
      assert.deepEqual((await host.claim()).map(({ item: { id } }) => id), [soon.id, late.id]);
      const longest = Math.max(...server.seen.map(({ path, query }) => `${path}?${query}`.length));
      assert.ok(longest < 8_000, `${longest} characters`);
    } finally {
      await server.stop();
    }
  }));

Deno.test("leases go by the database's clock, however wrong the host's wall clock is", () =>
  withHosts(async (world) => {
    await world.host("wsl1");
    for (const skewMs of [-86_400_000, 0, 86_400_000]) {
      const clock = { ...systemClock, now: () => Date.now() + skewMs };
      const url = world.rest.url;
      const host = buildHost(rowOf("wsl1", world.a), { url, readKey: () => world.rest.key("wsl1"), client: { clock } });
      const item = await world.put();
      const [owned] = await host.claim();
      assert.ok(owned?.item.leaseExpiresAt);
      const granted = owned.item.leaseExpiresAt.getTime() - owned.item.updatedAt.getTime();
      assert.ok(granted > 0 && granted <= LEASE_MS, `${granted}: never longer than asked for`);
      await host.storage.settle([{ ...refOf(owned), to: "retry", delayMs: 60_000, error: "e" }]);
      const row = await world.read(item);
      const delay = (row.available_at as Date).getTime() - (row.updated_at as Date).getTime();
      assert.ok(delay > 0 && delay <= 60_000, `${delay}`);
    }
  }));

Deno.test("a host that slept does not spend an attempt on a lease that has passed; its next heartbeat mends it", () =>
  withHosts(async (world) => {
    const item = await world.put();
    const host = await world.host("wsl1");
    await host.api.beat(null);
    // As after a suspension: the monotonic clock stood still meanwhile.
    host.time.note(Date.now() - 3_600_000);
    await assert.rejects(host.claim(), { code: "UNAVAILABLE", outcome: "not-executed" });
    const row = await world.read(item);
    assert.deepEqual([row.status, row.attempts, row.claims], ["queued", 0, "0"]);
    await host.api.beat(null);
    const [owned] = await host.claim();
    assert.ok(owned);
    host.time.note(Date.now() - 3_600_000);
    await assert.rejects(host.storage.extendLeases([refOf(owned)], LEASE_MS), { code: "UNAVAILABLE" });
    await host.api.beat(null);
    assert.deepEqual(await host.storage.extendLeases([refOf(owned)], LEASE_MS), ["WRITTEN"]);
  }));

Deno.test("no write passes once the lease has passed or under another token, and the row is as it was", () =>
  withHosts(async (world) => {
    const item = await world.put();
    const host = await world.host("wsl1");
    const [owned] = await host.claim();
    assert.ok(owned);
    const ref = refOf(owned);
    const ways = (of: typeof ref): Settlement[] => [
      { ...of, to: "done" },
      { ...of, to: "failed", error: "e", auditId: newId() },
      { ...of, to: "retry", delayMs: 0, error: "e" },
      { ...of, to: "back", delayMs: 0, note: null, ran: true },
    ];
    const before = await world.read(item);
    const refused = async (of: typeof ref) => {
      for (const settlement of ways(of)) {
        assert.deepEqual(await host.storage.settle([settlement]), ["REFUSED"], settlement.to);
      }
      assert.deepEqual(await host.storage.extendLeases([of], LEASE_MS), ["REFUSED"]);
    };
    await refused({ ...ref, token: newId() });
    await refused({ ...ref, orgId: world.b });
    await refused({ ...ref, id: newId() });
    assert.deepEqual(await world.read(item), before);
    await world.db.adminSql("update queue.work_items set lease_expires_at = now()");
    const expired = await world.read(item);
    await refused(ref);
    assert.deepEqual(await world.read(item), expired);
    const [state] = await host.storage.readClaims([ref]);
    assert.deepEqual(state, { orgId: ref.orgId, id: ref.id, status: "claimed", token: ref.token, leaseLive: false });
  }));

/** What a runner's manager makes of a run that failed. */
async function failOf(host: TestHost, { orgId, item }: OwnedItem, error: Error = new Error("e")): Promise<string> {
  const tenancy = createHostTenancy();
  const log = (event: string) => void host.logged.push(event);
  const work = createWorkManager({
    ...{ storage: host.storage, tenancy, audit: null, topics: new MemoryTopics(), clock: systemClock },
    ...{
      logger: { debug: log, info: log, warn: log, error: log },
      metrics: noMetrics,
      kinds: [defineKind(KIND, { schema: z.looseObject({}) })],
    },
    ...{ itemRetentionMs: 1, keyRetentionMs: 1 },
  });
  const rctx = tenancy.requestContext({ type: "WORKER", version: "host-runner@1" });
  const [ctx] = await tenancy.claimContexts(rctx, [
    { orgId, userId: EMPTY_UUID, causedByRequestId: null, traceparent: null },
  ]);
  assert.ok(ctx !== undefined && "orgId" in ctx);
  return await work.fail(ctx, item, error);
}

Deno.test("a dead letter of a host leaves its audit entry to the sweep, and that is no line of its log", () =>
  withHosts(async (world) => {
    const host = await world.host("wsl1");
    const item = await world.put();
    const [owned] = await host.claim();
    assert.ok(owned);
    assert.equal(await failOf(host, owned, new FinalError("never")), "DEAD_LETTERED");
    const row = await world.read(item);
    assert.equal(row.status, "failed");
    assert.notEqual(row.audit_id, null);
    assert.deepEqual(host.logged, []);
  }));

Deno.test("an item that its command finished itself is told as finished, and never written over", () =>
  withHosts(async (world) => {
    const host = await world.host("wsl1");
    for (const end of ["done", "failed"] as const) {
      const item = await world.put();
      const [owned] = await host.claim();
      assert.ok(owned);
      const ref = refOf(owned);
      const ended = end === "done" ? { status: end } : { status: end, audit_id: newId() };
      const fields = { ...ended, lease_expires_at: null, updated_at: "now", updated_by: EMPTY_UUID };
      const filter = `/work_items?id=eq.${item.id}&claim_token=eq.${ref.token}&status=eq.claimed`;
      assert.equal(((await world.raw("wsl1", "PATCH", filter, fields)).json as unknown[]).length, 1);
      const before = await world.read(item);
      assert.deepEqual(await host.storage.settle([{ ...ref, to: "done" }]), ["ALREADY"]);
      assert.deepEqual(await host.storage.settle([{ ...ref, to: "retry", delayMs: 0, error: "e" }]), ["ALREADY"]);
      assert.deepEqual(await host.storage.extendLeases([ref], LEASE_MS), ["REFUSED"]);
      const [state] = await host.storage.readClaims([ref]);
      assert.deepEqual([state?.status, state?.token], [end, ref.token], "so a refused renewal lets the child end");
      assert.equal(await failOf(host, owned), "FINISHED", "no retry is told of where none follows");
      assert.deepEqual(await world.read(item), before);
    }
  }));

Deno.test("what a host completed is archived by the sweep of a SQL worker, under its token", () =>
  withHosts(async (world) => {
    const { id } = await world.put();
    const host = await world.host("wsl1");
    const [owned] = await host.claim();
    assert.ok(owned);
    assert.deepEqual(await host.storage.settle([{ ...refOf(owned), to: "done" }]), ["WRITTEN"]);
    assert.equal(
      await world.sql.work.archiveDone(60_000, { limit: 10, keep: true }),
      0,
      "the host may still read back",
    );
    assert.equal(await world.sql.work.archiveDone(0, { limit: 10, keep: true }), 1);
    const [row] = await world.db.adminSql("select claim_token, attempts from queue.work_history where id = $1::uuid", [
      id,
    ]);
    assert.deepEqual(row, { claim_token: owned.item.claimToken, attempts: 1 });
    assert.deepEqual(await host.storage.settle([{ ...refOf(owned), to: "done" }]), ["REFUSED"]);
  }));

Deno.test("items above the host's cap are handed back uncharged, the last first", () =>
  withHosts(async (world) => {
    for (let n = 0; n < 3; n++) await world.put();
    const row = rowOf("wsl1", world.a);
    const allow = (limit: number) => ({ ...row, limit, host: row.name });
    const host = await world.host("wsl1", { gate: { allow, excess: (claimed) => Promise.resolve(claimed - 1) } });
    const kept = await host.claim();
    assert.equal(kept.length, 1);
    assert.equal(await host.api.countInFlight(), 1);
    const rows = await world.db.adminSql("select attempts, note from queue.work_items where status = 'queued'");
    assert.deepEqual(rows.map(({ attempts }) => attempts), [0, 0]);
    assert.match(String(rows[0]?.note), /as many items as its window allows/);
  }));

Deno.test("a gate that refuses asks the server for nothing", () =>
  withHosts(async (world) => {
    await world.put();
    const server = scriptedRest(world.rest.url);
    try {
      await world.host("wsl1");
      const gate = { allow: () => ({ reason: "disabled", said: "off" }) as const };
      const host = buildHost(rowOf("wsl1", world.a), { url: server.url, readKey: () => world.rest.key("wsl1"), gate });
      await host.api.beat(null);
      const asked = server.seen.length;
      assert.deepEqual(await host.claim(), []);
      assert.equal(server.seen.length, asked);
    } finally {
      await server.stop();
    }
  }));

Deno.test("the heartbeat reads the row and the database's time back, and counts what all runners of the host hold", () =>
  withHosts(async (world) => {
    const host = await world.host("wsl1", { row: { priorityFloor: 7, lane: "default" } });
    const beat = await host.api.beat(3);
    assert.ok(beat);
    const [row] = await world.db.adminSql("select last_heartbeat_at from queue.hosts");
    assert.equal((row?.last_heartbeat_at as Date).getTime(), beat.databaseMs);
    const { lastHeartbeatAt, ...rest } = beat.row;
    assert.equal(lastHeartbeatAt?.getTime(), beat.databaseMs);
    const { lastHeartbeatAt: _, ...expected } = rowOf("wsl1", world.a, { priorityFloor: 7, currentWorkers: 3 });
    assert.deepEqual(rest, expected);
    assert.equal((await host.api.beat(null))?.row.currentWorkers, 3, "left alone when it is not known");
    for (let n = 0; n < 3; n++) await world.put();
    await host.claim({ limit: 1 });
    const url = world.rest.url;
    const other = buildHost(rowOf("wsl1", world.a), { url, readKey: () => world.rest.key("wsl1") });
    const [expired] = await other.claim({ limit: 1 });
    assert.equal(await host.api.countInFlight(), 2);
    await world.db.adminSql("update queue.work_items set lease_expires_at = now() where id = $1::uuid", [
      expired?.item.id ?? "",
    ]);
    assert.equal(await host.api.countInFlight(), 1);
    const stranger = buildHost(rowOf("nobody", world.a), { url, readKey: () => world.rest.key("nobody") });
    assert.deepEqual([await stranger.api.beat(1), await stranger.api.read()], [null, null]);
  }));

Deno.test("a key that is expired, forged, of another role or missing opens nothing, and people are told once", () =>
  withHosts(async (world) => {
    await world.put();
    await world.host("wsl1");
    const keys = {
      expired: await world.rest.key("wsl1", { expired: true }),
      forged: await world.rest.key("wsl1", { secret: "another-secret-that-is-long-enough-to-sign" }),
      "of another role": await world.rest.key("wsl1", { role: "laneway_system" }),
      "no token at all": "nonsense",
    };
    for (const [what, key] of Object.entries(keys)) {
      const host = buildHost(rowOf("wsl1", world.a), { url: world.rest.url, readKey: () => key });
      await assert.rejects(host.api.beat(null), { code: "UNAVAILABLE", outcome: "not-executed" }, what);
      await assert.rejects(host.claim(), { code: "UNAVAILABLE" }, what);
      assert.equal(host.notices.length, 1, what);
      assert.equal([...host.logged, ...host.notices].some((line) => line.includes(key)), false, what);
    }
  }));

Deno.test("a host refuses what is for workers with a database, and mints contexts for its claims alone", async () => {
  const host = buildHost(rowOf("wsl1", newId()), { url: "http://127.0.0.1:9", readKey: () => "k" });
  const { storage } = host;
  for (const call of [storage.createItems, storage.purgeItems, storage.takeSweepSteps, storage.failOrphaned]) {
    await assert.rejects(call(), /on a host runner/);
  }
  assert.deepEqual(await storage.promote(10), { promoted: 0, nextDueInMs: null });
  const tenancy = createHostTenancy();
  const rctx = tenancy.requestContext({ type: "WORKER", version: "host-runner@1" });
  const [orgId, causedByRequestId] = [newId(), newId()];
  const subject = { orgId, userId: newId(), causedByRequestId, traceparent: null };
  const [ctx] = await tenancy.claimContexts(rctx, [subject]);
  assert.ok(ctx !== undefined && "orgId" in ctx);
  assert.deepEqual(
    [ctx.orgId, ctx.userId, ctx.role, ctx.causedByRequestId, ctx.requestId],
    [orgId, EMPTY_UUID, "SERVICE", causedByRequestId, rctx.requestId],
  );
  await assert.rejects(tenancy.endOrg(rctx, orgId), /on a host runner/);
});

interface Plan {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly Plans?: readonly Plan[];
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

Deno.test("under its row policy a host's claim reads the claim's index alone, however long the backlog", () =>
  withHosts(async (world) => {
    await world.host("wsl1");
    const { db, a } = world;
    await db.adminSql(`insert into queue.work_items (org_id, id, created_at, updated_at, created_by, updated_by, kind,
        idempotency_key, payload, ready, priority, available_at)
      select '${a}', gen_random_uuid(), now(), now(), '${a}', '${a}', case when g % 10 = 0 then '${KIND}' else 'OTHER' end,
        g::text, '{}', g % 2 = 0, 10, now() - g * interval '1 ms' from generate_series(1, 20000) g`);
    await db.adminSql("vacuum analyze queue.work_items");
    const claims = JSON.stringify({ host: "wsl1" });
    const where = `status = 'queued' and ready is true and ready = true and lane = 'default' and kind = '${KIND}'
      and org_id in ('${a}') and weight in ('light') and priority >= 5 and available_at <= 'now'
      and (host_preference is null or host_preference = 'wsl1')`;
    const client = await PostgresClient.open(db.url("host"));
    const explain = async (sql: string): Promise<Plan> => {
      await client.query("select set_config('request.jwt.claims', $1, false)", [claims]);
      const [row] = await client.query(`explain (analyze, timing off, format json) ${sql}`);
      const [{ Plan: plan }] = row?.["QUERY PLAN"] as [{ Plan: Plan }];
      return plan;
    };
    const select = await explain(
      `select id, attempts from queue.work_items where ${where} order by priority, available_at, id limit 11`,
    ).finally(() => client.destroy());
    const scans = nodesOf(select).filter((node) => node["Relation Name"] === "work_items");
    assert.deepEqual(scans.map((node) => node["Index Name"] ?? node["Node Type"]), ["work_items_claim"]);
    const most = Math.max(...nodesOf(select).map((node) => (node["Actual Rows"] ?? 0) * (node["Actual Loops"] ?? 0)));
    assert.ok(most <= 11, `${most} rows were read for 11`);
    assert.equal(nodesOf(select).some((node) => node["Node Type"] === "Sort"), false);
  }));
