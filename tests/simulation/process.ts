/**
 * A process of a world: a worker or a producer, with its own clock, managers over its own storages, and ways to be
 * crashed, held up, cut off and stopped.
 *
 * @module
 */
import type { OpContext, RequestContext } from "../../src/core/context.ts";
import type { LogFields, Logger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { MemoryCache } from "../../src/infra/memory_cache.ts";
import type { TopicEvent, TopicName, TopicPayloads, Topics } from "../../src/infra/topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import type { WorkerRuntime } from "../../src/runtime/types.ts";
import { createWorkerRuntime } from "../../src/runtime/worker.ts";
import { insertOutboxRows } from "../../src/outbox/rows.ts";
import { createStorages, type Storages } from "../../src/storages.ts";
import { ProcessClock } from "./clocks.ts";
import { keyOfRow } from "./history.ts";
import { handlersOf, KINDS } from "./handlers.ts";
import type { Owner } from "./scheduler.ts";
import type { RunRecord } from "./runs.ts";
import { must } from "./transitions.ts";
import { Violation } from "./trace.ts";
import type { Marks } from "./truth.ts";
import type { World } from "./world.ts";

type Listener = (event: TopicEvent<TopicName>) => void;

/** Core writes of the world's own: rows of the outbox, written as a storage of a container would. */
export interface CoreWrites {
  writeRows(rows: readonly OutboxRow[]): Promise<void>;
}

/** One process. */
export class SimProcess implements Owner {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly managers: Managers;
  readonly core: CoreWrites;
  readonly rctx: RequestContext;
  readonly leaseMs: number;
  readonly capacity: number;
  readonly listeners = new Map<TopicName, Set<Listener>>();
  /** Runs whose renewal was refused, and not looked up yet. */
  readonly refused = new Set<RunRecord>();
  runtime: WorkerRuntime | null = null;
  /** Crashed, or exited: nothing of it runs any more. */
  gone = false;
  held = false;
  draining = false;
  /** Its drain has ended with nothing on its way: it says nothing any more. */
  silent = false;
  cutOffUntilMs = -Infinity;
  /** Whether its last claim failed. */
  claimFailed = false;
  /** Renewals in a row that failed, with an answer. */
  renewalsFailed = 0;
  /** Ids of items of which a settlement was refused, and how often it said so. */
  readonly refusals = new Set<string>();
  readonly refusalsTold = new Map<string, number>();
  /** Ids of items whose lease it gave up. */
  readonly lost = new Set<string>();
  /** Whether renewals and claims are always answered in this world. */
  readonly onlySettlementsFail: boolean;
  /** How many calls of each method are on their way. */
  readonly flying = new Map<string, number>();
  /** Tokens of claims whose answer was lost, until they were looked for. */
  readonly lostTokens = new Set<string>();
  #wokeMs = -Infinity;
  #wokeMarkMs = -Infinity;
  #heldMs = 0;
  #disturbances = 0;
  #disturbedMs = -Infinity;
  #drainFrom: Marks | null = null;
  #graceSkipped = false;
  readonly #world: World;
  readonly #checks: (() => void)[] = [];

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
    const { scheduler, random, plan, network, db } = world;
    this.leaseMs = plan.leaseMs;
    this.capacity = plan.capacity;
    this.onlySettlementsFail = plan.strikes === "settle";
    this.clock = new ProcessClock({ scheduler, random, owner: this }, {
      skewMs: random.between(-1, 1) * plan.skewMs,
      rate: 1 + random.between(-1, 1) * plan.drift,
    });
    const plain = createStorages({ engine: "sqlite", db });
    const storages = Object.fromEntries(
      Object.entries(plain).map(([room, storage]) => [room, network.reach(this, room, storage as object)]),
    ) as unknown as Storages;
    this.core = network.reach(this, "core", {
      writeRows: (rows: readonly OutboxRow[]) =>
        db.write((session) => {
          // Repeated after a lost answer: what is there stays.
          const isNew = ({ orgId, id }: OutboxRow) =>
            session.get("select 1 from core_outbox where org_id = ? and id = ?", orgId, id) === undefined &&
            !world.truth.outboxRows.has(`${orgId}/${id}`);
          insertOutboxRows(session, rows.filter(isNew));
        }),
    });
    this.managers = createManagers({
      ...{
        storages,
        topics: this.#topics(),
        clock: this.clock,
        logger: this.#logger,
        metrics: noMetrics,
        kinds: KINDS(plan),
      },
      itemRetentionMs: plan.itemRetentionMs,
      keyRetentionMs: plan.keyRetentionMs,
      outboxRetentionMs: 20_000,
      markerRetentionMs: 86_400_000,
    });
    this.rctx = this.managers.tenancy.requestContext({ type: "WORKER", version: `${name}@0` });
  }

  get dead(): boolean {
    return this.gone;
  }

  /** Builds and starts its worker. */
  work(lane: string, kinds: readonly string[]): void {
    const { plan } = this.#world;
    this.runtime = createWorkerRuntime({
      ...{ worker: this.name, app: { type: "WORKER", version: `${this.name}@0` }, lane, kinds },
      handlers: handlersOf(this.#world, this).filter(({ kind }) => kinds.includes(kind.name)),
      managers: this.managers,
      ping: () => Promise.resolve(),
      topics: this.#topics(),
      cache: new MemoryCache(this.clock),
      clock: this.clock,
      logger: this.#logger,
      metrics: noMetrics,
      capacity: plan.capacity,
      claimAheadMs: plan.claimAheadMs,
      leaseMs: plan.leaseMs,
      pollMs: plan.pollMs,
      idlePollMs: plan.pollMs * 4,
      heartbeatMs: 5_000,
      sweepMs: plan.sweepMs,
      drainGraceMs: plan.drainGraceMs,
    });
    this.runtime.start();
  }

  /** Its own clocks, now. */
  marks(): Marks {
    return { monotonicMs: this.clock.monotonic(), wallMs: this.clock.now() };
  }

  /** Something begins (1) or ends (-1) that may keep it from its renewals. */
  disturb(by: 1 | -1): void {
    this.#disturbances += by;
    this.#disturbedMs = this.#world.scheduler.nowMs;
  }

  /** Whether anything kept it from its renewals since then. */
  disturbedSince(ms: number): boolean {
    return this.held || this.#disturbances > 0 || this.renewalsFailed >= RENEWALS || this.#disturbedMs >= ms ||
      this.#wokeMs >= ms;
  }

  /** A call leaves (1) or is answered (-1). */
  fly(method: string, by: 1 | -1): void {
    this.flying.set(method, (this.flying.get(method) ?? 0) + by);
  }

  isFlying(method: string): boolean {
    return (this.flying.get(method) ?? 0) > 0;
  }

  /** Its wall clock is set. */
  jump(ms: number): void {
    this.#world.trace.note(`${this.name}'s clock jumps by ${Math.round(ms)} ms`);
    this.clock.jump(ms);
    this.#woke();
  }

  #woke(): void {
    this.#wokeMs = this.#world.scheduler.nowMs;
    this.#wokeMarkMs = this.clock.monotonic();
  }

  /** Whether it was let go so lately that it may not have looked at its clocks yet. */
  wokeLately(): boolean {
    return this.#world.scheduler.nowMs - this.#wokeMs < this.leaseMs / 12 + 60;
  }

  /** Whether it was held up or had its clock set since then, on its own monotonic clock. */
  wokeSince(monotonicMs: number): boolean {
    return this.held || this.#wokeMarkMs >= monotonicMs;
  }

  wokeWithin(ms: number): boolean {
    return this.held || this.#world.scheduler.nowMs - this.#wokeMs < ms;
  }

  /** Judges once everything that follows from the present event has settled. */
  afterwards(check: () => void): void {
    this.#checks.push(check);
  }

  /** Runs what was put off. */
  settleChecks(): void {
    while (this.#checks.length > 0) this.#checks.shift()?.();
  }

  /** Dies: nothing of it runs any more. */
  crash(): void {
    this.gone = true;
    this.listeners.clear();
  }

  /** Is held up for a while; when `standing` its monotonic time stands still meanwhile, as in a suspended machine. */
  hold(ms: number, standing: boolean): void {
    if (this.held) return;
    this.held = true;
    this.clock.stand(standing);
    this.#world.trace.note(`${this.name} is held up for ${Math.round(ms)} ms${standing ? ", standing" : ""}`);
    this.#world.scheduler.after(ms, null, () => {
      if (this.gone) return;
      this.held = false;
      this.#heldMs += ms * 1.1;
      this.clock.stand(false);
      this.#woke();
      this.#world.trace.note(`${this.name} goes on`);
      this.#world.scheduler.release(this);
    });
  }

  /** Is told to stop, and exits once it has drained. */
  async drain(skipGrace: boolean): Promise<void> {
    const { scheduler, trace, truth, plan } = this.#world;
    if (this.draining || this.runtime === null) return;
    this.draining = true;
    this.#drainFrom = this.marks();
    const fromMs = scheduler.nowMs;
    const heldMs = this.#heldMs;
    trace.note(`${this.name} drains`);
    const drained = this.runtime.drain();
    if (skipGrace) {
      this.#graceSkipped = true;
      this.runtime.skipGrace();
    }
    const report = await drained;
    trace.note(`${this.name} has drained: ${JSON.stringify(report)}`);
    truth.count("drains");
    this.#world.guard(() => {
      const tookMs = this.marks().monotonicMs - (this.#drainFrom?.monotonicMs ?? 0) - (this.#heldMs - heldMs);
      const boundMs = plan.drainGraceMs + 2_000 + 5_000 + 1_000 + 1_000 + 1_000 + 500;
      must(tookMs <= boundMs, "drain", () => `${this.name} took ${Math.round(tookMs)} ms to drain, at most ${boundMs}`);
      if (this.disturbedSince(fromMs - this.leaseMs * 3)) return;
      const held = [...truth.history.items.values()].filter(({ status, claim_token }) =>
        // A claim whose answer is lost while it drains is left to expire.
        status === "claimed" && !this.lostTokens.has(String(claim_token)) &&
        truth.tokens.get(String(claim_token))?.call.process === this
      );
      const ours = held.filter((row) => this.#world.runs.of(String(row.claim_token), keyOfRow(row))?.own !== "back");
      must(
        ours.length === 0,
        "drain",
        () => `${this.name} ended its drain without a fault and holds ${ours.length} items`,
      );
    });
    if ([...this.flying.values()].every((count) => count === 0)) this.silent = true;
    this.runtime = null;
    // What it may still do after its drain would be lost with it: it lingers to be watched.
    scheduler.after(3_000, null, () => {
      this.gone = true;
      this.listeners.clear();
    });
  }

  /** Whether runs may be stopped for its drain. */
  graceIsOver(): boolean {
    const from = this.#drainFrom;
    if (from === null) return false;
    return this.#graceSkipped || this.clock.monotonic() - from.monotonicMs >= this.#world.plan.drainGraceMs - 1;
  }

  /** The context of an org's member, or of the org itself. */
  contextOf(orgId: string, userId: string): Promise<OpContext> {
    return this.managers.tenancy.memberContext(this.rctx, orgId, userId);
  }

  #topics(): Topics {
    const { plan } = this.#world;
    return {
      listening: plan.listening,
      publish: <T extends TopicName>(topic: T, payload: TopicPayloads[T]) => {
        this.#world.publish(topic, payload);
        return Promise.resolve();
      },
      subscribe: (topic, listener) => {
        const all = this.listeners.get(topic) ?? new Set<Listener>();
        this.listeners.set(topic, all);
        all.add(listener as Listener);
        return () => void all.delete(listener as Listener);
      },
      close: () => Promise.resolve(),
    };
  }

  readonly #logger: Logger = {
    debug: () => {},
    info: (event, fields) => this.#log(event, fields),
    warn: (event, fields) => this.#log(event, fields),
    error: (event, fields) => {
      this.#log(event, fields);
      if (event === EXPECTED_ERROR) return;
      this.#world.guard(() => {
        throw new Violation("logged error", `${this.name} logged ${event}: ${String(fields?.error ?? "")}`);
      });
    },
  };

  #log(event: string, fields: LogFields = {}): void {
    const item = typeof fields.item === "string" ? ` ${this.#world.trace.name("item", fields.item)}` : "";
    this.#world.trace.note(`${this.name} logs ${event}${item}`);
    this.#world.truth.count(`log ${event}`);
    if (event === "work.outcome_refused" || event === "work.outcome_perhaps_written") {
      const id = String(fields.item);
      this.refusalsTold.set(id, (this.refusalsTold.get(id) ?? 0) + 1);
      const refused = this.refusals.has(id);
      this.#world.guard(() => must(refused, "outcomes", () => `${this.name} says it was refused${item}, and was not`));
    }
    if (event === "lease.lost") this.lost.add(String(fields.item));
  }
}

/** So many tries of a renewal fit between its time and the loss of the lease. */
const RENEWALS = 3;

/** Rows past the key retention are said so loudly; worlds with short retentions may meet it. */
const EXPECTED_ERROR = "outbox rows are older than the key retention and are not relayed";
