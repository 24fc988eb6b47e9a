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
// A database that answers every other statement is not back: said once it has not failed for this long.
const QUIET_MS = 1_000;

/** Whose statements are watched. */
export type Source = "claim" | "renewal";

interface SourceState {
  okMs: number;
  /** What the last statement failed with; null when it was answered, or when there is nothing to ask for any more. */
  failure: string | null;
  failedMs: number;
  /** Whether the log's last word is that the database is out of reach. */
  saidDown: boolean;
}

/** Keeps the loop's beat and the fate of its statements. */
export class Health {
  readonly #o: HealthOptions;
  #beatMs: number;
  #tickMs: number;
  #pendingSinceMs: number | null = null;
  #renewing = false;
  readonly #sources: Record<Source, SourceState>;

  constructor(options: HealthOptions) {
    this.#o = options;
    const nowMs = this.#beatMs = this.#tickMs = options.clock.monotonic();
    const fresh = (): SourceState => ({ okMs: nowMs, failure: null, failedMs: nowMs, saidDown: false });
    this.#sources = { claim: fresh(), renewal: fresh() };
  }

  /** The loop turned. */
  beat(): void {
    this.#beatMs = this.#o.clock.monotonic();
  }

  /** The loop's claim is on its way. */
  asking(): void {
    const nowMs = this.#pendingSinceMs = this.#o.clock.monotonic();
    // A full worker does not ask for long: that is no sign of an outage when its next claim fails.
    if (this.#sources.claim.failure === null) this.#sources.claim.okMs = nowMs;
    this.beat();
  }

  /** A claim or a renewal was answered. */
  answered(source: Source): void {
    const state = this.#sources[source];
    state.okMs = this.#o.clock.monotonic();
    state.failure = null;
    if (source === "renewal") this.#renewing = true;
    // A failure must not outlast what met it, or an idle worker would never be well again.
    else if (!this.#renewing) this.#sources.renewal.failure = null;
    this.#note(source);
  }

  /** A claim or a renewal failed. One log line for each lasting change of state, not for each failure. */
  failed(source: Source, error: unknown): void {
    const state = this.#sources[source];
    const failure = describeError(error);
    if (!state.saidDown) this.#o.logger.warn("database.out_of_reach", { source, error: failure });
    state.saidDown = true;
    // Claims follow each other closely, renewals do not: from the last good one on, a single failure would be an outage.
    if (source === "renewal") {
      this.#renewing = true;
      if (state.failure === null) state.okMs = this.#o.clock.monotonic();
    }
    state.failure = failure;
    state.failedMs = this.#o.clock.monotonic();
    this.#note(source);
  }

  /** Nothing is renewed at present: the next claim that is answered speaks for renewals too. */
  idle(): void {
    this.#renewing = false;
  }

  #note(source: Source): void {
    if (source === "claim") {
      this.#pendingSinceMs = null;
      this.beat();
    }
    const up = Object.values(this.#sources).every((state) => state.failure === null);
    this.#o.metrics.set("laneway_database_up", up ? 1 : 0);
  }

  #sayBack(): void {
    for (const [source, state] of Object.entries(this.#sources)) {
      if (!state.saidDown || state.failure !== null || this.#tickMs - state.failedMs < QUIET_MS) continue;
      state.saidDown = false;
      this.#o.logger.info("database.back", { source });
    }
  }

  /** Ticks until `stop`: tells a stuck loop from a blocked event loop, and names what ran while it was blocked. */
  async watch(stop: AbortSignal, loop: { kindsSinceLastAsked(): string[]; readonly deaf: number }): Promise<void> {
    const { clock, logger, metrics } = this.#o;
    while (!stop.aborted) {
      const before = clock.monotonic();
      await clock.sleep(TICK_MS, stop);
      this.#tickMs = clock.monotonic();
      this.#sayBack();
      // Counted, not unhealthy: the worker still works with the slots that are left.
      metrics.set("laneway_deaf_handlers", loop.deaf);
      const kinds = loop.kindsSinceLastAsked();
      const blockedMs = this.#tickMs - before - TICK_MS;
      if (blockedMs < BLOCKED_MS || stop.aborted) continue;
      logger.warn("event_loop.blocked", {
        blockedMs: Math.round(blockedMs),
        running: kinds.join(",") || "none",
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
    for (const [source, state] of Object.entries(this.#sources)) {
      if (state.failure !== null && this.#tickMs - state.okMs >= limitMs) {
        reasons.push(`the database is out of reach for the ${source}: ${state.failure}`);
      }
    }
    if (this.#pendingSinceMs !== null && this.#tickMs - this.#pendingSinceMs >= limitMs) {
      reasons.push(`the database has not answered for ${Math.round((this.#tickMs - this.#pendingSinceMs) / 1000)} s`);
    }
    return { ok: reasons.length === 0, reasons };
  }
}
