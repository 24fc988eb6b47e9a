/**
 * What a running worker is made of, and what it answers to.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import type { AppContext, RequestContext } from "../core/context.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Cache } from "../infra/cache.ts";
import type { Topics } from "../infra/topics.ts";
import type { Managers } from "../managers.ts";
import type { ClaimOrder, WorkHandler } from "../work/types.ts";

/** One step of the sweep: idempotent, bounded, returning how many rows it worked on. */
export interface SweepStep {
  /** Kebab case; the label of its metrics and its row in `queue.sweep_steps`. */
  readonly name: string;
  /** What workers share the step's turn by; default its name. Another where two builds do different work under one name. */
  readonly turn?: string;
  /** The name of the built-in step it goes before; default behind all of them. */
  readonly before?: string;
  /** Its turn comes once in so many intervals of the sweep; default 1. For what can wait, as purges can. */
  readonly every?: number;
  /** Runs one bounded piece. A full piece (`more`) is run again in the same pass while its time budget lasts. */
  run(rctx: RequestContext): Promise<{ readonly count: number; readonly more: boolean }>;
}

/** Everything a worker's loop needs, already built. */
export interface WorkerRuntimeOptions {
  /** Names this process in `claimed_by` and in the liveness key, for example `shipment-notifier@host/1234`. */
  readonly worker: string;
  /** Carried by every context this worker works under. */
  readonly app: AppContext;
  /** The lane whose items it takes. */
  readonly lane: string;
  /** The kinds to claim; every one has a handler. */
  readonly kinds: readonly string[];
  /** One for each kind, and maybe for more. */
  readonly handlers: readonly WorkHandler[];
  /** In which order it claims; `fair` needs the optional chain `fair`. Default `due`. */
  readonly claimOrder?: ClaimOrder;
  /** The managers it works through. */
  readonly managers: Managers;
  /** Asks the storage whether it answers; rejects when it does not. Used by readiness. */
  readonly ping: () => Promise<void>;
  /** Where it hears of new work. */
  readonly topics: Topics;
  /** Where it publishes that it lives. */
  readonly cache: Cache;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** Counts and gauges. */
  readonly metrics: Metrics;
  /** Whether each run has a span; it is exported where the process has OpenTelemetry on. Default false. */
  readonly traces?: boolean;
  /** Handlers at once, at least 1. */
  readonly capacity: number;
  /**
   * How long an item claimed ahead of the free slots may be expected to wait for one, milliseconds; 0 claims for free slots
   * alone. Default 50.
   */
  readonly claimAheadMs?: number;
  /** How long a claim holds unrenewed, milliseconds. */
  readonly leaseMs: number;
  /** How long it waits for a hint before it looks itself, milliseconds. */
  readonly pollMs: number;
  /**
   * The longest such wait while hints are known to arrive (`Topics.listening`) and looks find nothing, milliseconds.
   * Default 30 000; not below `pollMs`.
   */
  readonly idlePollMs?: number;
  /** The window of its health, milliseconds; every fourth it publishes that it lives. */
  readonly heartbeatMs: number;
  /**
   * Whether it keeps house beside its work: the sweep and the relay. Default true; false for a worker whose store gives it
   * no right to.
   */
  readonly upkeep?: boolean;
  /** How often it sweeps, milliseconds; steps that can wait, and the gauges, once in several such intervals. */
  readonly sweepMs: number;
  /** How long running items may finish once it is told to stop, milliseconds; 0 aborts them at once. */
  readonly drainGraceMs: number;
  /** A container's own steps, each before the built-in step it names or behind all of them; the gauges come last. */
  readonly sweepSteps?: readonly SweepStep[];
  /** Counts parked records, for the gauge. */
  readonly countParked?: (rctx: RequestContext) => Promise<number>;
}

/** What a probe answers: `reasons` says in plain words what is wrong. Never a secret, never a stack. */
export interface Probe {
  /** Whether all is well. */
  readonly ok: boolean;
  /** What is not; empty when all is well. */
  readonly reasons: readonly string[];
}

/** How a drain ended. */
export interface DrainReport {
  /** Items that finished within the grace. */
  readonly finished: number;
  /** Items aborted and handed back, uncharged. */
  readonly released: number;
  /** Items that could not be handed back: their leases are left to expire. */
  readonly left: number;
}

/** A running worker. */
export interface WorkerRuntime {
  /** Starts the loop, the lease keeper, the heartbeat and the sweep. Never throws: it waits for its database. */
  start(): void;
  /** Stops claiming and drains; a second call returns the same promise. Bounded even with the database down. */
  drain(): Promise<DrainReport>;
  /** Skips what is left of the drain grace. */
  skipGrace(): void;
  /** In-memory: whether the loop turns and the database was reached lately. */
  health(): Probe;
  /** Asks the storage; off while starting and draining. */
  ready(): Promise<Probe>;
}
