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
  type Storages,
  type Store,
  type SweepStep,
  systemClock,
  type Topics,
  type WorkerParts,
  type WorkKind,
} from "../../mod.ts";
import { createEndpointManager } from "./endpoints/manager.ts";
import { PostgresEndpointStorage } from "./endpoints/storage/postgres.ts";
import { SqliteEndpointStorage } from "./endpoints/storage/sqlite.ts";
import type { EndpointManager, EndpointPolicy, EndpointStorage } from "./endpoints/types.ts";
import { NotifyShipmentHandler } from "./handler.ts";
import { NOTIFY_SHIPMENT, type NotifyShipmentPayload } from "./kind.ts";
import { newWebhookSecret, NO_SECRET, type NotifierSettings, readNotifierSettings } from "./settings.ts";
import { SHIPMENTS_CHAIN } from "./shipments/chain.ts";
import { createShipmentManager, type Relay, type ShipmentManagerOptions } from "./shipments/manager.ts";
import { PostgresShipmentStorage } from "./shipments/storage/postgres.ts";
import { SqliteShipmentStorage } from "./shipments/storage/sqlite.ts";
import type { ShipmentManager, ShipmentStorage } from "./shipments/types.ts";
import { shipmentSweepSteps } from "./sweep_steps.ts";
import { WebhookSender } from "./webhook.ts";

/** What a build may be given beside the parts. */
export interface BuildOptions {
  /** Where webhooks really go; default their own URLs. */
  readonly route?: (url: string) => string;
  /** Default `NOTIFY_SHIPMENT`. */
  readonly kind?: WorkKind<NotifyShipmentPayload>;
  /** When an endpoint counts as down and how often it is tried then; default `DEFAULT_ENDPOINT_POLICY`. */
  readonly endpointPolicy?: Partial<EndpointPolicy>;
}

/**
 * Builds this worker's handlers over open parts.
 *
 * @throws {UsageError} Its settings do not serve: see `readNotifierSettings`.
 */
export function build(parts: Parts, options: BuildOptions = {}): WorkerParts {
  const { store, managers, clock, logger } = parts;
  const settings = readNotifierSettings(parts.env);
  const { deletedRetentionMs, webhookSecret } = settings;
  const shipments = shipmentManager(store, managers.outbox, { deletedRetentionMs });
  const endpoints = createEndpointManager(endpointStorage(store), options.endpointPolicy);
  if (webhookSecret === null) logger.warn("webhooks.no_secret", { fix: NO_SECRET });
  return {
    handlers: [notifyHandler(settings, { shipments, endpoints, clock }, options)],
    sweepSteps: shipmentSweepSteps(shipments, managers.tenancy),
    countParked: (rctx) => shipments.countParked(rctx),
  };
}

/** Builds the shipment storage over an open store. */
export function shipmentStorage(store: Store): ShipmentStorage {
  if (store.engine === "sqlite") return new SqliteShipmentStorage(store.db);
  return new PostgresShipmentStorage(
    store.databases[SHIPMENTS_CHAIN.area],
    store.nowSql === undefined ? {} : { nowSql: store.nowSql },
  );
}

/** Builds the endpoint storage over an open store. */
export function endpointStorage(store: Store): EndpointStorage {
  if (store.engine === "sqlite") return new SqliteEndpointStorage(store.db);
  return new PostgresEndpointStorage(
    store.databases[SHIPMENTS_CHAIN.area],
    store.nowSql === undefined ? {} : { nowSql: store.nowSql },
  );
}

/** Builds the shipment manager over an open store, for commands that need no handler. */
export function shipmentManager(store: Store, outbox: Relay, options?: ShipmentManagerOptions): ShipmentManager {
  return createShipmentManager(shipmentStorage(store), outbox, options);
}

interface HandlerParts {
  readonly shipments: ShipmentManager;
  readonly endpoints: EndpointManager;
  readonly clock: Clock;
}

function notifyHandler(
  settings: Pick<NotifierSettings, "webhookSecret" | "webhookTimeoutMs">,
  { shipments, endpoints, clock }: HandlerParts,
  options: BuildOptions,
): NotifyShipmentHandler {
  const { webhookSecret: secret, webhookTimeoutMs: timeoutMs } = settings;
  const webhooks = secret === null ? null : new WebhookSender({ secret, timeoutMs, clock, ...options });
  return new NotifyShipmentHandler({ shipments, endpoints, webhooks, ...options });
}

/** This worker in a test's hands. */
export interface TestContainer {
  readonly store: Store;
  readonly storages: Storages;
  readonly managers: Managers;
  readonly topics: Topics;
  readonly shipments: ShipmentManager;
  readonly endpoints: EndpointManager;
  /** What its sweep adds. */
  readonly sweepSteps: readonly SweepStep[];
  readonly handler: NotifyShipmentHandler;
  /** The secret its webhooks are signed with. */
  readonly secret: string;
  close(): Promise<void>;
}

/** What a test may set. */
export interface TestOptions extends BuildOptions {
  /** An open, migrated store, closed by whoever opened it. Default a fresh `:memory:` one. */
  readonly store?: Store;
  /** Default the system clock. */
  readonly clock?: Clock;
  /** Default 2 s. */
  readonly webhookTimeoutMs?: number;
  readonly shipmentOptions?: ShipmentManagerOptions;
}

const DAY_MS = 86_400_000;

/** Builds all of it for tests, on `:memory:` or on a store of theirs. */
export async function forTests(options: TestOptions = {}): Promise<TestContainer> {
  const { clock = systemClock, kind = NOTIFY_SHIPMENT } = options;
  const store = options.store ?? await memoryStore(clock);
  const storages = createStorages(store);
  const topics = new MemoryTopics();
  const managers = createManagers({
    storages,
    topics,
    clock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [kind],
    itemRetentionMs: 7 * DAY_MS,
    keyRetentionMs: 7 * DAY_MS,
    outboxRetentionMs: DAY_MS,
    markerRetentionMs: 86_400_000,
  });
  const shipments = shipmentManager(store, managers.outbox, options.shipmentOptions);
  const endpoints = createEndpointManager(endpointStorage(store), options.endpointPolicy);
  const settings = { webhookSecret: newWebhookSecret(), webhookTimeoutMs: options.webhookTimeoutMs ?? 2_000 };
  return {
    store,
    storages,
    managers,
    topics,
    shipments,
    endpoints,
    sweepSteps: shipmentSweepSteps(shipments, managers.tenancy),
    handler: notifyHandler(settings, { shipments, endpoints, clock }, options),
    secret: settings.webhookSecret,
    async close() {
      await topics.close();
      if (options.store === undefined && store.engine === "sqlite") store.db.close();
    },
  };
}

async function memoryStore(clock: Clock): Promise<Store> {
  const db = new SqliteDatabase(":memory:", { clock });
  await migrateSqliteUp(db, [...CHAINS, SHIPMENTS_CHAIN]);
  return { engine: "sqlite", db };
}
