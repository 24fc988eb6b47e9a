/**
 * Managers over any engine's store, for tests that cross rooms.
 *
 * @module
 */
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext, RequestContext } from "../../src/core/context.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers, type ManagerOptions, type Managers } from "../../src/managers.ts";
import { createStorages, type Storages } from "../../src/storages.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { WorkManager } from "../../src/work/manager.ts";
import type { WorkStorage } from "../../src/work/storage.ts";
import type { WorkKind } from "../../src/work/types.ts";
import { createWorkManager } from "../../src/work/work_manager.ts";
import { overlay } from "./overlay.ts";
import { type Engine, openTestStore, type TestStore } from "./stores.ts";

/** A kind of any payload. */
export const ANY: ReturnType<typeof defineKind> = defineKind("ANY", { schema: z.looseObject({}) });

/** Managers, their store, and who asks. */
export interface ManagersRig {
  readonly test: TestStore;
  readonly storages: Storages;
  readonly managers: Managers;
  readonly topics: MemoryTopics;
  readonly rctx: RequestContext;
  /** A new org with one member: the member's context. */
  member(): Promise<OpContext>;
  close(): Promise<void>;
}

/** Opens a store and builds managers over it. */
export async function openManagers(engine: Engine, options: Partial<ManagerOptions> = {}): Promise<ManagersRig> {
  const test = await openTestStore(engine);
  const topics = new MemoryTopics();
  const storages = options.storages ?? createStorages(test.store);
  const managers = createManagers({
    storages,
    topics,
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [ANY],
    itemRetentionMs: 60_000,
    keyRetentionMs: 120_000,
    outboxRetentionMs: 60_000,
    markerRetentionMs: 86_400_000,
    ...options,
  });
  const rctx = managers.tenancy.requestContext({ type: "SERVICE", version: "test@1" }, {
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  });
  return {
    test,
    storages,
    managers,
    topics,
    rctx,
    async member() {
      const org = await managers.tenancy.createOrg(rctx, { name: "Org" });
      const user = await managers.tenancy.createUser(rctx, { name: "Ana" });
      await managers.tenancy.addMember(rctx, { orgId: org.id, userId: user.id, role: "MEMBER" });
      return await managers.tenancy.memberContext(rctx, org.id, user.id);
    },
    close: () => test.close(),
  };
}

/** The rig's work manager over a storage some of whose methods are replaced. Knows `ANY` and the kinds given. */
export function withStorage(
  rig: ManagersRig,
  replaced: Partial<WorkStorage>,
  kinds: readonly WorkKind[] = [],
): WorkManager {
  const { tenancy, audit } = rig.managers;
  return createWorkManager({
    storage: overlay(rig.storages.work, replaced),
    tenancy,
    audit,
    topics: rig.topics,
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [ANY, ...kinds],
    itemRetentionMs: 60_000,
    keyRetentionMs: 120_000,
  });
}
