/**
 * A world: one seed, one store, a few workers and producers, and everything bad that may happen to them; then peace, in
 * which all that was begun has to end.
 *
 * @module
 */
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import type { TopicEvent, TopicName, TopicPayloads } from "../../src/infra/topics.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import { Actions } from "./actions.ts";
import { DatabaseClock, EPOCH_MS } from "./clocks.ts";
import { checkEnd, unfinished } from "./ends.ts";
import { History } from "./history.ts";
import { Network } from "./network.ts";
import { overrideGlobals } from "./overrides.ts";
import { drawPlan, type Plan } from "./plan.ts";
import { SimProcess } from "./process.ts";
import { Producer } from "./producers.ts";
import { Random } from "./random.ts";
import { Runs } from "./runs.ts";
import { Scheduler, settle } from "./scheduler.ts";
import { Trace, Violation } from "./trace.ts";
import { Truth } from "./truth.ts";

/** How long everything may take to end once the faults have stopped, world time. */
const PEACE_MS = 300_000;
const PEACE_STEPS = 60_000;

/** What became of a world. */
export interface WorldReport {
  readonly seed: number;
  readonly steps: number;
  /** How long the world lasted, its own milliseconds. */
  readonly worldMs: number;
  /** Over everything that happened: the same for the same seed and steps. */
  readonly hash: string;
  readonly failure: Violation | null;
  readonly last: readonly string[];
  /** How often what was seen. */
  readonly seen: ReadonlyMap<string, number>;
}

/** One world. */
export class World {
  readonly seed: number;
  readonly random: Random;
  readonly trace = new Trace();
  readonly scheduler: Scheduler;
  readonly plan: Plan;
  readonly db: SqliteDatabase;
  readonly network: Network;
  readonly truth: Truth;
  readonly runs: Runs;
  readonly lanes: readonly string[];
  readonly processes: SimProcess[] = [];
  /** Orgs, each with its members. */
  readonly members: { readonly org: string; readonly user: string }[] = [];
  /** Whether the faults have stopped. */
  calm = false;
  readonly #twins: string[] = [];
  readonly #producers: Producer[] = [];
  #failure: Violation | null = null;
  /** Whether all has ended and nobody is started any more. */
  #stopped = false;
  readonly #incarnations = new Map<number, number>();

  constructor(seed: number) {
    this.seed = seed;
    this.random = new Random(seed);
    this.plan = drawPlan(seed, this.random);
    this.scheduler = new Scheduler(this.random);
    this.db = new SqliteDatabase(":memory:", { clock: new DatabaseClock(this.scheduler) });
    const { itemRetentionMs, keyRetentionMs } = this.plan;
    this.truth = new Truth(new History(this.db), {
      ...{ trace: this.trace, itemRetentionMs, keyRetentionMs },
      nowMs: () => this.scheduler.nowMs,
    });
    this.runs = new Runs(this.truth);
    this.network = new Network(this);
    this.lanes = this.plan.workers > 2 && this.random.chance(0.5) ? ["default", "bulk"] : ["default"];
  }

  /** Runs `steps` events with faults, then without until everything has ended. */
  async run(steps: number): Promise<WorldReport> {
    await migrateSqliteUp(this.db, CHAINS);
    await settle();
    const restore = overrideGlobals(this.random);
    const stray = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      this.guard(() => {
        throw new Violation("stray rejection", String((event.reason as Error)?.stack ?? event.reason));
      });
    };
    globalThis.addEventListener("unhandledrejection", stray);
    try {
      await this.#begin();
      await this.#faults(steps);
      await this.#peace();
    } catch (error) {
      this.guard(() => {
        throw error;
      });
    } finally {
      for (const process of this.processes) process.crash();
      globalThis.removeEventListener("unhandledrejection", stray);
      restore();
      this.db.close();
    }
    return {
      seed: this.seed,
      steps: this.scheduler.steps,
      worldMs: this.scheduler.nowMs,
      hash: this.trace.hash(),
      failure: this.#failure,
      last: this.trace.last(120),
      seen: this.truth.seen,
    };
  }

  /** Runs a check; what it throws is the world's end, and not the caller's concern. */
  guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#failure ??= error instanceof Violation
        ? error
        : new Violation("broken", error instanceof Error ? error.stack ?? error.message : String(error));
    }
  }

  /** Database time, epoch milliseconds. */
  databaseMs(): number {
    return EPOCH_MS + this.scheduler.nowMs;
  }

  /** Workers that live. */
  workers(): SimProcess[] {
    return this.processes.filter(({ runtime, gone }) => runtime !== null && !gone);
  }

  /** The id under which every org enqueues its `n`th item. */
  twinId(n: number): string {
    return this.#twins[n] ??= crypto.randomUUID();
  }

  pickMember(): { readonly org: string; readonly user: string } {
    return this.random.pick(this.members);
  }

  /** A caller was told that its item is there under this id. */
  told(key: string, id: string): void {
    const known = this.truth.told.get(key);
    this.truth.told.set(key, id);
    if (known === undefined || known === id || this.plan.keyRetentionMs < 3_600_000) return;
    throw new Violation("one item a key", "two enqueues of one key were told of two items");
  }

  /** A hint reaches every process, or does not. */
  publish<T extends TopicName>(topic: T, payload: TopicPayloads[T]): void {
    for (const process of this.processes) {
      if (process.gone) continue;
      if (!this.plan.listening && this.random.chance(this.plan.hintLoss)) continue;
      this.scheduler.after(this.random.skewed(5, this.plan.listening ? 20 : 500), process, () => {
        const event = { type: "message", payload } as TopicEvent<TopicName>;
        for (const listener of [...process.listeners.get(topic) ?? []]) listener(event);
      });
    }
  }

  /** A worker dies, and another one takes its place after a while. */
  crash(process: SimProcess, why: string): void {
    if (process.gone) return;
    this.trace.note(`${process.name} crashes: ${why}`);
    this.truth.count("crashes");
    process.crash();
    this.respawn(process);
  }

  /** A worker in another one's place. */
  respawn({ name }: SimProcess): void {
    const slot = Number(/^w(\d+)/.exec(name)?.[1] ?? NaN);
    if (Number.isNaN(slot)) return;
    this.scheduler.after(this.random.skewed(1_500, 6_000), null, () => this.#spawn(slot));
  }

  #spawn(slot: number): void {
    if (this.#stopped) return;
    const incarnation = (this.#incarnations.get(slot) ?? 0) + 1;
    this.#incarnations.set(slot, incarnation);
    const process = new SimProcess(this, `w${slot}.${incarnation}`);
    this.processes.push(process);
    this.trace.note(`${process.name} starts`);
    process.work(this.lanes[slot % this.lanes.length] ?? "default", this.#kindsOf(slot));
  }

  /** The first of each lane serve all kinds, the others some. */
  #kindsOf(slot: number): string[] {
    if (slot < this.lanes.length) return ["TASK", "ERRAND", "CHORE"];
    return slot % 2 === 0 ? ["TASK"] : ["TASK", "CHORE"];
  }

  async #begin(): Promise<void> {
    const { plan } = this;
    await this.truth.history.begin();
    const { tenancy } = createStorages({ engine: "sqlite", db: this.db });
    const createdAt = new Date(EPOCH_MS);
    for (let n = 0; n < plan.orgs; n++) {
      const org = crypto.randomUUID();
      await tenancy.createOrg({ id: org, name: `org ${n}`, createdAt, endedAt: null });
      for (let m = 0; m < 2; m++) {
        const user = crypto.randomUUID();
        await tenancy.createUser({ id: user, name: `user ${n}.${m}`, createdAt });
        await tenancy.writeMembership({ orgId: org, userId: user, role: "MEMBER", createdAt, endedAt: null });
        this.members.push({ org, user });
      }
    }
    for (let n = 0; n < plan.producers; n++) {
      const process = new SimProcess(this, `p${n}`);
      this.processes.push(process);
      const producer = new Producer(this, process);
      this.#producers.push(producer);
      void producer.run();
    }
    for (let slot = 0; slot < plan.workers; slot++) this.#spawn(slot);
    new Actions(this).begin();
  }

  async #faults(steps: number): Promise<void> {
    while (this.scheduler.steps < steps && this.#failure === null) if (!await this.#step()) return;
  }

  /** The faults stop; whoever is down comes back; then everything has to end, and the workers are stopped. */
  async #peace(): Promise<void> {
    this.calm = true;
    this.trace.note("peace");
    for (const process of this.processes) process.cutOffUntilMs = -Infinity;
    const untilMs = this.scheduler.nowMs + PEACE_MS;
    const untilStep = this.scheduler.steps + PEACE_STEPS;
    const isOver = () => this.#producers.every(({ finished }) => finished) && unfinished(this.truth).length === 0;
    for (let n = 0; this.#failure === null && this.scheduler.nowMs < untilMs; n++) {
      if (this.scheduler.steps > untilStep) throw new Violation("liveness", "the world did not come to rest");
      if (n % 16 === 0 && isOver()) break;
      await this.#step();
    }
    if (this.#failure !== null) return;
    this.guard(() => checkEnd(this.truth));
    this.#stopped = true;
    for (const process of this.workers()) void process.drain(false);
    const stoppedMs = this.scheduler.nowMs + 30_000;
    while (this.#failure === null && this.scheduler.nowMs < stoppedMs && this.workers().some((w) => !w.gone)) {
      await this.#step();
    }
    if (this.workers().length > 0) throw new Violation("drain", "a worker did not end its drain");
  }

  async #step(): Promise<boolean> {
    const more = await this.scheduler.step();
    for (const process of this.processes) this.guard(() => process.settleChecks());
    return more;
  }
}

/** Runs one seed. */
export async function runSeed(seed: number, steps: number): Promise<WorldReport> {
  return await new World(seed).run(steps);
}
