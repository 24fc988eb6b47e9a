import assert from "node:assert/strict";
import type { AppContext, OpContext, RequestContext } from "../core/context.ts";
import { NotFoundError, UnavailableError, ValidationError } from "../core/errors.ts";
import { FakeClock } from "../core/fake_clock.ts";
import { newId } from "../core/ids.ts";
import { SqliteDatabase } from "../db/sqlite.ts";
import { migrateSqliteUp } from "../db/sqlite_migrator.ts";
import { CHAINS } from "../migrations.ts";
import { createTenancyManager } from "./manager.ts";
import { digestOfSecret, newSecret } from "./secrets.ts";
import { SqliteTenancyStorage } from "./storage/sqlite.ts";
import type { TenancyManager, TenancyStorage } from "./types.ts";

const APP: AppContext = { type: "SERVICE", version: "api@1.2.3" };

interface World {
  readonly m: TenancyManager;
  readonly storage: TenancyStorage;
  readonly clock: FakeClock;
  readonly db: SqliteDatabase;
  readonly rctx: RequestContext;
  /** A member of a fresh org. */
  member(role?: "OWNER" | "MEMBER", orgId?: string): Promise<OpContext>;
}

function test(name: string, run: (world: World) => Promise<void>): void {
  Deno.test(name, async () => {
    const clock = new FakeClock();
    const db = new SqliteDatabase(":memory:", { clock });
    try {
      await migrateSqliteUp(db, CHAINS);
      const storage = new SqliteTenancyStorage(db);
      const m = createTenancyManager(storage, { clock, sessionIdleMs: 60_000, sessionLifetimeMs: 600_000 });
      const rctx = m.requestContext(APP);
      const member: World["member"] = async (role = "MEMBER", orgId) => {
        const org = orgId ?? (await m.createOrg(rctx, { name: "Org" })).id;
        const user = await m.createUser(rctx, { name: "Ada" });
        await m.addMember(rctx, { orgId: org, userId: user.id, role });
        return await m.memberContext(rctx, org, user.id);
      };
      await run({ m, storage, clock, db, rctx, member });
    } finally {
      db.close();
    }
  });
}

const LOST = new UnavailableError("the answer was lost", "unknown");

/** A storage whose every write lands and loses its first answer. */
function losing(storage: TenancyStorage): TenancyStorage {
  const lost = new Set<string>();
  return new Proxy(storage, {
    get(target, name: keyof TenancyStorage) {
      const method = target[name].bind(target) as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        const answer = await method(...args);
        if (lost.has(name)) return answer;
        lost.add(name);
        throw LOST;
      };
    },
  });
}

test("a secret is 256 bits in base64url, another each time, and stored nowhere but as its digest", async (w) => {
  const ctx = await w.member();
  const { session, secret } = await w.m.createSession(ctx);
  const ticket = await w.m.createSocketTicket(ctx);
  assert.match(secret, /^[A-Za-z0-9_-]{43}$/);
  assert.match(ticket, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(new Set([secret, ticket, newSecret(), newSecret()]).size, 4);
  const rows = await w.db.read((s) => [
    ...s.all("select * from core_sessions"),
    ...s.all("select * from core_socket_tickets"),
  ]);
  const stored = JSON.stringify(rows);
  assert.ok(!stored.includes(secret) && !stored.includes(ticket) && !JSON.stringify(session).includes(secret));
  assert.ok(stored.includes(await digestOfSecret(secret)) && stored.includes(await digestOfSecret(ticket)));
});

test("authenticate() gives the member's own context under the request at hand", async (w) => {
  const ctx = await w.member("OWNER");
  const { session, secret } = await w.m.createSession(ctx);
  const rctx = w.m.requestContext({ type: "CLI", version: "x@1" });
  const { orgId, userId, role, requestId, app } = await w.m.authenticate(rctx, ctx.orgId.toUpperCase(), secret);
  assert.deepEqual([orgId, userId, role], [ctx.orgId, ctx.userId, "OWNER"]);
  assert.deepEqual([requestId, app], [rctx.requestId, rctx.app]);
  assert.equal(session.expiresAt.getTime() - session.createdAt.getTime(), 600_000);
});

test("whatever refuses a secret, the error is one and the same", async (w) => {
  const texts = new Set<string>();
  const refused = async (orgId: string, secret: string) => {
    for (const admit of [w.m.authenticate, w.m.redeemSocketTicket]) {
      await assert.rejects(admit.call(w.m, w.rctx, orgId, secret), (error) => {
        assert.ok(error instanceof NotFoundError, String(error));
        assert.equal(error.cause, undefined);
        texts.add(error.message);
        return true;
      });
    }
  };
  const live = await w.member();
  const { secret } = await w.m.createSession(live);
  await refused(live.orgId, newSecret());
  for (const malformed of ["", "x", `${secret}=`, `${secret}\u0000`, secret.slice(1)]) {
    await refused(live.orgId, malformed);
  }
  await refused(newId(), secret);
  await refused("nope", secret);
  await refused((await w.member()).orgId, secret);
  const ended = await w.member();
  const endedOne = await w.m.createSession(ended);
  await w.m.endSession(ended, endedOne.session.id);
  await refused(ended.orgId, endedOne.secret);
  const left = await w.member();
  const leftOne = await w.m.createSession(left);
  await w.m.endMembership(w.rctx, left.orgId, left.userId);
  await refused(left.orgId, leftOne.secret);
  const gone = await w.member();
  const goneOne = await w.m.createSession(gone);
  await w.m.endOrg(w.rctx, gone.orgId);
  await refused(gone.orgId, goneOne.secret);
  const ticket = await w.m.createSocketTicket(live, 1_000);
  await w.clock.tick(60_001);
  await refused(live.orgId, secret);
  await refused(live.orgId, ticket);
  assert.equal(texts.size, 1);
  assert.doesNotMatch([...texts][0] ?? "", /[0-9a-f]{8}-/);
});

test("a member ends their own sessions alone; an owner and the org's service end any of the org", async (w) => {
  const owner = await w.member("OWNER");
  const one = await w.member("MEMBER", owner.orgId);
  const two = await w.member("MEMBER", owner.orgId);
  const stranger = await w.member("OWNER");
  const sessions = [await w.m.createSession(one), await w.m.createSession(one), await w.m.createSession(one)];
  const [first, second, third] = sessions.map(({ session }) => session.id) as [string, string, string];
  await assert.rejects(w.m.endSession(two, first), NotFoundError);
  await assert.rejects(w.m.endSession(stranger, first), NotFoundError);
  await assert.rejects(w.m.endSession(one, newId()), NotFoundError);
  await assert.rejects(w.m.endSession(one, "nope"), ValidationError);
  for (const { secret } of sessions) await w.m.authenticate(w.rctx, owner.orgId, secret);
  await w.m.endSession(one, first);
  await w.m.endSession(owner, second);
  await w.m.endSession(await w.m.serviceContext(w.rctx, owner.orgId), third);
  for (const { secret } of sessions) await assert.rejects(w.m.authenticate(w.rctx, owner.orgId, secret), NotFoundError);
});

test("an org's own context begins no session; one who left neither; a ticket's life is bounded", async (w) => {
  const ctx = await w.member();
  const service = await w.m.serviceContext(w.rctx, ctx.orgId);
  await assert.rejects(w.m.createSession(service), ValidationError);
  await assert.rejects(w.m.createSocketTicket(service), ValidationError);
  for (const ttlMs of [0, 999, 600_001, 1_000.5, NaN]) {
    await assert.rejects(
      w.m.createSocketTicket(ctx, ttlMs),
      (e: unknown) => e instanceof ValidationError && e.field === "ttlMs",
    );
  }
  await w.m.endMembership(w.rctx, ctx.orgId, ctx.userId);
  await assert.rejects(w.m.createSession(ctx), NotFoundError);
  await assert.rejects(w.m.createSocketTicket(ctx), NotFoundError);
});

test("a lost answer begins no second session and ends none twice; a ticket it spent is spent", async (w) => {
  const ctx = await w.member();
  const lossy = createTenancyManager(losing(w.storage), { clock: w.clock });
  const { session, secret } = await lossy.createSession(ctx);
  const count = await w.db.read((s) => s.get("select count(*) n from core_sessions"));
  assert.equal(count?.n, 1);
  const ticket = await lossy.createSocketTicket(ctx);
  await w.m.authenticate(w.rctx, ctx.orgId, secret);
  await lossy.endSession(ctx, session.id);
  await assert.rejects(w.m.authenticate(w.rctx, ctx.orgId, secret), NotFoundError);
  await assert.rejects(lossy.redeemSocketTicket(w.rctx, ctx.orgId, ticket), LOST);
  await assert.rejects(w.m.redeemSocketTicket(w.rctx, ctx.orgId, ticket), NotFoundError);
});

test("purges go by the manager's own idle time", async (w) => {
  const ctx = await w.member();
  await w.m.createSession(ctx);
  await w.m.createSocketTicket(ctx);
  assert.deepEqual([await w.m.purgeSessions(w.rctx), await w.m.purgeSocketTickets(w.rctx)], [0, 0]);
  await w.clock.tick(60_001);
  const patient = createTenancyManager(w.storage, { clock: w.clock });
  assert.equal(await patient.purgeSessions(w.rctx), 0);
  assert.deepEqual([await w.m.purgeSessions(w.rctx), await w.m.purgeSocketTickets(w.rctx)], [1, 1]);
});
