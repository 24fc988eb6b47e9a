/**
 * Keeps the leases of everything that runs: one statement an interval for all of them, and the worker's own fence, which
 * stops a run before anybody else may have claimed its item.
 *
 * A lease is trusted for half its length, counted from when its last successful renewal was *sent*. A refusal is
 * definitive; any other failure is tried again soon, and elapsed time decides, never a count.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";
import type { Logger } from "../core/log.ts";
import { limitRepeats } from "../core/log_limit.ts";
import type { Metrics } from "../core/metrics.ts";
import type { WorkManager } from "../work/manager.ts";
import type { Run } from "./run.ts";

/** What a lease keeper is made of. */
export interface LeaseKeeperOptions {
  readonly work: WorkManager;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly leaseMs: number;
  /** Told of each renewal's fate, for the health probe. */
  readonly onRenewal: (error: unknown | null) => void;
  /** Told when there is nothing to renew: what renewals met before says little any more. */
  readonly onIdle: () => void;
}

const RETRIES_A_LEASE = 24;
const SHORTEST_BOUND_MS = 500;
const REPEAT_MS = 10_000;

/** Renews, and aborts what cannot be renewed. */
export class LeaseKeeper {
  readonly #o: LeaseKeeperOptions;
  readonly #runs = new Set<Run>();
  readonly #stop = new AbortController();
  /** For what repeats as long as the database is away. */
  readonly #limited: Logger;
  #done: Promise<unknown> = Promise.resolve();

  constructor(options: LeaseKeeperOptions) {
    this.#o = options;
    this.#limited = limitRepeats(options.logger, { clock: options.clock, intervalMs: REPEAT_MS });
  }

  /** Starts both loops. */
  start(): void {
    this.#done = Promise.all([this.#renewLoop(), this.#watchLoop()]);
  }

  /** Keeps `run`'s lease until it is removed. */
  add(run: Run): void {
    this.#runs.add(run);
  }

  /** Lets a lease go: its item's settlement was acknowledged, refused or given up. */
  remove(run: Run): void {
    this.#runs.delete(run);
  }

  /** Stops both loops. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #renewLoop(): Promise<void> {
    const { clock, leaseMs } = this.#o;
    const intervalMs = leaseMs / 3;
    let pauseMs = intervalMs;
    while (!this.#stop.signal.aborted) {
      await clock.sleep(pauseMs, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      const sentMs = clock.monotonic();
      const renewed = await this.#renewAll();
      // After a failure soon again: half a lease is lost a sixth of it after the interval.
      pauseMs = renewed ? Math.max(intervalMs - (clock.monotonic() - sentMs), 0) : leaseMs / RETRIES_A_LEASE;
    }
  }

  /** One statement for every running item. False when it failed, or was not answered within its bound. */
  async #renewAll(): Promise<boolean> {
    const { clock, work, leaseMs } = this.#o;
    // What is finished under its claim has no lease any more, and may have been moved away by the next look.
    const runs = [...this.#runs].filter((run) => run.cause !== "LEASE_LOST" && !run.released && !run.finishedElsewhere);
    if (runs.length === 0) {
      this.#o.onIdle();
      return true;
    }
    const sentAt = { monotonicMs: clock.monotonic(), wallMs: clock.now() };
    const answered = new AbortController();
    let ok = false;
    const renewal = work.extendLeases(runs.map((run) => run.claimed), leaseMs)
      .then((renewed) => {
        ok = true;
        this.#apply(runs, renewed, sentAt);
      })
      .catch((error) => this.#failed(runs.length, error))
      .finally(() => answered.abort());
    // Well under the interval, so that one lost answer leaves time to ask again. An answer later than this still counts,
    // by when it was sent.
    const boundMs = Math.max(leaseMs / 12, Math.min(SHORTEST_BOUND_MS, leaseMs / 3));
    using waiting = eitherOf(answered.signal, this.#stop.signal);
    await Promise.race([renewal, clock.sleep(boundMs, waiting.signal)]);
    return ok;
  }

  #apply(
    runs: readonly Run[],
    renewed: readonly boolean[],
    sentAt: { monotonicMs: number; wallMs: number },
  ): void {
    this.#o.onRenewal(null);
    runs.forEach((run, i) => {
      if (renewed[i] === true) {
        run.renewed(sentAt);
        this.#o.metrics.count("laneway_lease_renewals_total", { outcome: "renewed" });
      } else if (this.#runs.has(run)) {
        this.#o.metrics.count("laneway_lease_renewals_total", { outcome: "refused" });
        void this.#refused(run);
      }
    });
  }

  #failed(count: number, error: unknown): void {
    this.#o.onRenewal(error);
    this.#o.metrics.count("laneway_lease_renewals_total", { outcome: "failed" }, count);
    this.#limited.warn("lease.renewal_failed", { items: count, error: describeError(error) });
  }

  /** Refused is definitive, but an item finished under this very claim only waits for its answer: let it end. */
  async #refused(run: Run): Promise<void> {
    const { ctx, item } = run.claimed;
    try {
      const state = await this.#o.work.readClaim(ctx, item);
      if (!this.#runs.has(run)) return;
      const ours = state !== null && state.token === item.claimToken;
      // Where completed items are not kept, the row is gone with the completion whose answer is on its way.
      const dropped = state === null && run.handlerSettled;
      const finished = ours && (state.status === "done" || state.status === "failed");
      if (finished) run.finishedUnderClaim = true;
      if (dropped || finished) {
        run.finishedElsewhere = true;
        return;
      }
    } catch {
      // Not to be read: the refusal stands.
    }
    this.#lose(run, "another claim holds the item, or its lease has passed");
  }

  async #watchLoop(): Promise<void> {
    const { leaseMs, clock } = this.#o;
    while (!this.#stop.signal.aborted) {
      const oldest = Math.max(0, ...[...this.#runs].map((run) => run.unrenewedMs));
      // Looked at often, as a host may have slept; exactly at the time when it is near.
      await clock.sleep(Math.max(Math.min(leaseMs / 12, leaseMs / 2 - oldest), 10), this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      for (const run of this.#runs) {
        if (run.unrenewedMs >= leaseMs / 2 && !run.finishedElsewhere) {
          this.#lose(run, `its lease was not renewed for ${Math.round(run.unrenewedMs)} ms`);
        }
      }
    }
  }

  #lose(run: Run, why: string): void {
    if (run.cause === "LEASE_LOST") return;
    const { item } = run.claimed;
    const first = run.cause === null;
    run.abort("LEASE_LOST", `the lease of item ${item.id} was lost: ${why}`);
    run.released = true;
    this.#runs.delete(run);
    if (!first) return;
    this.#o.metrics.count("laneway_leases_lost_total", { kind: item.kind });
    this.#o.logger.warn("lease.lost", { item: item.id, kind: item.kind, attempt: item.attempts, why });
  }
}
