/**
 * The contract of `TenancyStorage`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { NotFoundError } from "../../src/core/errors.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import type { Membership, Org, TenancyStorage, User } from "../../src/tenancy/types.ts";
import { type Cases, contractSuite, type Harness } from "./contract.ts";
import { SESSION_CASES } from "./tenancy_sessions.ts";

/** What the tenancy suite runs over. */
export interface TenancyHarness extends Harness {
  /** The storage under test. */
  readonly storage: TenancyStorage;
}

/** Runs the contract over the storage that `make` provides. */
export function testTenancyStorage(name: string, make: () => Promise<TenancyHarness>): void {
  contractSuite(`TenancyStorage on ${name}`, make, { ...CASES, ...SESSION_CASES });
}

const AT = new Date("2026-01-02T03:04:05.678Z");

function orgRow(name = "Łódź Freight"): Org {
  return { id: newId(), name, createdAt: AT, endedAt: null };
}

function userRow(): User {
  return { id: newId(), name: "Ægir Ó", createdAt: AT };
}

function memberRow(orgId: string, userId: string, role: "OWNER" | "MEMBER" = "MEMBER"): Membership {
  return { orgId, userId, role, createdAt: AT, endedAt: null };
}

async function makeOrg(storage: TenancyStorage): Promise<string> {
  const org = orgRow();
  await storage.createOrg(org);
  return org.id;
}

async function makeMember(storage: TenancyStorage, orgId: string): Promise<string> {
  const user = userRow();
  await storage.createUser(user);
  await storage.writeMembership(memberRow(orgId, user.id));
  return user.id;
}

const CASES: Cases<TenancyHarness> = {
  "createOrg() stores the row as it was given": async ({ storage }) => {
    const org = orgRow();
    assert.equal(await storage.createOrg(org), true);
    assert.deepEqual(await storage.readOrg(org.id), org);
  },

  "createOrg() leaves the row that holds the id as it stands": async ({ storage }) => {
    const org = orgRow();
    await storage.createOrg(org);
    assert.equal(await storage.createOrg({ ...org, name: "Another" }), false);
    assert.equal((await storage.readOrg(org.id))?.name, org.name);
  },

  "createOrg() raced by ten callers is won by one": async ({ storage }) => {
    const org = orgRow();
    const won = await Promise.all(Array.from({ length: 10 }, () => storage.createOrg(org)));
    assert.equal(won.filter((w) => w).length, 1);
  },

  "readOrg() finds nothing under an id nobody took": async ({ storage }) => {
    assert.equal(await storage.readOrg(newId()), null);
  },

  "endOrg() keeps the time of the first ending": async ({ storage, advance }) => {
    const orgId = await makeOrg(storage);
    assert.equal(await storage.endOrg(orgId), true);
    const first = (await storage.readOrg(orgId))?.endedAt;
    assert.ok(first instanceof Date);
    await advance(5_000);
    assert.equal(await storage.endOrg(orgId), true);
    assert.deepEqual((await storage.readOrg(orgId))?.endedAt, first);
  },

  "endOrg() tells that there is no such org": async ({ storage }) => {
    assert.equal(await storage.endOrg(newId()), false);
  },

  "createUser() stores once and leaves a taken id alone": async ({ storage }) => {
    const user = userRow();
    assert.equal(await storage.createUser(user), true);
    assert.equal(await storage.createUser({ ...user, name: "Another" }), false);
    assert.deepEqual(await storage.readUser(user.id), user);
    assert.equal(await storage.readUser(newId()), null);
  },

  "writeMembership() makes a user a member": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const user = userRow();
    await storage.createUser(user);
    assert.deepEqual(await storage.writeMembership(memberRow(orgId, user.id)), memberRow(orgId, user.id));
  },

  "writeMembership() leaves a live membership as it stands": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const userId = await makeMember(storage, orgId);
    assert.equal((await storage.writeMembership(memberRow(orgId, userId, "OWNER"))).role, "MEMBER");
  },

  "writeMembership() revives an ended membership under the new role": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const userId = await makeMember(storage, orgId);
    await storage.endMembership(orgId, userId);
    const revived = await storage.writeMembership(memberRow(orgId, userId, "OWNER"));
    assert.equal(revived.role, "OWNER");
    assert.equal(revived.endedAt, null);
  },

  "writeMembership() raced by ten callers makes one membership": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const user = userRow();
    await storage.createUser(user);
    const rows = await Promise.all(
      Array.from(
        { length: 10 },
        (_, i) => storage.writeMembership(memberRow(orgId, user.id, i % 2 === 0 ? "OWNER" : "MEMBER")),
      ),
    );
    assert.equal(new Set(rows.map((row) => row.role)).size, 1);
  },

  "writeMembership() refuses an absent org, an ended org and an absent user": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const userId = await makeMember(storage, orgId);
    const ended = await makeOrg(storage);
    await storage.endOrg(ended);
    await assert.rejects(storage.writeMembership(memberRow(newId(), userId)), NotFoundError);
    await assert.rejects(storage.writeMembership(memberRow(ended, userId)), NotFoundError);
    await assert.rejects(storage.writeMembership(memberRow(orgId, newId())), NotFoundError);
  },

  "endMembership() ends a live membership once": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const userId = await makeMember(storage, orgId);
    assert.equal(await storage.endMembership(orgId, userId), true);
    assert.equal(await storage.endMembership(orgId, userId), false);
  },

  "endMembership() under another org leaves the membership alive": async ({ storage }) => {
    const orgId = await makeOrg(storage);
    const other = await makeOrg(storage);
    const userId = await makeMember(storage, orgId);
    assert.equal(await storage.endMembership(other, userId), false);
    assert.equal((await storage.readSubjects([{ orgId, userId }]))[0]?.memberLive, true);
  },

  "readSubjects() answers every pair in order, duplicates included": async ({ storage }) => {
    const live = await makeOrg(storage);
    const gone = await makeOrg(storage);
    const member = await makeMember(storage, live);
    const left = await makeMember(storage, live);
    const stranded = await makeMember(storage, gone);
    await storage.endMembership(live, left);
    await storage.endOrg(gone);
    const absent = newId();
    const pairs = [
      { orgId: live, userId: member },
      { orgId: absent, userId: member },
      { orgId: live, userId: left },
      { orgId: gone, userId: stranded },
      { orgId: live, userId: EMPTY_UUID },
      { orgId: live, userId: stranded },
      { orgId: live, userId: member },
    ];
    const states = await storage.readSubjects(pairs);
    assert.deepEqual(states.map(({ orgId, userId }) => ({ orgId, userId })), pairs);
    assert.deepEqual(states.map((s) => s.orgLive), [true, false, true, false, true, true, true]);
    assert.deepEqual(states.map((s) => s.memberLive), [true, false, false, false, false, false, true]);
    assert.deepEqual(states.map((s) => s.role), ["MEMBER", null, null, null, null, null, "MEMBER"]);
  },

  "readSubjects() answers nothing with nothing": async ({ storage }) => {
    assert.deepEqual(await storage.readSubjects([]), []);
  },

  "liveOrgIds() pages through live orgs in id order, with or without members": async ({ storage }) => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await makeOrg(storage));
    await makeMember(storage, ids[0] ?? "");
    await storage.endOrg(ids[2] ?? "");
    const seen: string[] = [];
    let after: string | null = null;
    for (let pages = 0; pages < 1_000; pages++) {
      const page: string[] = await storage.liveOrgIds(after, 2);
      if (page.length === 0) break;
      assert.ok(page.length <= 2);
      seen.push(...page);
      after = page.at(-1) ?? null;
    }
    assert.deepEqual(seen, [...seen].sort());
    assert.deepEqual(seen.filter((id) => ids.includes(id)), [ids[0], ids[1], ids[3], ids[4]]);
  },
};
