/**
 * Publishes that this worker lives, as a cache key for people and dashboards. Best effort, bounded by a heartbeat: a
 * failed publish is logged and changes nothing, since the queue and its leases live in the database.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";
import type { WorkerRuntimeOptions } from "./types.ts";

/** Heartbeats from one publish to the next: people and dashboards look at it, nothing is decided by it. */
const PUBLISH_EVERY = 4;
/** How many publishes may be missed until the key is gone. */
const INTERVALS_KEPT = 3;

/** What a worker tells of itself. */
export interface Liveness {
  /** Its release, `<name>@<release>`. */
  readonly app: string;
  /** The lane it serves. */
  readonly lane: string;
  /** The kinds it takes. */
  readonly kinds: readonly string[];
  /** How many items it runs at once. */
  readonly capacity: number;
}

function encodeLiveness({ app, lane, kinds, capacity }: WorkerRuntimeOptions): string {
  const liveness: Liveness = { app: app.version, lane, kinds, capacity };
  return JSON.stringify(liveness);
}

/** Reads what a worker, maybe of another release, told of itself; null when it cannot be read. */
export function decodeLiveness(value: string): Liveness | null {
  try {
    const told = JSON.parse(value) as Partial<Record<keyof Liveness, unknown>>;
    return {
      app: String(told.app ?? "unknown"),
      lane: String(told.lane ?? "unknown"),
      kinds: Array.isArray(told.kinds) ? told.kinds.map(String) : [],
      capacity: Number(told.capacity ?? NaN),
    };
  } catch {
    return null;
  }
}

/** Publishes every fourth heartbeat until `stop`, then takes the key away. Never throws. */
export async function publishLiveness(options: WorkerRuntimeOptions, stop: AbortSignal): Promise<void> {
  const { cache, clock, worker, heartbeatMs, logger } = options;
  const value = encodeLiveness(options);
  const everyMs = heartbeatMs * PUBLISH_EVERY;
  let failing = false;
  while (!stop.aborted) {
    const settled = new AbortController();
    const publish = cache.set("WORKER_LIVENESS", worker, value, everyMs * INTERVALS_KEPT)
      .then(() => {
        failing = false;
      })
      .catch((error) => {
        if (!failing) logger.warn("heartbeat.publish_failed", { error: describeError(error) });
        failing = true;
      })
      .finally(() => settled.abort());
    using waiting = eitherOf(settled.signal, stop);
    await Promise.race([publish, clock.sleep(heartbeatMs, waiting.signal)]);
    await clock.sleep(everyMs, stop);
  }
}

/** Takes the key away, waiting no longer than `boundMs`. */
export async function goOffline(options: WorkerRuntimeOptions, boundMs: number): Promise<void> {
  const settled = new AbortController();
  const gone = options.cache.delete("WORKER_LIVENESS", options.worker).catch(() => {}).finally(() => settled.abort());
  await Promise.race([gone, options.clock.sleep(boundMs, settled.signal)]);
}
