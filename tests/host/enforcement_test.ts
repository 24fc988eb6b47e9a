/**
 * Seed 2's enforcement test, both ways: the claim's own filter refuses what a host may not take, and the database refuses the
 * same written straight through REST with the host's key.
 */
import assert from "node:assert/strict";
import { systemClock } from "../../src/core/clock.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import type { AttemptRecord } from "../../src/host/types.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers } from "../../src/managers.ts";
import { createTenancyManager } from "../../src/tenancy/manager.ts";
import { pruneHostOrgs } from "../../src/work/host_orgs.ts";
import type { WorkItem } from "../../src/work/types.ts";
import { type HostWorld, KIND, refOf, withHosts } from "../support/host_world.ts";

/** What a host of `host()` may not take, and why. */
const FORBIDDEN: Readonly<
  Record<string, { readonly fields: Partial<WorkItem>; readonly ofB?: true; readonly later?: true }>
> = {
  "of emergency priority": { fields: { priority: 1 } },
  "just above the floor": { fields: { priority: 4 } },
  "of a kind outside the list": { fields: { kind: "INFRA_TASK" } },
  "heavy": { fields: { weight: "heavy" } },
  "that prefers another host": { fields: { hostPreference: "bms-4" } },
  "not yet due": { fields: {}, later: true },
  "of another org": { fields: {}, ofB: true },
  "of another lane": { fields: { lane: "other" } },
};

/** One item of each forbidden sort, by its sort. */
async function putForbidden(world: HostWorld): Promise<Map<string, WorkItem>> {
  const items = new Map<string, WorkItem>();
  for (const [why, { fields, ofB, later }] of Object.entries(FORBIDDEN)) {
    const where = { ...(ofB ? { orgId: world.b } : {}), ...(later ? { delayMs: 3_600_000 } : {}) };
    items.set(why, await world.put(fields, where));
  }
  return items;
}

/** A claim as our own client writes it, to be sent past it. */
function claimBody(host: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    status: "claimed",
    ready: false,
    claimed_by: `${host}/raw`,
    claim_token: newId(),
    lease_expires_at: new Date(Date.now() + 60_000),
    attempts: 1,
    claims: 1,
    host,
    updated_at: "now",
    updated_by: EMPTY_UUID,
    ...fields,
  };
}

const FAILED = { outcome: "retry", reason: "exit_code" } as const;

const ALLOWS_ALL = {
  orgIds: [] as string[],
  kinds: [KIND, "INFRA_TASK"],
  weights: ["super-light", "light", "heavy"],
  priorityFloor: 0,
};

Deno.test("a host's claim takes a plain item and leaves every forbidden one", () =>
  withHosts(async (world) => {
    const forbidden = await putForbidden(world);
    const plain = await world.put();
    const preferred = await world.put({ hostPreference: "wsl1", weight: "super-light", priority: 5 });
    const host = await world.host("wsl1");
    // Asked for more than its row has: the filter is the allowance's.
    const claimed = await host.claim({ kinds: [KIND, "INFRA_TASK"] });
    assert.deepEqual(claimed.map(({ item }) => item.id), [preferred.id, plain.id], "in the order of priorities");
    for (const [why, item] of forbidden) {
      assert.deepEqual([(await world.read(item)).status, why], ["queued", why]);
    }
    assert.deepEqual(await host.claim(), []);
  }));

Deno.test("the database refuses each forbidden item to a host whose own filter asks for everything", () =>
  withHosts(async (world) => {
    const forbidden = await putForbidden(world);
    const plain = await world.put();
    const everything = { ...ALLOWS_ALL, orgIds: [world.a, world.b], host: "wsl1" };
    const host = await world.host("wsl1", { gate: { allow: (limit) => ({ ...everything, limit }) } });
    const claimed = await host.claim({ kinds: everything.kinds });
    assert.deepEqual(claimed.map(({ item }) => item.id), [plain.id]);
    for (const [why, item] of forbidden) {
      const { json: seen } = await world.raw("wsl1", "GET", `/work_items?id=eq.${item.id}`);
      assert.deepEqual([seen, why], [[], why], "it is not even seen");
      const { json } = await world.raw("wsl1", "PATCH", `/work_items?id=eq.${item.id}`, claimBody("wsl1"));
      assert.deepEqual([json, why], [[], why]);
      const row = await world.read(item);
      assert.deepEqual([row.status, row.claims, row.host], ["queued", "0", null], why);
    }
  }));

Deno.test("a plain item is claimed by the same write, so the refusals above are the policy's", () =>
  withHosts(async (world) => {
    await world.host("wsl1");
    const plain = await world.put();
    const { status, json } = await world.raw("wsl1", "PATCH", `/work_items?id=eq.${plain.id}`, claimBody("wsl1"));
    assert.equal(status, 200, JSON.stringify(json));
    assert.equal((json as { id: string }[])[0]?.id, plain.id);
  }));

Deno.test("a host that is off, unknown, or serves nothing sees nothing; switched on it does", () =>
  withHosts(async (world) => {
    await world.put();
    await world.host("off", { row: { enabled: false } });
    await world.host("no-kinds", { row: { kinds: [] } });
    await world.host("no-orgs", { row: { orgIds: [] } });
    await world.host("no-weights", { row: { weights: [] } });
    for (const name of ["off", "no-kinds", "no-orgs", "no-weights", "unknown", ""]) {
      assert.deepEqual((await world.raw(name, "GET", "/work_items")).json, [], name);
    }
    await world.db.adminSql("update queue.hosts set enabled = true where name = 'off'");
    assert.equal(((await world.raw("off", "GET", "/work_items")).json as unknown[]).length, 1);
    await world.db.adminSql("insert into queue.hosts (name) values ('fresh')");
    assert.deepEqual(
      await world.db.adminSql(
        "select enabled, org_ids::text, kinds::text, weights::text, priority_floor from queue.hosts where name = 'fresh'",
      ),
      [{ enabled: false, org_ids: "{}", kinds: "{}", weights: "{super-light,light}", priority_floor: 5 }],
    );
  }));

Deno.test("no write through REST changes what is not a host's to change", () =>
  withHosts(async (world) => {
    const host = await world.host("wsl1");
    const { id } = await world.put();
    await host.claim();
    const before = await world.read({ id });
    const columns: Record<string, unknown> = {
      org_id: world.b,
      id: newId(),
      payload: {},
      kind: "INFRA_TASK",
      lane: "other",
      priority: 1,
      weight: "heavy",
      host_preference: "bms-4",
      idempotency_key: "mine",
      max_attempts: 1_000,
      created_by: newId(),
      created_at: "now",
      request_id: newId(),
      target_id: newId(),
      traceparent: "00",
    };
    for (const [column, value] of Object.entries(columns)) {
      const { status, json } = await world.raw("wsl1", "PATCH", `/work_items?id=eq.${id}`, { [column]: value });
      assert.equal(status, 403, `${column}: ${JSON.stringify(json)}`);
      assert.equal((json as { code: string }).code, "42501", column);
    }
    for (
      const [method, path] of [["POST", "/work_items"], ["DELETE", `/work_items?id=eq.${id}`], [
        "DELETE",
        "/hosts?name=eq.wsl1",
      ]] as const
    ) {
      const { status } = await world.raw("wsl1", method, path, method === "POST" ? { org_id: world.a } : undefined);
      assert.equal(status, 403, `${method} ${path}`);
    }
    for (const path of ["/work_keys", "/work_history"]) {
      assert.equal((await world.raw("wsl1", "GET", path)).status, 403, path);
    }
    for (
      const column of ["enabled", "org_ids", "kinds", "weights", "priority_floor", "lane", "windows", "name", "note"]
    ) {
      const { status } = await world.raw("wsl1", "PATCH", "/hosts?name=eq.wsl1", { [column]: null });
      assert.equal(status, 403, column);
    }
    assert.deepEqual(await world.read({ id }), before);
  }));

Deno.test("a host's write leaves a row only in a state it may leave: each bad one is refused", () =>
  withHosts(async (world) => {
    await world.host("wsl1");
    const { id } = await world.put();
    const hour = 3_600_000;
    const claims: Record<string, Record<string, unknown>> = {
      "for another host": { host: "bms-4" },
      "for nobody": { host: null },
      "without a token": { claim_token: null },
      "with a lease in the past": { lease_expires_at: new Date(Date.now() - 1_000) },
      "with a lease of two hours": { lease_expires_at: new Date(Date.now() + 2 * hour) },
      "with a lease without end": { lease_expires_at: "infinity" },
      "signed by a user": { updated_by: world.a },
      "dated back": { updated_at: new Date(0) },
      "for a time without end": { available_at: "infinity" },
      "for a time out of reach": { available_at: "9999-12-31T00:00:00Z" },
      "for a time before there was any": { available_at: "0044-03-15 00:00:00+00 BC" },
      "with a count that no later claim could add to": { claims: "9223372036854775807" },
      "with a count below none": { claims: 0 },
      "with attempts that no later claim could add to": { attempts: 2_147_483_647 },
      "with expiries that no sweep could add to": { expiries: 2_147_483_647 },
      "with an error of a megabyte": { last_error: "x".repeat(1_000_000) },
      "with a note of a megabyte": { note: "x".repeat(1_000_000) },
      "by a worker of a megabyte": { claimed_by: "x".repeat(1_000_000) },
    };
    for (const [why, fields] of Object.entries(claims)) {
      const { status, json } = await world.raw("wsl1", "PATCH", `/work_items?id=eq.${id}`, claimBody("wsl1", fields));
      assert.equal(status, 403, `${why}: ${JSON.stringify(json)}`);
      assert.match((json as { message: string }).message, /row-level security/, why);
    }
    const { json } = await world.raw("wsl1", "PATCH", `/work_items?id=eq.${id}`, claimBody("wsl1"));
    assert.equal((json as unknown[]).length, 1);
    const signed = { updated_at: "now", updated_by: EMPTY_UUID };
    const gone = { lease_expires_at: null };
    const ends: Record<string, Record<string, unknown>> = {
      "failed without an audit id": { ...signed, ...gone, status: "failed" },
      "done without its token": { ...signed, ...gone, status: "done", claim_token: null },
      "queued under a token": { ...signed, ...gone, status: "queued", claimed_by: null },
      "ready before its time": {
        ...{ ...signed, ...gone, status: "queued", claimed_by: null, claim_token: null, ready: true },
        available_at: new Date(Date.now() + hour),
      },
    };
    for (const [why, body] of Object.entries(ends)) {
      const { status, json } = await world.raw("wsl1", "PATCH", `/work_items?id=eq.${id}`, body);
      assert.equal(status, 403, `${why}: ${JSON.stringify(json)}`);
      assert.match((json as { message: string }).message, /row-level security/, why);
    }
    assert.equal((await world.read({ id })).status, "claimed");
  }));

Deno.test("a host reaches no claim of a SQL worker, of another host, or of its own once its lease has passed", () =>
  withHosts(async (world) => {
    const [one, two] = [await world.host("host-1"), await world.host("host-2")];
    const bySql = await world.put();
    const ask = { lane: "default", kinds: [KIND], worker: "sql", leaseMs: 60_000, limit: 1, token: newId() };
    // The host had it before and handed it back.
    const [before] = await one.claim();
    assert.ok(before);
    await one.storage.settle([{ ...refOf(before), to: "back", delayMs: 0, note: null, ran: false }]);
    assert.equal((await world.sql.work.claim(ask)).length, 1);
    const byTwo = await world.put();
    const [claimed] = await two.claim();
    assert.equal(claimed?.item.id, byTwo.id);
    const expired = await world.put();
    const [mine] = await one.claim();
    assert.equal(mine?.item.id, expired.id);
    await world.db.adminSql("update queue.work_items set lease_expires_at = now() where id = $1::uuid", [expired.id]);
    for (const item of [bySql, byTwo, expired]) {
      const row = await world.read(item);
      for (
        const body of [claimBody("host-1"), {
          status: "done",
          lease_expires_at: null,
          host: "host-1",
          updated_at: "now",
          updated_by: EMPTY_UUID,
        }]
      ) {
        const { json } = await world.raw("host-1", "PATCH", `/work_items?id=eq.${item.id}`, body);
        assert.deepEqual(json, []);
      }
      assert.deepEqual(await world.read(item), row);
    }
    const { json } = await world.raw("host-1", "GET", "/work_items?select=id");
    assert.deepEqual(json, [{ id: expired.id }], "of others' claims it sees nothing");
  }));

Deno.test("a host sees and beats its own row alone, and stores attempts as itself for its orgs alone", () =>
  withHosts(async (world) => {
    const one = await world.host("host-1");
    await world.host("host-2");
    const { json } = await world.raw("host-1", "GET", "/hosts?select=name");
    assert.deepEqual(json, [{ name: "host-1" }]);
    assert.deepEqual((await world.raw("host-1", "PATCH", "/hosts?name=eq.host-2", { current_workers: 7 })).json, []);
    const ahead = { last_heartbeat_at: new Date(Date.now() + 60_000) };
    assert.equal((await world.raw("host-1", "PATCH", "/hosts?name=eq.host-1", ahead)).status, 403);
    const never = { last_heartbeat_at: "-infinity" };
    assert.equal(
      (await world.raw("host-1", "PATCH", "/hosts?name=eq.host-1", never)).status,
      403,
      "no age is counted from",
    );
    const attempt: AttemptRecord = {
      ...{ orgId: world.a, itemId: newId(), claimToken: newId(), attempt: 1, host: "host-1", worker: "w" },
      ...{ startedAt: new Date(), finishedAt: new Date(), durationMs: 1.5, ...FAILED },
      ...{
        exitCode: 3,
        signal: null,
        stdoutTail: "a\u0000b \ud800",
        stderrTail: "é".repeat(8_192),
        stdoutCutBytes: 2 ** 40,
      },
      stderrCutBytes: 0,
    };
    await one.api.recordAttempt(attempt);
    await one.api.recordAttempt({ ...attempt, exitCode: 4 });
    const rows = await world.db.adminSql("select host, exit_code, stdout_tail, stdout_cut_bytes from queue.attempts");
    assert.deepEqual(rows, [{
      host: "host-1",
      exit_code: 3,
      stdout_tail: "a\ufffdb \ufffd",
      stdout_cut_bytes: String(2 ** 40),
    }]);
    await assert.rejects(one.api.recordAttempt({ ...attempt, orgId: world.b }), /row-level security/);
    const forged = { org_id: world.a, item_id: newId(), claim_token: newId(), attempt: 1, host: "host-2", worker: "w" };
    const more = {
      started_at: "now",
      finished_at: "now",
      duration_ms: 1,
      outcome: "done",
      stdout_tail: "",
      stderr_tail: "",
    };
    assert.equal((await world.raw("host-1", "POST", "/attempts", { ...forged, ...more })).status, 403);
    assert.deepEqual((await world.raw("host-2", "GET", "/attempts")).json, []);
  }));

Deno.test("an org that has ended is taken off hosts' lists by the sweep, and its items are seen no more", () =>
  withHosts(async (world) => {
    await world.host("wsl1", { row: { orgIds: [world.b, world.a] } });
    await world.put();
    await world.put({}, { orgId: world.b });
    await world.sql.tenancy.endOrg(world.b);
    const tenancy = createTenancyManager(world.sql.tenancy);
    const rctx = tenancy.requestContext({ type: "WORKER", version: "test@1" });
    const parts = { storage: world.sql.work, tenancy };
    assert.equal(await pruneHostOrgs(rctx, parts), 1);
    assert.equal(await pruneHostOrgs(rctx, parts), 0);
    const { json } = await world.raw("wsl1", "GET", "/work_items?select=org_id");
    assert.deepEqual(json, [{ org_id: world.a }]);
  }));

Deno.test("an org that is ended through the manager is off the hosts' lists when that returns", () =>
  withHosts(async (world) => {
    await world.host("wsl1", { row: { orgIds: [world.b, world.a] } });
    for (const orgId of [world.a, world.b]) await world.put({}, { orgId });
    const keptMs = 1_000;
    const { tenancy } = createManagers({
      ...{ storages: world.sql, topics: new MemoryTopics(), clock: systemClock, logger: silentLogger },
      ...{ metrics: noMetrics, kinds: [], itemRetentionMs: keptMs, keyRetentionMs: keptMs },
      ...{ outboxRetentionMs: keptMs, markerRetentionMs: keptMs },
    });
    await tenancy.endOrg(tenancy.requestContext({ type: "WORKER", version: "test@1" }), world.b);
    const { json } = await world.raw("wsl1", "GET", "/work_items?select=org_id");
    assert.deepEqual(json, [{ org_id: world.a }]);
  }));
