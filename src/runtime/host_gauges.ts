/**
 * What workers with a database export of hosts, which nobody can scrape.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import type { Metrics } from "../core/metrics.ts";
import type { WorkManager } from "../work/manager.ts";

/** Beyond so many hosts the rest is not exported: every host is a label. */
const MAX_HOSTS = 200;
const AGE = "laneway_host_heartbeat_age_seconds";
const IN_FLIGHT = "laneway_host_in_flight";

/** Sets the gauges of hosts, and takes away those of hosts that are gone or switched off. */
export class HostGauges {
  #shown = new Set<string>();
  #aged = new Set<string>();

  /** Reads and sets. @throws As `WorkManager.readHosts`; the gauges stay as they are. */
  async update(rctx: RequestContext, work: Pick<WorkManager, "readHosts">, metrics: Metrics): Promise<void> {
    const hosts = await work.readHosts(rctx, MAX_HOSTS);
    const [shown, aged] = [new Set<string>(), new Set<string>()];
    for (const { name, enabled, heartbeatAgeSeconds, inFlight } of hosts) {
      shown.add(name);
      metrics.set(IN_FLIGHT, inFlight, { host: name });
      // One that is switched off is silent on purpose: nobody is to be told for ever.
      if (heartbeatAgeSeconds === null || !enabled) continue;
      aged.add(name);
      metrics.set(AGE, heartbeatAgeSeconds, { host: name });
    }
    for (const host of this.#shown) if (!shown.has(host)) metrics.drop?.(IN_FLIGHT, { host });
    for (const host of this.#aged) if (!aged.has(host)) metrics.drop?.(AGE, { host });
    [this.#shown, this.#aged] = [shown, aged];
  }
}
