/**
 * What the bench measures with: a worker over a store, in this process, with a no-op kind.
 *
 * @module
 */
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext } from "../../src/core/context.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryCache } from "../../src/infra/memory_cache.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import type { Topics } from "../../src/infra/topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import type { WorkerRuntime } from "../../src/runtime/types.ts";
import { createWorkerRuntime } from "../../src/runtime/worker.ts";
import { createStorages, type Store } from "../../src/storages.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { ClaimOrder, NewWorkItem, WorkHandler } from "../../src/work/types.ts";

/** The kind every bench runs. */
export const BENCH_KIND = defineKind("BENCH_NOOP", { schema: z.object({ n: z.number() }) });

const APP = { type: "WORKER", version: "bench@0" } as const;
const ORGS = 50;

/** A worker of a rig. */
export interface RigWorker {
  readonly capacity: number;
  readonly handle?: WorkHandler["handle"];
  readonly pollMs?: number;
  readonly claimOrder?: ClaimOrder;
}

/** A store with managers and some orgs. */
export interface Rig {
  readonly managers: Managers;
  readonly contexts: readonly OpContext[];
  /** Enqueues `count` items over the orgs, in bulk. */
  fill(count: number): Promise<void>;
  /** Builds a worker of this rig. */
  worker(options: RigWorker): WorkerRuntime;
}

/** Builds managers over a store and creates the bench's orgs. */
export async function makeRig(store: Store, topics: Topics = new MemoryTopics()): Promise<Rig> {
  const clock = systemClock;
  const managers = createManagers({
    storages: createStorages(store),
    topics,
    clock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [BENCH_KIND],
    itemRetentionMs: 7 * 86_400_000,
    keyRetentionMs: 7 * 86_400_000,
    outboxRetentionMs: 86_400_000,
    markerRetentionMs: 86_400_000,
  });
  const rctx = managers.tenancy.requestContext(APP);
  const contexts: OpContext[] = [];
  for (let i = 0; i < ORGS; i++) {
    const org = await managers.tenancy.createOrg(rctx, { name: `bench ${i}` });
    contexts.push(await managers.tenancy.serviceContext(rctx, org.id));
  }
  return {
    managers,
    contexts,
    async fill(count) {
      for (let i = 0; i < contexts.length; i++) {
        const ctx = contexts[i];
        const share = Math.floor((count * (i + 1)) / contexts.length) - Math.floor((count * i) / contexts.length);
        const items = Array.from({ length: share }, (_, n): NewWorkItem => ({
          kind: BENCH_KIND.name,
          idempotencyKey: crypto.randomUUID(),
          payload: { n },
        }));
        if (ctx !== undefined) await managers.work.enqueueMany(ctx, items);
      }
    },
    worker: ({ capacity, handle, pollMs, claimOrder }) =>
      createWorkerRuntime({
        worker: "bench",
        app: APP,
        lane: "default",
        kinds: [BENCH_KIND.name],
        handlers: [{ kind: BENCH_KIND, handle: handle ?? (() => {}) }],
        managers,
        ping: () => Promise.resolve(),
        topics,
        cache: new MemoryCache(clock),
        clock,
        logger: silentLogger,
        metrics: noMetrics,
        capacity,
        leaseMs: 30_000,
        pollMs: pollMs ?? 1_000,
        ...(claimOrder === undefined ? {} : { claimOrder }),
        heartbeatMs: 5_000,
        sweepMs: 10_000,
        drainGraceMs: 10_000,
      }),
  };
}
