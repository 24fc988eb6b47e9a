/**
 * What the notifier adds to the sweep, over the embedded store.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock, type OpContext } from "../../../mod.ts";
import { forTests, type TestContainer } from "../container.ts";
import { shipmentSweepSteps } from "../sweep_steps.ts";
import { claim, member, newShipment, request } from "./world.ts";

const URL = "https://hooks.example/x";

async function withContainer(test: (container: TestContainer, clock: FakeClock) => Promise<void>): Promise<void> {
  const clock = new FakeClock();
  const container = await forTests({ clock, shipmentOptions: { deletedRetentionMs: 60_000 } });
  try {
    await test(container, clock);
  } finally {
    await container.close();
  }
}

function step({ sweepSteps }: TestContainer, name: string) {
  return sweepSteps.find((one) => one.name === name) ?? assert.fail(`there is no step ${name}`);
}

async function parkOne({ shipments }: TestContainer, ctx: OpContext): Promise<string> {
  const { shipment } = await shipments.create(ctx, newShipment(URL));
  await shipments.park(ctx, shipment, 1, { reason: "x", resumeAt: new Date(0) });
  return shipment.id;
}

/** Runs a step until it says that there is no more. */
async function pass(container: TestContainer, name: string): Promise<number> {
  let rows = 0;
  for (let rounds = 0, more = true; more; rounds++) {
    assert.ok(rounds < 100, "a pass has no end");
    const result = await step(container, name).run(request(container));
    rows += result.count;
    more = result.more;
  }
  return rows;
}

Deno.test("resume-parked resumes what is due in every org and passes over those that ended, however many", async () => {
  await withContainer(async (container) => {
    for (let i = 0; i < 101; i++) {
      const ended = await member(container);
      await parkOne(container, ended);
      await container.managers.tenancy.endOrg(request(container), ended.orgId);
    }
    // Made last, it comes last in id order: behind a whole page of orgs that nothing can be done for.
    const ctx = await member(container);
    const id = await parkOne(container, ctx);
    assert.equal(await pass(container, "resume-parked"), 1);
    assert.equal((await container.shipments.read(ctx, id)).parking, null);
    assert.equal(await pass(container, "resume-parked"), 0);
    assert.equal(await container.shipments.countParked(request(container)), 101);
  });
});

Deno.test("resume-parked tells of an org that fails, once the others have had their turn", async () => {
  await withContainer(async (container) => {
    const { shipments, managers } = container;
    const orgs = [await member(container), await member(container), await member(container)];
    const ids: string[] = [];
    for (const ctx of orgs) ids.push(await parkOne(container, ctx));
    const [broken] = shipmentSweepSteps({
      orgsWithParked: (rctx, page) => shipments.orgsWithParked(rctx, page),
      resumeParked: (ctx) =>
        ctx.orgId === orgs[0]?.orgId ? Promise.reject(new Error("its trouble")) : shipments.resumeParked(ctx),
      orgsWithDeleted: () => Promise.resolve([]),
      purgeDeletedShipments: () => Promise.resolve(0),
    }, managers.tenancy);
    await assert.rejects(async () => await broken?.run(request(container)), /its trouble/);
    const parked: boolean[] = [];
    for (const [i, ctx] of orgs.entries()) parked.push((await shipments.read(ctx, ids[i] ?? "")).parking !== null);
    assert.deepEqual(parked, [true, false, false]);
  });
});

Deno.test("resume-parked resumes at most one batch of an org in a pass, each begun in its turn", async () => {
  await withContainer(async (container, clock) => {
    const ctx = await member(container);
    for (let i = 0; i < 103; i++) await parkOne(container, ctx);
    assert.equal((await claimAll(container)).length, 103, "the first items");
    assert.equal(await pass(container, "resume-parked"), 100);
    const starts = (await claimAll(container)).map(({ item }) => Number(item.payload.startMs ?? 0));
    assert.equal(starts.length, 100);
    assert.equal(starts.filter((startMs) => startMs === 0).length, 1);
    assert.equal(new Set(starts.map((startMs) => Math.floor(startMs / 100))).size, 100, "each has a turn of its own");
    await clock.tick(1_000);
    assert.equal(await pass(container, "resume-parked"), 3);
  });
});

async function claimAll(container: TestContainer) {
  const all = await claim(container);
  for (let more = all.length; more > 0;) {
    const next = await claim(container);
    all.push(...next);
    more = next.length;
  }
  return all;
}

Deno.test("purge-deleted-shipments removes what was deleted longer ago than its retention, and nothing else", async () => {
  await withContainer(async (container, clock) => {
    const { shipments } = container;
    const [one, other] = [await member(container), await member(container)];
    const make = async (ctx: OpContext) => (await shipments.create(ctx, newShipment(URL))).shipment;
    const [live, old, theirs, fresh] = [await make(one), await make(one), await make(other), await make(one)];
    await shipments.deleteShipment(one, old, 1);
    await shipments.deleteShipment(other, theirs, 1);
    assert.equal(await pass(container, "purge-deleted-shipments"), 0);
    await clock.tick(60_001);
    await shipments.deleteShipment(one, fresh, 1);
    assert.equal(await pass(container, "purge-deleted-shipments"), 2);
    assert.deepEqual(
      [await shipments.wasDeleted(one, old.id), await shipments.wasDeleted(one, fresh.id)],
      [false, true],
    );
    assert.equal((await shipments.read(one, live.id)).id, live.id);
  });
});

Deno.test("the steps stand where the order of housekeeping wants them", async () => {
  await withContainer((container) => {
    assert.deepEqual(container.sweepSteps.map(({ name, before }) => [name, before]), [
      ["resume-parked", "relay-outbox"],
      ["purge-deleted-shipments", "purge-markers"],
    ]);
    return Promise.resolve();
  });
});
