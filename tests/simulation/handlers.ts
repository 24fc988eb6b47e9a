/**
 * Handlers of a world: they do their work, throw, put it off, hang, turn a deaf ear, finish twice, take their item out of
 * the worker's hands, and kill their process. What they do is drawn when they are called, and logged.
 *
 * @module
 */
import { z } from "zod";
import type { OpContext } from "../../src/core/context.ts";
import { FinalError } from "../../src/core/errors.ts";
import { defineKind } from "../../src/work/kinds.ts";
import {
  defer,
  type Deferral,
  type WorkHandler,
  type WorkItem,
  type WorkKind,
  type WorkRun,
} from "../../src/work/types.ts";
import { keyOf } from "./history.ts";
import { type Behaviour, type Plan, RETRY } from "./plan.ts";
import type { SimProcess } from "./process.ts";
import type { End, RunRecord } from "./runs.ts";
import type { World } from "./world.ts";

/** The kinds of a world: one that times out, one that has longer, one that never does. */
export function KINDS(plan: Plan): WorkKind[] {
  const schema = z.looseObject({ fate: z.string() });
  return [
    defineKind("TASK", { schema, retry: RETRY, timeoutMs: plan.timeoutMs }),
    defineKind("ERRAND", { schema, retry: RETRY, timeoutMs: plan.timeoutMs * 2 }),
    defineKind("CHORE", { schema, retry: RETRY, timeoutMs: 0 }),
  ];
}

/** One handler a kind. */
export function handlersOf(world: World, process: SimProcess): WorkHandler[] {
  return KINDS(world.plan).map((kind) => ({
    kind,
    handle: (ctx, item, run) => new Handling(world, process, { ctx, item, run, kind }).handle(),
  }));
}

interface Call {
  readonly ctx: OpContext;
  readonly item: WorkItem;
  readonly run: WorkRun;
  readonly kind: WorkKind;
}

/** One call of a handler. */
class Handling {
  readonly #world: World;
  readonly #process: SimProcess;
  readonly #call: Call;
  readonly #record: RunRecord;

  constructor(world: World, process: SimProcess, call: Call) {
    this.#world = world;
    this.#process = process;
    this.#call = call;
    const { item, run, ctx, kind } = call;
    this.#record = {
      ...{ process, item, run, key: keyOf(ctx.orgId, item.id), token: String(item.claimToken) },
      timeoutMs: kind.timeoutMs === 0 ? Infinity : kind.timeoutMs,
      started: process.marks(),
      startedMs: world.scheduler.nowMs,
      ...{ end: null, abortedAtEnd: false, cause: null, abortedMs: null, own: null, deferMs: 0 },
    };
  }

  async handle(): Promise<void | Deferral> {
    const { runs, random } = this.#world;
    const { run, ctx } = this.#call;
    this.#world.guard(() => runs.begin(this.#record, ctx));
    // Some never look at their signal.
    if (random.chance(0.8)) {
      const told = () => this.#world.guard(() => runs.aborted(this.#record));
      if (run.signal.aborted) told();
      else run.signal.addEventListener("abort", told, { once: true });
    }
    let end: End = "threw";
    try {
      const result = await this.#behave();
      end = result === undefined ? "returned" : "deferred";
      return result;
    } catch (error) {
      if (error instanceof FinalError) end = "final";
      throw error;
    } finally {
      this.#world.guard(() => runs.end(this.#record, end));
    }
  }

  #behave(): Promise<void | Deferral> {
    const { random, plan, calm } = this.#world;
    const { item } = this.#call;
    switch (item.payload.fate) {
      case "poison":
        return this.#kill();
      case "doomed":
        return this.#fail();
      case "child":
        return this.#work(random.between(0, 20));
    }
    if (item.payload.fate === "parent") return this.#parent();
    return this.#do(calm ? "quick" : random.weighted(plan.handlers));
  }

  async #do(behaviour: Behaviour): Promise<void | Deferral> {
    const { random, leaseMs } = { random: this.#world.random, leaseMs: this.#process.leaseMs };
    const { run, item, ctx } = this.#call;
    const { work } = this.#process.managers;
    this.#world.trace.note(`${this.#process.name} handler: ${behaviour}`);
    switch (behaviour) {
      case "quick":
        return await this.#work(random.chance(0.3) ? 0 : random.between(0, 60));
      case "slow":
        return await this.#listen(random.between(0, Math.min(leaseMs * 2.5, this.#most())));
      case "throw":
        return await this.#fail();
      case "final":
        await this.#work(random.between(0, 30));
        throw new FinalError("it will never do");
      case "defer":
        await this.#listen(random.between(0, 500));
        this.#record.deferMs = Math.round(random.skewed(500, 5_000));
        return defer(this.#record.deferMs, "later");
      case "hang":
        await this.#listen(this.#call.kind.timeoutMs === 0 ? leaseMs : 10_000_000);
        if (random.chance(0.5)) throw new Error("interrupted");
        return;
      case "deaf":
        return await this.#work(random.between(0, leaseMs * 4));
      case "own-done":
      case "own-done-throw":
        await this.#listen(random.between(0, 300));
        await this.#own("done", () => work.complete(ctx, item));
        await this.#work(random.skewed(100, leaseMs));
        if (behaviour === "own-done-throw") throw new Error("finished and failed");
        return;
      case "own-back":
        await this.#listen(random.between(0, 300));
        await this.#own("back", () => work.release(ctx, item, "not here", random.whole(0, 1_000)));
        return await this.#listen(random.between(0, leaseMs * 2));
      case "parent":
        return await this.#parent();
    }
    return run.signal.throwIfAborted();
  }

  /** Writes an outcome itself, as a handler's command does that has the manager at hand. */
  async #own(to: "done" | "back", write: () => Promise<void>): Promise<void> {
    if (this.#call.run.signal.aborted) throw new Error("interrupted");
    this.#record.own = to;
    await write();
  }

  /** Follow-up work: an item and an outbox row, each keyed by this item, so that a rerun makes no second one. */
  async #parent(): Promise<void> {
    const { ctx, item } = this.#call;
    const { managers } = this.#process;
    await this.#work(this.#world.random.between(0, 50));
    const child = { kind: "TASK", idempotencyKey: `${item.id}:child`, payload: { fate: "child" } };
    const { id } = await managers.work.enqueue(ctx, child);
    this.#world.guard(() => this.#world.told(`${ctx.orgId}/${child.idempotencyKey}`, id));
    await this.#work(this.#world.random.between(0, 50));
  }

  async #fail(): Promise<never> {
    await this.#work(this.#world.random.between(0, 40));
    throw new Error("it did not work");
  }

  async #kill(): Promise<void> {
    if (this.#world.random.chance(0.5)) await this.#work(this.#world.random.between(0, 100));
    this.#world.crash(this.#process, "killed by its item");
    await new Promise(() => {});
  }

  #most(): number {
    return this.#record.timeoutMs * 1.2;
  }

  /** Works without looking at its signal. */
  #work(ms: number): Promise<void> {
    return ms === 0 ? Promise.resolve() : this.#process.clock.sleep(ms);
  }

  /** Works until it is done or told to stop. */
  async #listen(ms: number): Promise<void> {
    await this.#process.clock.sleep(ms, this.#call.run.signal);
    this.#call.run.signal.throwIfAborted();
  }
}
