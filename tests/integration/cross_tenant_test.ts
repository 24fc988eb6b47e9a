/**
 * A member of one org asks every operation for what is another's: told nothing, changed nothing, on every engine.
 */
import assert from "node:assert/strict";
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { defineKind } from "../../src/work/kinds.ts";
import { createEndpointManager } from "../../workers/shipment-notifier/endpoints/manager.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { createShipmentManager } from "../../workers/shipment-notifier/shipments/manager.ts";
import { production, readSources } from "../house/source_files.ts";
import { type AllStorages, allStorages, KIND, makeWorld, MARK } from "../support/breach_world.ts";
import { type AllManagers, MANAGER_ATTEMPTS, type ManagerAttempt } from "../support/manager_attempts.ts";
import { ENGINES, openTestStore, type TestStore } from "../support/stores.ts";
import { rowsOf, saidBy } from "../support/tenant_breach.ts";

// Many contexts in one call; and one that runs on a caller's own connection (enqueue_in_test.ts).
const BY_HAND = ["work.extendLeases"];
const ELSEWHERE = ["work.enqueueIn"];

Deno.test("the attempts are of every operation that runs under an org's context, and of no other", async () => {
  const files = production([...await readSources("src"), ...await readSources("workers")]);
  const found: string[] = [];
  for (const { path, text } of files.filter(({ path }) => /\/(types|manager)\.ts$/.test(path))) {
    const room = path.split("/").at(-2) ?? "";
    const managers = [...text.matchAll(/^export interface \w*Manager\b[\s\S]*?^}/gm)].map(([declared]) => declared);
    const taking = /^ {2}(\w+)(?:<[^>]*>)?\(\s*(?:tx: \w+,\s*)?ctx: OpContext/gm;
    for (const declared of managers) found.push(...[...declared.matchAll(taking)].map(([, name]) => `${room}.${name}`));
  }
  const listed = [...Object.keys(MANAGER_ATTEMPTS), ...ELSEWHERE];
  assert.deepEqual([...found, ...BY_HAND].sort(), listed.sort());
});

for (const engine of ENGINES) {
  Deno.test(`no operation tells a member of one org of another's rows, or changes them, on ${engine}`, async () => {
    const test = await openTestStore(engine, [...CHAINS, SHIPMENTS_CHAIN]);
    try {
      const storages = allStorages(test.store);
      const managers = allManagers(storages);
      for (const [name, attempt] of Object.entries(MANAGER_ATTEMPTS)) {
        await asksInVain(test, { storages, managers, name, attempt });
      }
    } finally {
      await test.close();
    }
  });
}

function allManagers(storages: AllStorages): AllManagers {
  const managers = createManagers({
    storages,
    topics: new MemoryTopics(),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [KIND, "NOTIFY_SHIPMENT"].map((kind) => defineKind(kind, { schema: z.looseObject({}) })),
    itemRetentionMs: 3_600_000,
    keyRetentionMs: 7_200_000,
    outboxRetentionMs: 3_600_000,
    markerRetentionMs: 3_600_000,
  });
  return {
    ...managers,
    shipments: createShipmentManager(storages.shipments, managers.outbox, { deletedRetentionMs: 0 }),
    endpoints: createEndpointManager(storages.endpoints),
  };
}

async function asksInVain(
  test: TestStore,
  { storages, managers, name, attempt }: {
    storages: AllStorages;
    managers: AllManagers;
    name: string;
    attempt: ManagerAttempt;
  },
): Promise<void> {
  const world = await makeWorld(test, storages);
  const rctx = managers.tenancy.requestContext({ type: "SERVICE", version: "b@1" });
  await managers.tenancy.addMember(rctx, { orgId: world.b, userId: world.bob, role: "OWNER" });
  const ctx = await managers.tenancy.memberContext(rctx, world.b, world.bob);
  await assert.rejects(managers.tenancy.memberContext(rctx, world.a, world.bob), { code: "NOT_FOUND" });
  const item = await storages.work.readItem(world.a, world.held.id);
  const shipment = await storages.shipments.readShipment(world.a, world.shipmentId);
  assert.ok(item !== null && shipment !== null);
  const before = await rowsOf(test, world.a);
  const told: unknown[] = [];
  // Also what it was refused with, which the attempt itself has asserted the kind of.
  const spied = spy(managers, told);
  told.push(await attempt({ managers: spied, ctx, world, item, shipment }));
  for (const one of told) {
    const text = one instanceof Error ? saidBy(one) : JSON.stringify(one ?? null);
    assert.equal(text.includes(MARK), false, `${name} tells of A: ${text}`);
  }
  assert.equal(await rowsOf(test, world.a), before, `${name} changed A`);
}

/** The managers, noting every answer and every error they give. */
function spy(managers: AllManagers, told: unknown[]): AllManagers {
  const noting = <M extends object>(manager: M): M =>
    new Proxy(manager, {
      get(target, name) {
        const method = Reflect.get(target, name);
        if (typeof method !== "function") return method;
        return async (...args: unknown[]) => {
          try {
            const answer = await method.apply(target, args);
            told.push(answer);
            return answer;
          } catch (error) {
            told.push(error);
            throw error;
          }
        };
      },
    });
  const entries = Object.entries(managers).map(([name, manager]) => [name, noting(manager as object)]);
  return Object.fromEntries(entries) as unknown as AllManagers;
}
