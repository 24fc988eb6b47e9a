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
  silentLogger,
  SqliteDatabase,
  type Store,
  systemClock,
  type Topics,
  type WorkerParts,
} from "../../mod.ts";
import { NoopHandler } from "./handler.ts";
import { NOOP } from "./kind.ts";

/** Builds the handlers. The sweep comes with every worker. */
export function build(): WorkerParts {
  return { handlers: [new NoopHandler()] };
}

/** This worker in a test's hands. */
export interface TestContainer {
  readonly store: Store;
  readonly managers: Managers;
  readonly topics: Topics;
  readonly parts: WorkerParts;
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;

/** Builds all of it for tests, on `:memory:` or on an open, migrated store of theirs. */
export async function forTests(options: { store?: Store; clock?: Clock } = {}): Promise<TestContainer> {
  const { clock = systemClock } = options;
  const own = options.store === undefined ? new SqliteDatabase(":memory:", { clock }) : null;
  if (own !== null) await migrateSqliteUp(own, CHAINS);
  const store: Store = options.store ?? { engine: "sqlite", db: own as SqliteDatabase };
  const topics = new MemoryTopics();
  const managers = createManagers({
    storages: createStorages(store),
    topics,
    clock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [NOOP],
    itemRetentionMs: 7 * DAY_MS,
    keyRetentionMs: 7 * DAY_MS,
    outboxRetentionMs: DAY_MS,
    markerRetentionMs: DAY_MS,
  });
  return {
    store,
    managers,
    topics,
    parts: build(),
    async close() {
      await topics.close();
      own?.close();
    },
  };
}
