/**
 * Whether the worker works: what `/healthz` answers, from memory alone.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Probe } from "./types.ts";

/** How a `Health` runs. */
export interface HealthOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly heartbeatMs: number;
}

// Detected at the end of a poll, so a window and a half is reported within two.
const WINDOWS = 1.5;
const TICK_MS = 500;
const BLOCKED_MS = 1_000;

/** Keeps the loop's beat and the fate of its statements. */
export class Health {
  readonly #o: HealthOptions;
  #beatMs: number;
  #tickMs: number;
  #okMs: number;
  #pendingSinceMs: number | null = null;
  #failure: string | null = null;

  constructor(options: HealthOptions) {
    this.#o = options;
    this.#beatMs = this.#tickMs = this.#okMs = options.clock.monotonic();
  }

  /** The loop turned. */
  beat(): void {
    this.#beatMs = this.#o.clock.monotonic();
  }

  /** A statement of the loop is on its way. */
  asking(): void {
    this.#pendingSinceMs = this.#o.clock.monotonic();
    this.#beatMs = this.#pendingSinceMs;
  }

  /** A statement of the loop was answered. */
  answered(): void {
    this.#pendingSinceMs = null;
    this.#okMs = this.#o.clock.monotonic();
    this.beat();
    if (this.#failure !== null) this.#o.logger.info("database.back");
    this.#failure = null;
    this.#o.metrics.set("laneway_database_up", 1);
  }

  /** A statement of the loop failed. One log line for each change of state, not for each failure. */
  failed(error: unknown): void {
    this.#pendingSinceMs = null;
    this.beat();
    if (this.#failure === null) this.#o.logger.warn("database.out_of_reach", { error: describeError(error) });
    this.#failure = describeError(error);
    this.#o.metrics.set("laneway_database_up", 0);
  }

  /** Ticks until `stop`: tells a stuck loop from a blocked event loop, and names what ran while it was blocked. */
  async watch(stop: AbortSignal, loop: { runningKinds(): string[]; readonly deaf: number }): Promise<void> {
    const { clock, logger, metrics } = this.#o;
    while (!stop.aborted) {
      const before = clock.monotonic();
      await clock.sleep(TICK_MS, stop);
      this.#tickMs = clock.monotonic();
      // Counted, not unhealthy: the worker still works with the slots that are left.
      metrics.set("laneway_deaf_handlers", loop.deaf);
      const blockedMs = this.#tickMs - before - TICK_MS;
      if (blockedMs < BLOCKED_MS || stop.aborted) continue;
      logger.warn("event_loop.blocked", {
        blockedMs: Math.round(blockedMs),
        running: [...new Set(loop.runningKinds())].join(",") || "none",
        hint: "a handler that never yields stops lease renewal; let it await, or move its work to another thread",
      });
    }
  }

  /** What `/healthz` answers. */
  probe(): Probe {
    const limitMs = this.#o.heartbeatMs * WINDOWS;
    const reasons: string[] = [];
    // Against the last tick, not against now: when the event loop was blocked both are old and neither is at fault.
    if (this.#tickMs - this.#beatMs > limitMs && this.#pendingSinceMs === null) {
      reasons.push(`the claim loop has not turned for ${Math.round((this.#tickMs - this.#beatMs) / 1000)} s`);
    }
    if (this.#failure !== null && this.#tickMs - this.#okMs >= limitMs) {
      reasons.push(`the database is out of reach: ${this.#failure}`);
    } else if (this.#pendingSinceMs !== null && this.#tickMs - this.#pendingSinceMs >= limitMs) {
      reasons.push(
        `the database has not answered for ${Math.round((this.#tickMs - this.#pendingSinceMs) / 1000)} s`,
      );
    }
    return { ok: reasons.length === 0, reasons };
  }
}
