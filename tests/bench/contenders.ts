/**
 * Who is measured, with which settings. Peers stand at their defaults and at what their own documentation calls their
 * best; every setting that is no default is written here and shown in the report.
 *
 * @module
 */

/** Whose tables they are. */
export type ContenderFamily = "laneway" | "graphile" | "pgboss" | "bullmq";

/** Where the items live. */
export type BenchEngine = "memory" | "sqlite" | "postgres";

/** Whether a finished item's row is kept. Rates are compared within a class, never across in one table. */
export type Retention = "keep" | "delete";

/** One measured setting of one queue. */
export interface Contender {
  /** What `--contenders` takes. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly family: ContenderFamily;
  readonly engine: BenchEngine;
  readonly retention: Retention;
  /** What one completion finishes: each item by itself, or its whole batch as one unit. */
  readonly completion: "each item" | "whole batch";
  /** What is not a default, for people. */
  readonly settings: string;
  /** Handed to its process as it stands: flags of Laneway, options of a peer. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Items of a drain at full scale: a few seconds of it. */
  readonly drainItems: number;
  /** Items of a drain whose handlers take 1 ms; 0 where it is not measured. */
  readonly sleepItems: number;
  /** Whether its enqueues are measured. One setting of each store: what a worker is tuned to changes nothing there. */
  readonly enqueues?: boolean;
  /** What goes before its options where its latency is measured; absent where it is not. */
  readonly latency?: Readonly<Record<string, unknown>>;
}

const laneway = { family: "laneway", completion: "each item" } as const;
const TUNED = { capacity: "1000", poolSize: "50", systemPoolSize: "10" };

/** Every contender, in the order of the report. */
export const CONTENDERS: readonly Contender[] = [
  {
    ...laneway,
    id: "laneway",
    name: "Laneway, default",
    engine: "postgres",
    retention: "keep",
    settings: "defaults (capacity 10)",
    options: { flags: { store: "postgres" } },
    drainItems: 20_000,
    sleepItems: 10_000,
    enqueues: true,
    latency: {},
  },
  {
    ...laneway,
    id: "laneway-tuned",
    name: "Laneway, tuned",
    engine: "postgres",
    retention: "keep",
    settings: "`--capacity 1000 --pool-size 50 --system-pool-size 10`",
    options: { flags: { store: "postgres", ...TUNED } },
    drainItems: 250_000,
    sleepItems: 40_000,
  },
  {
    ...laneway,
    id: "laneway-drop",
    name: "Laneway, default, nothing kept",
    engine: "postgres",
    retention: "delete",
    settings: "`--item-retention 0s` (capacity 10)",
    options: { flags: { store: "postgres", itemRetentionMs: "0s" } },
    drainItems: 20_000,
    sleepItems: 0,
  },
  {
    ...laneway,
    id: "laneway-drop-tuned",
    name: "Laneway, tuned, nothing kept",
    engine: "postgres",
    retention: "delete",
    settings: "`--item-retention 0s --capacity 1000 --pool-size 50 --system-pool-size 10`",
    options: { flags: { store: "postgres", itemRetentionMs: "0s", ...TUNED } },
    drainItems: 250_000,
    sleepItems: 40_000,
  },
  {
    id: "graphile",
    name: "graphile-worker, default",
    family: "graphile",
    engine: "postgres",
    retention: "delete",
    completion: "each item",
    settings: "concurrency 10, pool 10",
    options: { worker: { concurrentJobs: 10, maxPoolSize: 10 } },
    drainItems: 10_000,
    sleepItems: 6_000,
    enqueues: true,
    latency: {},
  },
  {
    id: "graphile-best",
    name: "graphile-worker, documented best",
    family: "graphile",
    engine: "postgres",
    retention: "delete",
    completion: "each item",
    settings: "concurrency 24, pool 25, localQueue 500, completeJobBatchDelay 0, failJobBatchDelay 0",
    options: {
      worker: {
        concurrentJobs: 24,
        maxPoolSize: 25,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    drainItems: 250_000,
    sleepItems: 40_000,
    latency: {},
  },
  {
    id: "pgboss",
    name: "pg-boss, one job a fetch",
    family: "pgboss",
    engine: "postgres",
    retention: "keep",
    completion: "each item",
    settings: "batchSize 1, localConcurrency 10, burstWhenReadyExceeds 1, monitor and cache every second",
    options: {
      boss: { monitorIntervalSeconds: 1, queueCacheIntervalSeconds: 1, superviseIntervalSeconds: 1 },
      worker: { batchSize: 1, localConcurrency: 10, burstWhenReadyExceeds: 1, pollingIntervalSeconds: 0.5 },
    },
    drainItems: 2_500,
    sleepItems: 2_500,
    enqueues: true,
    // Woken by LISTEN and NOTIFY, as every other contender is.
    latency: {
      boss: { useListenNotify: true },
      queue: { notify: true },
      worker: { batchSize: 1, localConcurrency: 10 },
    },
  },
  {
    id: "pgboss-best",
    name: "pg-boss, batches",
    family: "pgboss",
    engine: "postgres",
    retention: "keep",
    completion: "whole batch",
    settings: "batchSize 500, localConcurrency 4, burstWhenBatchFull",
    options: {
      worker: { batchSize: 500, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
    },
    drainItems: 150_000,
    sleepItems: 40_000,
  },
  {
    id: "pgboss-each",
    name: "pg-boss, batches, result per job",
    family: "pgboss",
    engine: "postgres",
    retention: "keep",
    completion: "each item",
    settings: "batchSize 500, localConcurrency 4, burstWhenBatchFull, perJobResults",
    options: {
      worker: {
        batchSize: 500,
        localConcurrency: 4,
        burstWhenBatchFull: true,
        perJobResults: true,
        pollingIntervalSeconds: 0.5,
      },
    },
    drainItems: 100_000,
    sleepItems: 0,
  },
  {
    id: "bullmq",
    name: "BullMQ on Postgres",
    family: "bullmq",
    engine: "postgres",
    retention: "keep",
    completion: "each item",
    settings: "concurrency 100, pool 10",
    options: { pool: { max: 10 }, worker: { concurrency: 100 } },
    drainItems: 6_000,
    sleepItems: 4_000,
    enqueues: true,
    latency: {},
  },
  {
    ...laneway,
    id: "sqlite",
    name: "Laneway, SQLite file, default",
    engine: "sqlite",
    retention: "keep",
    settings: "defaults (capacity 10, `synchronous=FULL`)",
    options: { flags: {} },
    drainItems: 20_000,
    sleepItems: 0,
    enqueues: true,
  },
  {
    ...laneway,
    id: "sqlite-tuned",
    name: "Laneway, SQLite file, tuned",
    engine: "sqlite",
    retention: "keep",
    settings: "`--capacity 1000` (`synchronous=FULL`)",
    options: { flags: { capacity: "1000" } },
    drainItems: 60_000,
    sleepItems: 0,
  },
  {
    ...laneway,
    id: "sqlite-fast",
    name: "Laneway, SQLite file, tuned, NORMAL",
    engine: "sqlite",
    retention: "keep",
    settings: "`--capacity 1000 --sqlite-synchronous normal`: a power cut may take the last commits",
    options: { flags: { capacity: "1000", sqliteSynchronous: "normal" } },
    drainItems: 60_000,
    sleepItems: 0,
  },
  {
    ...laneway,
    id: "memory",
    name: "Laneway, in memory, default",
    engine: "memory",
    retention: "keep",
    settings: "defaults (capacity 10)",
    options: { flags: { store: "memory" } },
    drainItems: 50_000,
    sleepItems: 0,
    enqueues: true,
  },
  {
    ...laneway,
    id: "memory-tuned",
    name: "Laneway, in memory, tuned",
    engine: "memory",
    retention: "keep",
    settings: "`--capacity 1000`",
    options: { flags: { store: "memory", capacity: "1000" } },
    drainItems: 200_000,
    sleepItems: 0,
  },
];

/** A pair whose rates are compared within each round. */
export interface Comparison {
  readonly ours: string;
  readonly theirs: string;
}

/** Compared within a class of retention: like with like. */
export const COMPARISONS: readonly Comparison[] = [
  { ours: "laneway-drop-tuned", theirs: "graphile-best" },
  { ours: "laneway-drop", theirs: "graphile" },
  { ours: "laneway-tuned", theirs: "pgboss-best" },
  { ours: "laneway-tuned", theirs: "pgboss-each" },
  { ours: "laneway", theirs: "pgboss" },
  { ours: "laneway", theirs: "bullmq" },
];

/** Compared across the classes, against us: our side keeps every finished row, theirs none. */
export const HANDICAPPED: readonly Comparison[] = [
  { ours: "laneway-tuned", theirs: "graphile-best" },
  { ours: "laneway", theirs: "graphile" },
];
