/**
 * A worker over the embedded store with every clock in the test's hands: database time and the worker's own.
 *
 * @module
 */
import assert from "node:assert/strict";
import { z } from "zod";
import type { OpContext, RequestContext } from "../../src/core/context.ts";
import { FakeClock, settlePromises } from "../../src/core/fake_clock.ts";
import type { LogFields, Logger } from "../../src/core/log.ts";
import type { MetricLabels, MetricName, Metrics } from "../../src/core/metrics.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import type { Cache } from "../../src/infra/cache.ts";
import { MemoryCache } from "../../src/infra/memory_cache.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import type { WorkerRuntime, WorkerRuntimeOptions } from "../../src/runtime/types.ts";
import { createWorkerRuntime } from "../../src/runtime/worker.ts";
import { createStorages } from "../../src/storages.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { WorkManager } from "../../src/work/manager.ts";
import { overlay } from "./overlay.ts";
import type { EnqueueOptions, NewWorkItem, WorkHandler, WorkItem, WorkKind } from "../../src/work/types.ts";

/** The kind most tests use: any payload, retries after 1 s, 60 s to run. */
export const TASK: WorkKind = defineKind("TASK", {
  schema: z.looseObject({}),
  retry: { baseMs: 1_000, capMs: 1_000 },
  timeoutMs: 60_000,
});

const APP = { type: "WORKER", version: "rig@0" } as const;

/** One line a logger was given. */
export interface LoggedLine {
  readonly level: keyof Logger;
  readonly event: string;
  readonly fields: LogFields;
}

/** How a rig is made. */
export interface RigOptions {
  readonly kinds?: readonly WorkKind[];
  /** The store's file; default `:memory:`. */
  readonly path?: string;
  /** How long completed items are kept, milliseconds; default an hour. */
  readonly itemRetentionMs?: number;
}

/** Managers over a migrated store, and workers over them. */
export class WorkerRig {
  readonly clock = new FakeClock();
  readonly topics = new MemoryTopics();
  readonly db: SqliteDatabase;
  readonly managers: Managers;
  readonly rctx: RequestContext;
  readonly log: LoggedLine[] = [];
  readonly counts = new Map<string, number>();
  readonly gauges = new Map<string, number>();
  readonly #workers: WorkerRuntime[] = [];

  private constructor(options: RigOptions) {
    this.db = new SqliteDatabase(options.path ?? ":memory:", { clock: this.clock, synchronous: "NORMAL" });
    this.managers = createManagers({
      storages: createStorages({ engine: "sqlite", db: this.db }),
      topics: this.topics,
      clock: this.clock,
      logger: this.logger,
      metrics: this.metrics,
      kinds: options.kinds ?? [TASK],
      itemRetentionMs: options.itemRetentionMs ?? 3_600_000,
      keyRetentionMs: 7_200_000,
      outboxRetentionMs: 3_600_000,
      markerRetentionMs: 86_400_000,
    });
    this.rctx = this.managers.tenancy.requestContext(APP);
  }

  /** Makes a rig over a migrated store. */
  static async make(options: RigOptions = {}): Promise<WorkerRig> {
    const rig = new WorkerRig(options);
    await migrateSqliteUp(rig.db, CHAINS);
    return rig;
  }

  /** Runs `test` over a rig and stops every worker afterwards. */
  static async with(test: (rig: WorkerRig) => Promise<void>, options: RigOptions = {}): Promise<void> {
    const rig = await WorkerRig.make(options);
    try {
      await test(rig);
    } finally {
      await rig.close();
    }
  }

  readonly logger: Logger = {
    debug: (event, fields = {}) => this.log.push({ level: "debug", event, fields }),
    info: (event, fields = {}) => this.log.push({ level: "info", event, fields }),
    warn: (event, fields = {}) => this.log.push({ level: "warn", event, fields }),
    error: (event, fields = {}) => this.log.push({ level: "error", event, fields }),
  };

  readonly metrics: Metrics = {
    count: (name, labels, by = 1) => {
      const key = keyOf(name, labels);
      this.counts.set(key, (this.counts.get(key) ?? 0) + by);
    },
    set: (name, value, labels) => void this.gauges.set(keyOf(name, labels), value),
    observe: () => {},
  };

  /** A new org's own context. */
  async org(): Promise<OpContext> {
    const org = await this.managers.tenancy.createOrg(this.rctx, { name: "rig" });
    return await this.managers.tenancy.serviceContext(this.rctx, org.id);
  }

  /** Enqueues one item and returns its id. */
  async enqueue(ctx: OpContext, item: Partial<NewWorkItem> = {}, options?: EnqueueOptions): Promise<string> {
    const full = { kind: TASK.name, idempotencyKey: crypto.randomUUID(), payload: {}, ...item };
    const result = await this.managers.work.enqueue(ctx, full, options);
    assert.equal(result.outcome, "INSERTED");
    return result.id;
  }

  read(ctx: OpContext, id: string): Promise<WorkItem> {
    return this.managers.work.read(ctx, id);
  }

  /** Builds and starts a worker. `work` replaces methods of the work manager, to let them fail or hang. */
  start(
    handle: WorkHandler["handle"] | readonly WorkHandler[],
    options: Partial<WorkerRuntimeOptions> & { work?: Partial<WorkManager> } = {},
  ): WorkerRuntime {
    const handlers = typeof handle === "function" ? [{ kind: TASK, handle }] : handle;
    const { work, ...rest } = options;
    const managers = work === undefined ? this.managers : { ...this.managers, work: overlay(this.managers.work, work) };
    const worker = createWorkerRuntime({
      worker: "rig",
      app: APP,
      lane: "default",
      kinds: handlers.map((handler) => handler.kind.name),
      handlers,
      managers,
      ping: () => Promise.resolve(),
      topics: this.topics,
      cache: new MemoryCache(this.clock) as Cache,
      clock: this.clock,
      logger: this.logger,
      metrics: this.metrics,
      capacity: 3,
      leaseMs: 30_000,
      pollMs: 1_000,
      heartbeatMs: 5_000,
      sweepMs: 10_000,
      drainGraceMs: 10_000,
      ...rest,
    });
    worker.start();
    this.#workers.push(worker);
    return worker;
  }

  /** Moves time on in small steps until `condition` holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>, limitMs = 120_000): Promise<void> {
    await settlePromises();
    for (let passed = 0; !await condition(); passed += 100) {
      assert.ok(passed < limitMs, `not within ${limitMs} ms of fake time: ${what}`);
      await this.clock.tick(100);
    }
  }

  /** Moves time on until an item has the given status. */
  async untilStatus(ctx: OpContext, id: string, status: WorkItem["status"]): Promise<WorkItem> {
    await this.until(`item ${status}`, async () => (await this.read(ctx, id)).status === status);
    return await this.read(ctx, id);
  }

  /** Drains a worker, moving time on while it does. */
  async drain(worker: WorkerRuntime): Promise<Awaited<ReturnType<WorkerRuntime["drain"]>>> {
    let done = false;
    const report = worker.drain().finally(() => done = true);
    await this.until("drained", () => done);
    return await report;
  }

  /** How often a log event was written. */
  logged(event: string): number {
    return this.log.filter((line) => line.event === event).length;
  }

  async close(): Promise<void> {
    for (const worker of this.#workers) {
      worker.skipGrace();
      await this.drain(worker);
    }
    this.db.close();
  }
}

/** A promise with its ends outside. */
export function gate<T = void>(): { readonly promise: Promise<T>; open(value: T): void } {
  let open: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => open = resolve);
  return { promise, open: (value) => open(value) };
}

function keyOf(name: MetricName, labels: MetricLabels = {}): string {
  return [name, ...Object.values(labels)].join(" ");
}
