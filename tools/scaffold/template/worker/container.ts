/**
 * Wires this worker: the only place of it that says `new`.
 *
 * @module
 */
import {
  CHAINS,
  type Clock,
  createManagers,
  createStorages,
  type Managers,
  MemoryTopics,
  migrateSqliteUp,
  noMetrics,
  type Parts,
  silentLogger,
  SqliteDatabase,
  type Store,
  systemClock,
  type Topics,
  type WorkerParts,
} from "laneway";
import { type HandleSampleRecordEffect, LoggedEffect } from "./effect.ts";
import { HandleSampleRecordHandler } from "./handler.ts";
import { HANDLE_SAMPLE_RECORD } from "./kind.ts";
import { SAMPLE_RECORDS_CHAIN } from "./sample_records/chain.ts";
import { createSampleRecordManager } from "./sample_records/manager.ts";
import { PostgresSampleRecordStorage } from "./sample_records/storage/postgres.ts";
import { SqliteSampleRecordStorage } from "./sample_records/storage/sqlite.ts";
import type { SampleRecordManager, SampleRecordStorage } from "./sample_records/types.ts";
import { readSettings } from "./settings.ts";

/**
 * Builds this worker's handler over open parts.
 *
 * @throws {UsageError} Its settings do not serve: see `readSettings`.
 */
export function build(parts: Parts): WorkerParts {
  const { timeoutMs } = readSettings(parts.env);
  const effect = new LoggedEffect(parts.logger);
  return { handlers: [new HandleSampleRecordHandler({ sampleRecords: sampleRecords(parts), effect, timeoutMs })] };
}

/** Builds the manager over an open store: for the handler, and for commands that need none. */
export function sampleRecords({ store, managers }: Pick<Parts, "store" | "managers">): SampleRecordManager {
  return createSampleRecordManager(sampleRecordStorage(store), managers.outbox);
}

/** Builds the storage over an open store. */
export function sampleRecordStorage(store: Store): SampleRecordStorage {
  if (store.engine === "sqlite") return new SqliteSampleRecordStorage(store.db);
  return new PostgresSampleRecordStorage(
    store.databases[SAMPLE_RECORDS_CHAIN.area],
    store.nowSql === undefined ? {} : { nowSql: store.nowSql },
  );
}

/** This worker in a test's hands. */
export interface TestContainer {
  readonly store: Store;
  readonly managers: Managers;
  readonly topics: Topics;
  readonly sampleRecords: SampleRecordManager;
  readonly handler: HandleSampleRecordHandler;
  close(): Promise<void>;
}

/** What a test may set. */
export interface TestOptions {
  /** Default one that only logs, to nobody. */
  readonly effect?: HandleSampleRecordEffect;
  /** An open, migrated store, closed by whoever opened it. Default a fresh `:memory:` one. */
  readonly store?: Store;
  /** Default the system clock. */
  readonly clock?: Clock;
  /** Default 5 s. */
  readonly timeoutMs?: number;
}

const DAY_MS = 86_400_000;

/** Builds all of it for tests. */
export async function forTests(options: TestOptions = {}): Promise<TestContainer> {
  const { clock = systemClock, effect = new LoggedEffect(silentLogger), timeoutMs = 5_000 } = options;
  const own = options.store === undefined ? new SqliteDatabase(":memory:", { clock }) : null;
  if (own !== null) await migrateSqliteUp(own, [...CHAINS, SAMPLE_RECORDS_CHAIN]);
  const store: Store = options.store ?? { engine: "sqlite", db: own as SqliteDatabase };
  const topics = new MemoryTopics();
  const managers = createManagers({
    storages: createStorages(store),
    topics,
    clock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [HANDLE_SAMPLE_RECORD],
    itemRetentionMs: 7 * DAY_MS,
    keyRetentionMs: 7 * DAY_MS,
    outboxRetentionMs: DAY_MS,
    markerRetentionMs: DAY_MS,
  });
  const records = sampleRecords({ store, managers });
  return {
    store,
    managers,
    topics,
    sampleRecords: records,
    handler: new HandleSampleRecordHandler({ sampleRecords: records, effect, timeoutMs }),
    async close() {
      await topics.close();
      own?.close();
    },
  };
}
