/**
 * The contract of `WorkStorage`, fourth part: what the sweep does for hosts. An embedded store serves none, and says so.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import type { ClaimRef } from "../../src/work/storage.ts";
import type { Cases } from "./contract.ts";
import { claimedOne, LEASE_MS, ref, type WorkHarness } from "./work_storage_values.ts";

const GRACE_MS = 60_000;

/** An item completed as a host does it: the row stays, with its token. */
async function completed(h: WorkHarness): Promise<ClaimRef> {
  const claim = ref(await claimedOne(h));
  await h.tamper(claim.orgId, claim.id, { status: "'done'", lease_expires_at: "null" });
  return claim;
}

/** Archives what other cases left, so that counts are of the case alone. */
async function archiveAll(h: WorkHarness, keep = true): Promise<number> {
  let all = 0;
  for (let n = 1; n > 0; all += n) n = await h.storage.archiveDone(0, { limit: 1_000, keep });
  return all;
}

/** Cases that every storage passes; those that serve no hosts answer 0 and none. */
export const HOST_CASES: Cases<WorkHarness> = {
  "archiveDone() moves what hosts completed, after its age and within its limit, and repeats are still recognized":
    async (h) => {
      const serves = h.hostSql !== undefined;
      await archiveAll(h);
      const refs = [await completed(h), await completed(h), await completed(h)];
      assert.equal(await h.storage.archiveDone(GRACE_MS, { limit: 10, keep: true }), 0, "not yet");
      await h.advance(GRACE_MS + 1_000);
      const young = await completed(h);
      assert.equal(await h.storage.archiveDone(GRACE_MS, { limit: 2, keep: true }), serves ? 2 : 0);
      assert.equal(await h.storage.archiveDone(GRACE_MS, { limit: 10, keep: true }), serves ? 1 : 0);
      for (const { orgId, id, token } of [...refs, young]) {
        const item = await h.storage.readItem(orgId, id);
        assert.deepEqual([item?.status, item?.claimToken], ["done", token]);
      }
      const again = refs.map((claim) => ({ ...claim, to: "done" }) as const);
      assert.deepEqual(await h.storage.settle(again), ["ALREADY", "ALREADY", "ALREADY"]);
    },
  "archiveDone() that keeps nothing leaves the key alone": async (h) => {
    const claim = await completed(h);
    const item = await h.storage.readItem(claim.orgId, claim.id);
    await h.advance(1_000);
    await archiveAll(h, false);
    const kept = await h.storage.readItem(claim.orgId, claim.id);
    assert.equal(kept === null, h.hostSql !== undefined);
    const holder = await h.storage.readItemByKey(claim.orgId, item?.idempotencyKey ?? "");
    assert.equal(holder?.id, claim.id);
  },
  "archiveDone() twice at once moves each item once, and no item that is not done": async (h) => {
    await archiveAll(h);
    for (let n = 0; n < 20; n++) await completed(h);
    const held = ref(await claimedOne(h));
    await h.advance(1_000);
    const counts = await Promise.all([1, 2, 3].map(() => h.storage.archiveDone(0, { limit: 20, keep: true })));
    assert.equal(counts.reduce((a, b) => a + b), h.hostSql === undefined ? 0 : 20);
    assert.deepEqual(await h.storage.extendLeases([held], LEASE_MS), ["WRITTEN"]);
  },
  "hostOrgs() and dropHostOrgs() name and shorten hosts' lists, and readHosts() tells how each host stands": async (
    h,
  ) => {
    const [a, b, c] = [newId(), newId(), newId()].sort();
    assert.ok(a && b && c);
    if (h.hostSql === undefined) {
      assert.deepEqual(await h.storage.hostOrgs(null, 10), []);
      assert.equal(await h.storage.dropHostOrgs([a]), 0);
      assert.deepEqual(await h.storage.readHosts(10), []);
      return;
    }
    await h.hostSql(`insert into queue.hosts (name, enabled, org_ids) values
      ('contract-1', true, '{${c},${a},${b}}'), ('contract-2', false, '{${b}}')`);
    assert.deepEqual(await h.storage.hostOrgs(null, 10), [a, b, c]);
    assert.deepEqual(await h.storage.hostOrgs(a, 1), [b]);
    assert.equal(await h.storage.dropHostOrgs([newId()]), 0);
    assert.equal(await h.storage.dropHostOrgs([b, newId()]), 2);
    const lists = await h.hostSql("select org_ids::text as ids from queue.hosts order by name");
    assert.deepEqual(lists.map(({ ids }) => ids), [`{${c},${a}}`, "{}"], "what stays keeps its order");
    await h.hostSql("update queue.hosts set last_heartbeat_at = now() where name = 'contract-1'");
    const held = ref(await claimedOne(h));
    await h.tamper(held.orgId, held.id, { host: "'contract-1'" });
    const [first, second] = await h.storage.readHosts(10);
    assert.deepEqual([first?.name, first?.enabled, first?.inFlight], ["contract-1", true, 1]);
    assert.equal(typeof first?.heartbeatAgeSeconds, "number");
    assert.deepEqual(second, { name: "contract-2", enabled: false, heartbeatAgeSeconds: null, inFlight: 0 });
    await h.advance(LEASE_MS);
    assert.equal((await h.storage.readHosts(1))[0]?.inFlight, 0, "what expired is not in flight");
  },
  "purgeAttempts() deletes old attempts within its limit": async (h) => {
    await h.hostSql?.(`insert into queue.attempts (org_id, item_id, claim_token, attempt, host, worker, started_at,
        finished_at, duration_ms, outcome, stdout_tail, stderr_tail, created_at)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'h', 'w', now(), now(), 1, 'done', '', '',
        now() - n * interval '1 day' from generate_series(5, 7) n`);
    const serves = h.hostSql !== undefined;
    const day = 86_400_000;
    assert.equal(await h.storage.purgeAttempts(30 * day, 10), 0);
    assert.equal(await h.storage.purgeAttempts(4 * day, 2), serves ? 2 : 0);
    assert.equal(await h.storage.purgeAttempts(4 * day, 2), serves ? 1 : 0);
  },
  "no claim of another worker keeps the host of the claim before": async (h) => {
    if (h.hostSql === undefined) return;
    for (const way of ["handed back", "expired", "claimed fairly"]) {
      const owned = await claimedOne(h);
      const { orgId, id } = ref(owned);
      await h.tamper(orgId, id, { host: "'a-host'" });
      if (way === "expired") {
        await h.advance(LEASE_MS);
        await h.storage.requeueStale(orgId, 10, { baseMs: 1_000, capMs: 1_000 });
      } else {
        await h.storage.settle([{ ...ref(owned), to: "back", delayMs: 0, note: null, ran: false }]);
      }
      const { lane, kind } = owned.item;
      const order = way === "claimed fairly" ? "fair" : "due";
      const ask = { lane, kinds: [kind], worker: "w", leaseMs: LEASE_MS, limit: 1, token: newId() } as const;
      assert.equal((await h.storage.claim({ ...ask, order })).length, 1, way);
      const [row] = await h.hostSql(`select host from queue.work_items where id = '${id}'`);
      assert.deepEqual(row, { host: null }, way);
    }
  },
};
