/**
 * A running worker: the loop, the lease keeper, the sweep and the heartbeat, started together and drained in order.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import { describeError } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";
import { SettingsError } from "../core/errors.ts";
import { Health } from "./health.ts";
import { goOffline, publishLiveness } from "./heartbeat.ts";
import { LeaseKeeper } from "./lease_keeper.ts";
import { Loop } from "./loop.ts";
import { relayOnHints } from "./relay_hint.ts";
import { ABORT_GRACE_MS } from "./runs.ts";
import { giveBackOnce } from "./spare_memory.ts";
import { Sweeper } from "./sweep.ts";
import type { DrainReport, Probe, WorkerRuntime, WorkerRuntimeOptions } from "./types.ts";

/** How long the drain waits for aborted items to be handed back, and for the sweep to stop, milliseconds. */
const RELEASE_BOUND_MS = 5_000;
const STOP_BOUND_MS = 1_000;

/**
 * Builds a worker. Nothing runs until `start`.
 *
 * @throws {SettingsError} Two handlers of one kind, a kind to claim without a handler, or a sweep step before none there is.
 */
export function createWorkerRuntime(options: WorkerRuntimeOptions): WorkerRuntime {
  const known = options.handlers.map((handler) => handler.kind.name);
  const twice = known.find((name, i) => known.indexOf(name) !== i);
  if (twice !== undefined) throw new SettingsError(`Two handlers serve kind ${twice}: register one handler a kind`);
  const missing = options.kinds.find((kind) => !known.includes(kind));
  if (missing !== undefined) {
    throw new SettingsError(`Cannot serve kind ${missing}: this worker has handlers for ${known.join(", ") || "none"}`);
  }
  if (options.kinds.length === 0) throw new SettingsError("A worker serves at least one kind: register a handler");
  return new WorkerRuntimeImpl(options);
}

class WorkerRuntimeImpl implements WorkerRuntime {
  readonly #o: WorkerRuntimeOptions;
  readonly #rctx: RequestContext;
  readonly #health: Health;
  readonly #keeper: LeaseKeeper;
  readonly #loop: Loop;
  readonly #sweeper: Sweeper;
  readonly #stopBackground = new AbortController();
  readonly #skipGrace = new AbortController();
  #unsubscribe: () => void = () => {};
  #turning: Promise<void> = Promise.resolve();
  #background: Promise<unknown> = Promise.resolve();
  #drained: Promise<DrainReport> | null = null;
  #started = false;

  constructor(options: WorkerRuntimeOptions) {
    this.#o = options;
    const { clock, logger, metrics, heartbeatMs, leaseMs, managers } = options;
    const rctx = this.#rctx = managers.tenancy.requestContext(options.app);
    this.#health = new Health({ clock, logger, metrics, heartbeatMs });
    const onRenewal = (error: unknown | null) =>
      error === null ? this.#health.answered("renewal") : this.#health.failed("renewal", error);
    const onIdle = () => this.#health.idle();
    this.#keeper = new LeaseKeeper({ work: managers.work, clock, logger, metrics, leaseMs, onRenewal, onIdle });
    this.#loop = new Loop({ options, keeper: this.#keeper, health: this.#health, rctx });
    this.#sweeper = new Sweeper(options, rctx, () => this.#loop.wake());
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    const stop = this.#stopBackground.signal;
    this.#o.metrics.set("laneway_capacity", this.#o.capacity);
    this.#unsubscribe = this.#o.topics.subscribe("WORK_AVAILABLE", (event) => {
      const lane = event.type === "message" ? event.payload.lane : null;
      if (lane === null || lane === this.#o.lane) this.#loop.wake();
    });
    this.#keeper.start();
    this.#turning = this.#loop.turn();
    const upkeep = this.#o.upkeep ?? true;
    this.#background = Promise.all([
      ...(upkeep ? [this.#sweeper.run(stop), relayOnHints(this.#o, this.#rctx, stop)] : []),
      publishLiveness(this.#o, stop),
      this.#health.watch(stop, this.#loop.runs),
      this.#loop.runs.watchDeadlines(stop),
      giveBackOnce({ clock: this.#o.clock, stop, isBusy: () => this.#loop.runs.unsettled > 0 }),
    ]);
    this.#o.logger.info("worker.started", {
      worker: this.#o.worker,
      lane: this.#o.lane,
      kinds: this.#o.kinds.join(","),
      capacity: this.#o.capacity,
    });
  }

  drain(): Promise<DrainReport> {
    this.#drained ??= this.#drain();
    return this.#drained;
  }

  skipGrace(): void {
    this.#skipGrace.abort();
  }

  health(): Probe {
    return this.#health.probe();
  }

  async ready(): Promise<Probe> {
    if (!this.#started) return { ok: false, reasons: ["the worker is starting"] };
    if (this.#drained !== null) return { ok: false, reasons: ["the worker is draining"] };
    try {
      await this.#o.ping();
      return { ok: true, reasons: [] };
    } catch (error) {
      return { ok: false, reasons: [`the storage does not answer: ${describeError(error)}`] };
    }
  }

  async #drain(): Promise<DrainReport> {
    const { clock, logger, drainGraceMs } = this.#o;
    const loop = this.#loop;
    const { runs } = loop;
    const running = runs.unsettled;
    logger.info("worker.draining", { running, graceMs: drainGraceMs });
    this.#unsubscribe();
    loop.stopClaiming();
    await this.#within(drainGraceMs, this.#skipGrace.signal);
    runs.abortAll();
    await this.#within(ABORT_GRACE_MS + RELEASE_BOUND_MS);
    runs.giveUp();
    await this.#within(STOP_BOUND_MS);
    const unsettled = runs.unsettled;
    this.#stopBackground.abort();
    const bound = new AbortController();
    const stopped = Promise.all([this.#turning, this.#background, this.#keeper.stop()]).finally(() => bound.abort());
    await Promise.race([stopped, clock.sleep(STOP_BOUND_MS, bound.signal)]);
    await goOffline(this.#o, STOP_BOUND_MS);
    const report = { ...runs.drained, left: runs.drained.left + unsettled };
    logger.info("worker.drained", { ...report });
    return report;
  }

  /** Waits until nothing is unsettled, at most `ms`, less when `skip` aborts. */
  async #within(ms: number, skip?: AbortSignal): Promise<void> {
    if (this.#loop.runs.unsettled === 0 && !this.#started) return;
    const timer = new AbortController();
    using stop = eitherOf(timer.signal, skip);
    const done = Promise.all([this.#loop.runs.settled(stop.signal), this.#claimReturned(stop.signal)]);
    void this.#o.clock.sleep(ms, stop.signal).then(() => timer.abort());
    await done;
    timer.abort();
  }

  /** A claim that was on its way at the signal is waited for, so that what it brings is handed back. */
  async #claimReturned(stop: AbortSignal): Promise<void> {
    const stopped = new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve(), { once: true }));
    if (!stop.aborted) await Promise.race([this.#turning, stopped]);
  }
}
