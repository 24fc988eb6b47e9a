/**
 * Publishes that this worker lives, as a cache key for people and dashboards. Best effort, bounded by its interval: a
 * failed publish is logged and changes nothing, since the queue and its leases live in the database.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import type { WorkerRuntimeOptions } from "./types.ts";

/** How many intervals a key outlives its last beat. */
const INTERVALS_KEPT = 3;

/** Publishes every interval until `stop`, then takes the key away. Never throws. */
export async function publishLiveness(options: WorkerRuntimeOptions, stop: AbortSignal): Promise<void> {
  const { cache, clock, worker, heartbeatMs, lane, kinds, logger } = options;
  const value = JSON.stringify({ lane, kinds, app: options.app.version });
  let failing = false;
  while (!stop.aborted) {
    const settled = new AbortController();
    const publish = cache.set("WORKER_LIVENESS", worker, value, heartbeatMs * INTERVALS_KEPT)
      .then(() => {
        failing = false;
      })
      .catch((error) => {
        if (!failing) logger.warn("heartbeat.publish_failed", { error: describeError(error) });
        failing = true;
      })
      .finally(() => settled.abort());
    await Promise.race([publish, clock.sleep(heartbeatMs, AbortSignal.any([settled.signal, stop]))]);
    await clock.sleep(heartbeatMs, stop);
  }
}

/** Takes the key away, waiting no longer than `boundMs`. */
export async function goOffline(options: WorkerRuntimeOptions, boundMs: number): Promise<void> {
  const settled = new AbortController();
  const gone = options.cache.delete("WORKER_LIVENESS", options.worker).catch(() => {}).finally(() => settled.abort());
  await Promise.race([gone, options.clock.sleep(boundMs, settled.signal)]);
}
