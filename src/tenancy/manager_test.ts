import assert from "node:assert/strict";
import { FakeClock } from "../core/fake_clock.ts";
import type { AppContext, OpContext } from "../core/context.ts";
import { NotFoundError, UnavailableError, ValidationError } from "../core/errors.ts";
import { EMPTY_UUID, newId } from "../core/ids.ts";
import { SqliteDatabase } from "../db/sqlite.ts";
import { migrateSqliteUp } from "../db/sqlite_migrator.ts";
import { CHAINS } from "../migrations.ts";
import { createTenancyManager } from "./manager.ts";
import { SqliteTenancyStorage } from "./storage/sqlite.ts";
import type { ClaimSubject, TenancyManager, TenancyStorage } from "./types.ts";

const APP: AppContext = { type: "WORKER", version: "shipment-notifier@0.1.0" };
const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** Runs a case over the manager on an in-memory store; `storage` can be broken by the case. */
function test(name: string, run: (m: TenancyManager, storage: TenancyStorage) => Promise<void>): void {
  Deno.test(name, async () => {
    const clock = new FakeClock();
    const db = new SqliteDatabase(":memory:", { clock });
    try {
      await migrateSqliteUp(db, CHAINS);
      const storage = new SqliteTenancyStorage(db);
      await run(createTenancyManager(storage, { clock }), storage);
    } finally {
      db.close();
    }
  });
}

function subject(orgId: string, userId: string, fields: Partial<ClaimSubject> = {}): ClaimSubject {
  return { orgId, userId, causedByRequestId: null, traceparent: null, ...fields };
}

function opContext(value: OpContext | NotFoundError | undefined): OpContext {
  assert.ok(value !== undefined && !(value instanceof Error), "a context was due");
  return value;
}

test("requestContext() mints a request id, and takes the caller's id and trace", (m) => {
  assert.notEqual(m.requestContext(APP).requestId, m.requestContext(APP).requestId);
  const requestId = newId();
  const rctx = m.requestContext(APP, { requestId: requestId.toUpperCase(), traceparent: TRACE });
  assert.equal(rctx.requestId, requestId);
  assert.equal(rctx.traceparent, TRACE);
  assert.deepEqual(rctx.app, APP);
  return Promise.resolve();
});

test("requestContext() refuses an id that is no uuid and ignores a trace that is none", (m) => {
  assert.throws(() => m.requestContext(APP, { requestId: "42" }), ValidationError);
  assert.equal(m.requestContext(APP, { traceparent: "01-nonsense" }).traceparent, undefined);
  assert.equal(
    m.requestContext(APP, { traceparent: TRACE.replace("b7ad6b7169203331", "0".repeat(16)) }).traceparent,
    undefined,
  );
  return Promise.resolve();
});

test("contexts cannot be changed once minted", async (m) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "A" });
  const ctx = await m.serviceContext(rctx, org.id);
  assert.throws(() => Object.assign(ctx, { orgId: newId() }), TypeError);
  assert.throws(() => Object.assign(rctx.app, { version: "other@1" }), TypeError);
});

test("createOrg() and createUser() under a taken id return the row that holds it", async (m) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "First" });
  assert.deepEqual(await m.createOrg(rctx, { id: org.id, name: "Second" }), org);
  const user = await m.createUser(rctx, { name: "Ada" });
  assert.deepEqual(await m.createUser(rctx, { id: user.id.toUpperCase(), name: "Bob" }), user);
});

test("createOrg() whose answer was lost reads the row back", async (_m, storage) => {
  const lossy = createTenancyManager(wrap(storage, {
    createOrg: async (org) => {
      await storage.createOrg(org);
      throw new UnavailableError("lost", "unknown");
    },
  }));
  const org = await lossy.createOrg(lossy.requestContext(APP), { name: "There" });
  assert.deepEqual(await storage.readOrg(org.id), org);
});

test("createOrg() whose answer was lost and that did not land tells the failure", async (_m, storage) => {
  const down = createTenancyManager(wrap(storage, {
    createOrg: () => Promise.reject(new UnavailableError("lost", "unknown")),
  }));
  await assert.rejects(down.createOrg(down.requestContext(APP), { name: "Nowhere" }), UnavailableError);
});

test("names, ids, roles and page sizes out of range are refused, naming the field", async (m) => {
  const rctx = m.requestContext(APP);
  const refused = (field: string) => (error: unknown) => error instanceof ValidationError && error.field === field;
  for (const name of ["", "  ", "x".repeat(201), "a\u0000b", "\ud800"]) {
    await assert.rejects(m.createOrg(rctx, { name }), refused("org.name"));
  }
  await m.createOrg(rctx, { name: "🚚".repeat(200) });
  await assert.rejects(m.createOrg(rctx, { id: EMPTY_UUID, name: "System" }), refused("org.id"));
  await assert.rejects(m.createUser(rctx, { id: "x", name: "Ada" }), refused("user.id"));
  await assert.rejects(m.addMember(rctx, { orgId: newId(), userId: newId(), role: "SERVICE" }), refused("role"));
  for (const limit of [0, -1, 1.5, NaN, 1_001]) {
    await assert.rejects(m.serviceContexts(rctx, { limit }), refused("limit"));
  }
});

test("memberContext() carries the member's own role, and the request", async (m) => {
  const rctx = m.requestContext(APP, { traceparent: TRACE });
  const org = await m.createOrg(rctx, { name: "A" });
  const user = await m.createUser(rctx, { name: "Ada" });
  await m.addMember(rctx, { orgId: org.id, userId: user.id, role: "OWNER" });
  const ctx = await m.memberContext(rctx, org.id, user.id);
  const { orgId, userId, role, requestId, traceparent, app } = ctx;
  assert.deepEqual(
    { orgId, userId, role, requestId, traceparent, app },
    { orgId: org.id, userId: user.id, role: "OWNER", requestId: rctx.requestId, traceparent: TRACE, app: APP },
  );
  assert.equal(ctx.causedByRequestId, undefined);
});

test("memberContext() refuses a stranger, a member who left, and an ended org", async (m) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "A" });
  const user = await m.createUser(rctx, { name: "Ada" });
  await assert.rejects(m.memberContext(rctx, org.id, user.id), NotFoundError);
  await m.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
  await m.endMembership(rctx, org.id, user.id);
  await assert.rejects(m.memberContext(rctx, org.id, user.id), NotFoundError);
  await m.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
  await m.endOrg(rctx, org.id);
  await assert.rejects(m.memberContext(rctx, org.id, user.id), NotFoundError);
});

test("endMembership() and endOrg() tell that there is nothing to end", async (m) => {
  const rctx = m.requestContext(APP);
  await assert.rejects(m.endMembership(rctx, newId(), newId()), NotFoundError);
  await assert.rejects(m.endOrg(rctx, newId()), NotFoundError);
  const org = await m.createOrg(rctx, { name: "A" });
  await m.endOrg(rctx, org.id);
  await m.endOrg(rctx, org.id);
});

test("endMembership() whose answer was lost reads back that it landed", async (m, storage) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "A" });
  const user = await m.createUser(rctx, { name: "Ada" });
  await m.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
  const lost = new UnavailableError("lost", "unknown");
  const dropped = createTenancyManager(wrap(storage, { endMembership: () => Promise.reject(lost) }));
  await assert.rejects(dropped.endMembership(rctx, org.id, user.id), lost);
  const landed = createTenancyManager(wrap(storage, {
    endMembership: async (orgId, userId) => {
      await storage.endMembership(orgId, userId);
      throw lost;
    },
  }));
  await landed.endMembership(rctx, org.id, user.id);
});

test("serviceContext() is the org's own: role SERVICE, no user; refused when the org is gone", async (m) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "A" });
  const ctx = await m.serviceContext(rctx, org.id);
  assert.deepEqual([ctx.orgId, ctx.userId, ctx.role], [org.id, EMPTY_UUID, "SERVICE"]);
  await m.endOrg(rctx, org.id);
  await assert.rejects(m.serviceContext(rctx, org.id), NotFoundError);
});

test("serviceContexts() pages through live orgs, those without members among them", async (m) => {
  const rctx = m.requestContext(APP);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.push((await m.createOrg(rctx, { name: `Org ${i}` })).id);
  const user = await m.createUser(rctx, { name: "Ada" });
  await m.addMember(rctx, { orgId: ids[0] ?? "", userId: user.id, role: "MEMBER" });
  await m.addMember(rctx, { orgId: ids[1] ?? "", userId: user.id, role: "MEMBER" });
  await m.endMembership(rctx, ids[1] ?? "", user.id);
  await m.endOrg(rctx, ids[2] ?? "");
  const first = await m.serviceContexts(rctx, { limit: 3 });
  assert.deepEqual(first.map((ctx) => ctx.orgId), [ids[0], ids[1], ids[3]]);
  const second = await m.serviceContexts(rctx, { limit: 3, afterOrgId: first.at(-1)?.orgId });
  assert.deepEqual(second.map((ctx) => ctx.orgId), [ids[4]]);
  assert.ok(first.every((ctx) => ctx.userId === EMPTY_UUID && ctx.role === "SERVICE"));
  assert.ok(first.every((ctx) => ctx.requestId === rctx.requestId));
});

test("serviceContextsOf() leaves ended and absent orgs out", async (m) => {
  const rctx = m.requestContext(APP);
  const live = await m.createOrg(rctx, { name: "Live" });
  const ended = await m.createOrg(rctx, { name: "Ended" });
  await m.endOrg(rctx, ended.id);
  const contexts = await m.serviceContextsOf(rctx, [ended.id, live.id, newId()]);
  assert.deepEqual(contexts.map((ctx) => ctx.orgId), [live.id]);
  assert.deepEqual(await m.serviceContextsOf(rctx, []), []);
});

test("claimContexts() gives the enqueuer under role SERVICE, whatever role the member holds", async (m) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "A" });
  const user = await m.createUser(rctx, { name: "Ada" });
  await m.addMember(rctx, { orgId: org.id, userId: user.id, role: "OWNER" });
  const ctx = opContext((await m.claimContexts(rctx, [subject(org.id, user.id)]))[0]);
  assert.deepEqual([ctx.orgId, ctx.userId, ctx.role], [org.id, user.id, "SERVICE"]);
  assert.deepEqual(ctx.app, APP);
});

test("claimContexts() gives the service context for the system user and for one who left or never was", async (m) => {
  const rctx = m.requestContext(APP);
  const org = await m.createOrg(rctx, { name: "A" });
  const left = await m.createUser(rctx, { name: "Ada" });
  await m.addMember(rctx, { orgId: org.id, userId: left.id, role: "MEMBER" });
  await m.endMembership(rctx, org.id, left.id);
  const outcomes = await m.claimContexts(rctx, [EMPTY_UUID, left.id, newId()].map((u) => subject(org.id, u)));
  for (const outcome of outcomes) {
    const ctx = opContext(outcome);
    assert.deepEqual([ctx.orgId, ctx.userId, ctx.role], [org.id, EMPTY_UUID, "SERVICE"]);
  }
});

test("claimContexts() refuses a gone org alone, in its place among the others", async (m) => {
  const rctx = m.requestContext(APP);
  const live = await m.createOrg(rctx, { name: "Live" });
  const gone = await m.createOrg(rctx, { name: "Gone" });
  const user = await m.createUser(rctx, { name: "Ada" });
  await m.addMember(rctx, { orgId: gone.id, userId: user.id, role: "MEMBER" });
  await m.endOrg(rctx, gone.id);
  const asked = [live.id, gone.id, newId(), gone.id, live.id].map((orgId) => subject(orgId, user.id));
  const outcomes = await m.claimContexts(rctx, asked);
  assert.deepEqual(outcomes.map((o) => o instanceof NotFoundError), [false, true, true, true, false]);
});

test("claimContexts() names each item's own request and trace, and the claim's request beside them", async (m) => {
  const rctx = m.requestContext(APP, { traceparent: TRACE });
  const org = await m.createOrg(rctx, { name: "A" });
  const [one, two] = [newId(), newId()];
  const trace = TRACE.replace("0af7", "1bf8");
  const outcomes = await m.claimContexts(rctx, [
    subject(org.id, EMPTY_UUID, { causedByRequestId: one, traceparent: trace }),
    subject(org.id, EMPTY_UUID, { causedByRequestId: two }),
    subject(org.id, EMPTY_UUID),
  ]);
  const contexts = outcomes.map(opContext);
  assert.deepEqual(contexts.map((ctx) => ctx.causedByRequestId), [one, two, undefined]);
  assert.deepEqual(contexts.map((ctx) => ctx.traceparent), [trace, undefined, undefined]);
  assert.ok(contexts.every((ctx) => ctx.requestId === rctx.requestId));
});

test("claimContexts() makes one read for a batch, and none for nothing", async (m, storage) => {
  const org = await m.createOrg(m.requestContext(APP), { name: "A" });
  let reads = 0;
  const counting = createTenancyManager(wrap(storage, {
    readSubjects: (pairs) => {
      reads++;
      return storage.readSubjects(pairs);
    },
  }));
  await counting.claimContexts(m.requestContext(APP), Array.from({ length: 50 }, () => subject(org.id, newId())));
  assert.equal(reads, 1);
  assert.deepEqual(await counting.claimContexts(m.requestContext(APP), []), []);
  assert.equal(reads, 1);
});

test("claimContexts() tells that the read failed", async (_m, storage) => {
  const down = createTenancyManager(wrap(storage, {
    readSubjects: () => Promise.reject(new UnavailableError("down", "not-executed")),
  }));
  await assert.rejects(down.claimContexts(down.requestContext(APP), [subject(newId(), newId())]), UnavailableError);
});

/** The storage with some of its methods replaced. */
function wrap(storage: TenancyStorage, methods: Partial<TenancyStorage>): TenancyStorage {
  return new Proxy(storage, {
    get(target, name: keyof TenancyStorage) {
      return methods[name] ?? target[name].bind(target);
    },
  });
}
