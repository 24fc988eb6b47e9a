/**
 * The commands of the sweep.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Unaudited } from "../../src/work/storage.ts";
import { AUDIT, decided, ORGS, uuid } from "./domain.ts";
import { ask, Step, type World } from "./step.ts";
import { longestRetry, MINTED, type ModelItem, SOONEST_RETRY_MS, type WorkModel } from "./work_model.ts";

const limit = fc.constantFrom(1, 2, 1_000);
const olderThanMs = fc.constantFrom(0, 1_000, 60_000);
const updated = ({ item }: ModelItem) => item.updatedAt.getTime();
const lease = ({ item }: ModelItem) => item.leaseExpiresAt?.getTime() ?? 0;

const promote = limit.map((asked) =>
  new Step("promote", asked, async (model, world) => {
    const most = decided(asked, model.promotable().map(({ item }) => item.availableAt.getTime()));
    await ask(world, ({ storage }) => storage.promote(most), model.promote(most));
  })
);

const POLICIES = [{ baseMs: 1_000, capMs: 3_600_000 }, { baseMs: 1, capMs: 100 }, { baseMs: 40_000, capMs: 50_000 }];

const requeueStale = fc.record({ org: fc.nat({ max: ORGS.length - 1 }), limit, policy: fc.constantFrom(...POLICIES) })
  .map((args) =>
    new Step("requeueStale", args, async (model, world) => {
      const orgId = ORGS[args.org] ?? "";
      const stale = model.stale([orgId]);
      const most = decided(args.limit, stale.map(lease));
      const drawn = stale.slice(0, most).filter(({ item }) => item.expiries > 0 && item.attempts < item.maxAttempts);
      if (stale.length > 0) world.elsewhere = true;
      const expected = model.requeueStale(orgId, most, args.policy);
      await ask(world, ({ storage }) => storage.requeueStale(orgId, most, args.policy), expected);
      for (const { item } of drawn) {
        const longestMs = longestRetry(item.attempts, args.policy);
        await alignDelay(model, world, { orgId, id: item.id, longestMs, at: item.availableAt });
      }
    })
  );

/** A delay is drawn at random: held to its bounds, and then the same in each storage. */
async function alignDelay(
  model: WorkModel,
  { stores }: World,
  { orgId, id, longestMs, at }: { orgId: string; id: string; longestMs: number; at: Date },
): Promise<void> {
  await Promise.all(stores.map(async (store) => {
    const item = await store.storage.readItem(orgId, id);
    const delayMs = (item?.availableAt.getTime() ?? 0) - model.nowMs;
    const within = delayMs >= SOONEST_RETRY_MS && delayMs <= longestMs;
    assert.ok(within, `${store.name}: a delay of ${delayMs} ms is not within ${SOONEST_RETRY_MS} to ${longestMs}`);
    await store.setAvailable(orgId, id, at);
  }));
}

const orgsWithStale = limit.map((asked) =>
  new Step("orgsWithStale", asked, async (model, world) => {
    const all = model.orgsWithStale();
    await ask(world, ({ storage }) => storage.orgsWithStale(asked), Math.min(asked, all.length), (seen) => {
      const orgs = seen as string[];
      assert.ok(new Set(orgs).size === orgs.length && orgs.every((org) => all.includes(org)), String(orgs));
      return orgs.length;
    });
  })
);

const failStaleOf = fc.record({ orgs: fc.subarray([...ORGS]), limit }).map((args) =>
  new Step("failStaleOf", args, async (model, world) => {
    const most = decided(args.limit, model.stale(args.orgs).map(lease));
    const expected = model.failStaleOf(args.orgs, "org ended", most);
    await ask(world, ({ storage }) => storage.failStaleOf(args.orgs, "org ended", most), expected);
  })
);

const readUnaudited = limit.map((asked) =>
  new Step("readUnaudited", asked, async (model, world) => {
    const all = model.unaudited();
    const most = decided(asked, all.map(({ atMs }) => atMs));
    const ages = new Map(all.map((row) => [row.id, row.atMs]));
    const byId = (rows: Unaudited[]) => rows.sort((a, b) => `${a.orgId} ${a.id}` < `${b.orgId} ${b.id}` ? -1 : 1);
    const expected = byId(all.slice(0, most).map(({ atMs: _, ...row }) => row));
    await ask(world, ({ storage }) => storage.readUnaudited(most), expected, (seen) => {
      const rows = seen as Unaudited[];
      const told = rows.map(({ id }) => ages.get(id) ?? 0);
      assert.deepEqual(told, told.toSorted((a, b) => a - b), "oldest first");
      return byId(rows.map((row) => row.auditId.startsWith(AUDIT) ? row : { ...row, auditId: MINTED }));
    });
  })
);

const clearAudit = fc.record({ which: fc.nat({ max: 5 }), right: fc.boolean() }).map((args) =>
  new Step("clearAudit", args, async (model, world) => {
    const all = model.unaudited();
    const row = all[args.which % Math.max(all.length, 1)];
    if (row === undefined) return;
    const { orgId, id } = row;
    await ask(world, async ({ storage }) => {
      const auditId = args.right ? (await storage.readItem(orgId, id))?.auditId ?? "" : uuid("a0d17001", 0);
      await storage.clearAudit([{ orgId, id, auditId }]);
    }, undefined);
    if (args.right) model.clearAudit(orgId, id);
  })
);

const purgeItems = fc.record({ olderThanMs, limit }).map((args) =>
  new Step("purgeItems", args, async (model, world) => {
    // Done before failed: of either kind equals are told apart.
    const places = model.purgeable(args.olderThanMs).map((one) =>
      updated(one) + (one.item.status === "done" ? 0 : 0.5)
    );
    const most = decided(args.limit, places);
    const expected = model.purgeItems(args.olderThanMs, most);
    await ask(world, ({ storage }) => storage.purgeItems(args.olderThanMs, most), expected);
  })
);

const purgeKeys = fc.record({ olderThanMs, limit }).map((args) =>
  new Step("purgeKeys", args, async (model, world) => {
    const expected = model.purgeKeys(args.olderThanMs);
    await ask(world, async ({ storage }) => {
      let freed = 0;
      // A call that frees none says that none is left only when the one before had come to the end.
      for (let empty = 0; empty < 2;) {
        const now = await storage.purgeKeys(args.olderThanMs, args.limit);
        assert.ok(now <= args.limit, `${now} keys freed of at most ${args.limit}`);
        freed += now;
        empty = now === 0 ? empty + 1 : 0;
      }
      return freed;
    }, expected);
  })
);

const readGauges = fc.constant(
  new Step("readGauges", {}, async (model, world) => {
    await ask(world, ({ storage }) => storage.readGauges(), model.readGauges());
  }),
);

const STEPS = ["requeue-stale", "purge-items", "purge-keys"];

const takeSweepSteps = fc.record({
  steps: fc.shuffledSubarray(STEPS),
  intervalMs: fc.constantFrom(1_000, 5_000, 60_000),
}).map((args) =>
  new Step("takeSweepSteps", args, async (model, world) => {
    const expected = model.takeSweepSteps(args.steps, args.intervalMs).sort();
    const sorted = (seen: unknown) => (seen as string[]).toSorted();
    await ask(world, ({ storage }) => storage.takeSweepSteps(args.steps, args.intervalMs), expected, sorted);
  })
);

/** Each with how often it is drawn. */
export const SWEEP_COMMANDS: readonly (readonly [weight: number, command: fc.Arbitrary<Step>])[] = [
  [2, promote],
  [3, requeueStale],
  [1, orgsWithStale],
  [1, failStaleOf],
  [1, readUnaudited],
  [1, clearAudit],
  [2, purgeItems],
  [2, purgeKeys],
  [1, readGauges],
  [1, takeSweepSteps],
];
