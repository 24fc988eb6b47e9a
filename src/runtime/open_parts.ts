/**
 * The one place where a process is wired: store, storages, managers.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { MigrationChain } from "../db/chain.ts";
import { createManagers } from "../managers.ts";
import { CHAINS, FAIR_CHAIN } from "../migrations.ts";
import { createStorages } from "../storages.ts";
import { type OpenParts, ownEnv, versionOf, type WorkerDefinition } from "./definition.ts";
import { openStore } from "./open_store.ts";
import type { Settings } from "./settings.ts";

/** What a process brings along. */
export interface OpenPartsOptions {
  readonly definition: WorkerDefinition;
  readonly settings: Settings;
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly stop?: { readonly stopping: AbortSignal };
  /** What the store must be current with. Default `chainsOf(definition)`. */
  readonly chains?: readonly MigrationChain[];
}

/** Every chain of a worker's store but the optional ones, in the order they are applied. */
export function chainsOf(definition: Pick<WorkerDefinition, "chains">): MigrationChain[] {
  return [...CHAINS, ...definition.chains ?? []];
}

/** What a worker with these settings needs of its store: also the index of the claim order it is told to use. */
export function servedChainsOf(
  definition: Pick<WorkerDefinition, "chains">,
  settings: Pick<Settings, "claimOrder">,
): MigrationChain[] {
  return [...chainsOf(definition), ...(settings.claimOrder === "fair" ? [FAIR_CHAIN] : [])];
}

/**
 * Opens the store and builds the managers.
 *
 * @param onWaiting When given, a database that is down is waited for; see `openStore`.
 * @returns Null when a stop signal ended the wait.
 * @throws As `openStore`.
 */
export async function openParts(
  options: OpenPartsOptions,
  onWaiting?: (reason: string | null) => void,
): Promise<OpenParts | null> {
  const { definition, settings, clock, logger, metrics } = options;
  if (definition.open !== undefined) {
    const signal = options.stop?.stopping;
    const env = ownEnv(definition, options.env);
    return await definition.open({
      settings,
      env,
      clock,
      logger,
      metrics,
      ...(signal === undefined ? {} : { signal }),
    });
  }
  const open = await openStore({
    settings,
    chains: options.chains ?? chainsOf(definition),
    clock,
    logger,
    metrics,
    applicationName: versionOf(definition),
    signal: options.stop?.stopping,
    onWaiting,
  });
  if (open === null) return null;
  const { store, topics } = open;
  const storages = createStorages(store);
  const managers = createManagers({
    storages,
    topics,
    clock,
    logger,
    metrics,
    kinds: definition.kinds,
    itemRetentionMs: settings.itemRetentionMs,
    keyRetentionMs: settings.keyRetentionMs,
    outboxRetentionMs: settings.outboxRetentionMs,
    markerRetentionMs: settings.markerRetentionMs,
    sessionIdleMs: settings.sessionIdleMs,
    sessionLifetimeMs: settings.sessionLifetimeMs,
    payloadLimitBytes: settings.payloadLimitBytes,
  });
  const env = ownEnv(definition, options.env);
  return {
    parts: { settings, env, store, storages, managers, topics, clock, logger, metrics },
    cache: open.cache,
    name: open.name,
    ping: () => open.ping(),
    close: () => open.close(),
  };
}
