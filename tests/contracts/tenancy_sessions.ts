/**
 * The part of the contract of `TenancyStorage` that is about sessions and socket tickets.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import type { Session, TenancyStorage } from "../../src/tenancy/types.ts";
import type { Cases, Harness } from "./contract.ts";

interface Place {
  readonly orgId: string;
  readonly userId: string;
}

const IDLE_MS = 10_000;
const LIFETIME_MS = 60_000;
const AT = new Date("2026-01-02T03:04:05.678Z");

async function member(storage: TenancyStorage): Promise<Place> {
  const [orgId, userId] = [newId(), newId()];
  await storage.createOrg({ id: orgId, name: "Łódź Freight", createdAt: AT, endedAt: null });
  await storage.createUser({ id: userId, name: "Ægir", createdAt: AT });
  await storage.writeMembership({ orgId, userId, role: "MEMBER", createdAt: AT, endedAt: null });
  return { orgId, userId };
}

/** What stands for a secret's digest: 64 characters, one's own. */
function digest(): string {
  return (newId() + newId()).replaceAll("-", "");
}

async function session(storage: TenancyStorage, { orgId, userId }: Place, lifetimeMs = LIFETIME_MS) {
  const insert = { id: newId(), userId, digest: digest(), lifetimeMs };
  const made: Session = await storage.createSession(orgId, insert) ?? assert.fail("no session was made");
  return { insert, made };
}

async function ticket(storage: TenancyStorage, { orgId, userId }: Place, ttlMs = 30_000): Promise<string> {
  const insert = { userId, digest: digest(), ttlMs };
  assert.equal(await storage.createSocketTicket(orgId, insert), true);
  return insert.digest;
}

/** Purges until nothing is left to purge, whoever's it was. */
async function drained(purge: () => Promise<number>): Promise<void> {
  for (let rounds = 0; await purge() > 0; rounds++) assert.ok(rounds < 1_000);
}

/** The cases, added to those of the suite. */
export const SESSION_CASES: Cases<Harness & { readonly storage: TenancyStorage }> = {
  "createSession() makes a session of a member on database time; again is success and changes nothing": async (h) => {
    const { storage } = h;
    const at = await member(storage);
    const { insert, made } = await session(storage, at);
    assert.deepEqual(
      [made.id, made.orgId, made.userId, made.endedAt],
      [insert.id, at.orgId, at.userId, null],
    );
    assert.equal(made.expiresAt.getTime() - made.createdAt.getTime(), LIFETIME_MS);
    assert.deepEqual(made.lastUsedAt, made.createdAt);
    await h.advance(1_000);
    assert.deepEqual(await storage.createSession(at.orgId, insert), made);
    assert.equal(await storage.createSession(at.orgId, { ...insert, digest: digest() }), null, "another's id");
  },

  "createSession() and createSocketTicket() refuse a stranger, one who left, an absent and an ended org": async (
    { storage },
  ) => {
    const [at, left, ended] = [await member(storage), await member(storage), await member(storage)];
    await storage.endMembership(left.orgId, left.userId);
    await storage.endOrg(ended.orgId);
    const nobody = [{ ...at, userId: newId() }, { ...at, orgId: newId() }, { ...at, userId: left.userId }, left, ended];
    for (const { orgId, userId } of nobody) {
      const insert = { id: newId(), userId, digest: digest(), lifetimeMs: LIFETIME_MS };
      assert.equal(await storage.createSession(orgId, insert), null);
      assert.equal(await storage.createSocketTicket(orgId, { userId, digest: digest(), ttlMs: 30_000 }), false);
    }
  },

  "touchSession() says whose a live session is, and begins its idle time anew, up to its absolute end": async (h) => {
    const { storage } = h;
    const at = await member(storage);
    const { insert } = await session(storage, at);
    for (let used = 0; used < 6; used++) {
      await h.advance(9_000);
      assert.deepEqual(
        await storage.touchSession(at.orgId, insert.digest, IDLE_MS),
        { userId: at.userId, role: "MEMBER" },
        `use ${used}`,
      );
    }
    await h.advance(7_000);
    assert.equal(await storage.touchSession(at.orgId, insert.digest, IDLE_MS), null, "61 s of 60 s");
  },

  "touchSession() of an idle session is refused, and does not bring it back": async (h) => {
    const { storage } = h;
    const at = await member(storage);
    const { insert } = await session(storage, at);
    await h.advance(IDLE_MS + 1);
    assert.equal(await storage.touchSession(at.orgId, insert.digest, IDLE_MS), null);
    assert.equal(await storage.touchSession(at.orgId, insert.digest, IDLE_MS), null);
  },

  "touchSession() refuses an unknown digest, an ended session, an ended membership and an ended org": async (h) => {
    const { storage } = h;
    const at = await member(storage);
    const { insert } = await session(storage, at);
    const touch = (of: string) => storage.touchSession(at.orgId, of, IDLE_MS);
    assert.equal(await touch(digest()), null);
    const ended = await session(storage, at);
    assert.equal(await storage.endSession(at.orgId, ended.insert.id, null), true);
    assert.equal(await touch(ended.insert.digest), null);
    assert.notEqual(await touch(insert.digest), null);
    await storage.endMembership(at.orgId, at.userId);
    assert.equal(await touch(insert.digest), null);
    const other = await member(storage);
    const theirs = await session(storage, other);
    await storage.endOrg(other.orgId);
    assert.equal(await storage.touchSession(other.orgId, theirs.insert.digest, IDLE_MS), null);
  },

  "sessions and tickets from before a membership came to life again stay dead; new ones live": async (h) => {
    const { storage } = h;
    const at = await member(storage);
    const { insert } = await session(storage, at);
    const old = await ticket(storage, at);
    await h.advance(10);
    await storage.endMembership(at.orgId, at.userId);
    await h.advance(10);
    await storage.writeMembership({ ...at, role: "OWNER", createdAt: AT, endedAt: null });
    assert.equal(await storage.touchSession(at.orgId, insert.digest, IDLE_MS), null);
    assert.equal(await storage.redeemSocketTicket(at.orgId, old), null);
    const fresh = await session(storage, at);
    // Adding a live member again revives nothing and ends nothing.
    await h.advance(10);
    await storage.writeMembership({ ...at, role: "MEMBER", createdAt: AT, endedAt: null });
    const holder = { userId: at.userId, role: "OWNER" };
    assert.deepEqual(await storage.touchSession(at.orgId, fresh.insert.digest, IDLE_MS), holder);
    assert.deepEqual(await storage.redeemSocketTicket(at.orgId, await ticket(storage, at)), holder);
  },

  "endSession() ends once, of its owner or of anybody's, and knows no other user's": async ({ storage }) => {
    const at = await member(storage);
    const { insert } = await session(storage, at);
    assert.equal(await storage.endSession(at.orgId, insert.id, newId()), false);
    assert.notEqual(await storage.touchSession(at.orgId, insert.digest, IDLE_MS), null);
    assert.equal(await storage.endSession(at.orgId, insert.id, at.userId), true);
    assert.equal(await storage.endSession(at.orgId, insert.id, null), true, "ending twice is one ending");
    assert.equal(await storage.endSession(at.orgId, newId(), null), false);
    assert.equal(await storage.touchSession(at.orgId, insert.digest, IDLE_MS), null);
  },

  "redeemSocketTicket() gives the holder once; expired and unknown tickets are nobody's": async (h) => {
    const { storage } = h;
    const at = await member(storage);
    const first = await ticket(storage, at);
    assert.deepEqual(await storage.redeemSocketTicket(at.orgId, first), { userId: at.userId, role: "MEMBER" });
    assert.equal(await storage.redeemSocketTicket(at.orgId, first), null);
    const late = await ticket(storage, at, 5_000);
    await h.advance(5_000);
    assert.equal(await storage.redeemSocketTicket(at.orgId, late), null);
    assert.equal(await storage.redeemSocketTicket(at.orgId, digest()), null);
    const left = await ticket(storage, at);
    await storage.endMembership(at.orgId, at.userId);
    assert.equal(await storage.redeemSocketTicket(at.orgId, left), null);
  },

  "redeemSocketTicket() raced by twenty callers is won by one": async ({ storage }) => {
    const at = await member(storage);
    const raced = await ticket(storage, at);
    const won = await Promise.all(Array.from({ length: 20 }, () => storage.redeemSocketTicket(at.orgId, raced)));
    assert.equal(won.filter((holder) => holder !== null).length, 1);
  },

  "a secret of one org is nothing in another, though its user is a member of both": async ({ storage }) => {
    const mine = await member(storage);
    const other = await member(storage);
    await storage.writeMembership({ ...other, userId: mine.userId, role: "OWNER", createdAt: AT, endedAt: null });
    const { insert } = await session(storage, mine);
    const tick = await ticket(storage, mine);
    assert.equal(await storage.touchSession(other.orgId, insert.digest, IDLE_MS), null);
    assert.equal(await storage.redeemSocketTicket(other.orgId, tick), null);
    assert.equal(await storage.endSession(other.orgId, insert.id, null), false);
    assert.notEqual(await storage.touchSession(mine.orgId, insert.digest, IDLE_MS), null);
    assert.notEqual(await storage.redeemSocketTicket(mine.orgId, tick), null);
    // Presented in the other org, an id and a digest that are taken here make rows of their own there.
    const theirs = await storage.createSession(other.orgId, insert);
    assert.equal(theirs?.orgId, other.orgId);
    assert.equal((await storage.createSession(mine.orgId, insert))?.orgId, mine.orgId);
  },

  "purgeSessions() takes what ended, idled out or passed its end, in every org, in batches, and nothing else": async (
    h,
  ) => {
    const { storage } = h;
    const purge = (limit: number) => storage.purgeSessions(IDLE_MS, limit);
    await h.advance(LIFETIME_MS + 1);
    await drained(() => purge(1_000));
    const [one, other] = [await member(storage), await member(storage)];
    const ended = await session(storage, one);
    await storage.endSession(one.orgId, ended.insert.id, null);
    await session(storage, other, 5_000);
    await session(storage, other);
    const live = await session(storage, one);
    assert.equal(await purge(1_000), 1, "the ended one");
    await h.advance(6_000);
    assert.notEqual(await storage.touchSession(one.orgId, live.insert.digest, IDLE_MS), null);
    await h.advance(5_000);
    assert.deepEqual([await purge(1), await purge(1), await purge(1)], [1, 1, 0], "past its end, and idle");
    assert.notEqual(await storage.touchSession(one.orgId, live.insert.digest, IDLE_MS), null);
  },

  "purgeSocketTickets() takes redeemed and expired ones, in every org, in batches, and nothing else": async (h) => {
    const { storage } = h;
    await h.advance(600_001);
    await drained(() => storage.purgeSocketTickets(1_000));
    const [one, other] = [await member(storage), await member(storage)];
    const live = await ticket(storage, one);
    await storage.redeemSocketTicket(one.orgId, await ticket(storage, one));
    await ticket(storage, other, 1_000);
    await ticket(storage, other, 1_000);
    await h.advance(1_000);
    const purged = [];
    for (let i = 0; i < 3; i++) purged.push(await storage.purgeSocketTickets(2));
    assert.deepEqual(purged, [2, 1, 0]);
    assert.notEqual(await storage.redeemSocketTicket(one.orgId, live), null);
  },
};
