/**
 * The items a worker holds: those that run, each in a slot, those that wait for one, and those whose outcome is on its
 * way.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import type { ClaimedItem, WorkHandler } from "../work/types.ts";
import { ClaimAhead, LONGEST_WAIT_MS } from "./claim_ahead.ts";
import { Deadlines } from "./deadlines.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import { abortedVerdict, Run, runHandler, type Verdict } from "./run.ts";
import { handBack, type HandedBack, type SettleOptions } from "./settle.ts";
import { Signal } from "./signal.ts";
import { withSpan } from "./tracing.ts";
import type { DrainReport, WorkerRuntimeOptions } from "./types.ts";

/** How long a handler may ignore its abort signal before it counts as deaf and its item is handed back without it. */
export const ABORT_GRACE_MS = 2_000;
/** How long an item claimed ahead of the free slots may be expected to wait. */
const DEFAULT_CLAIM_AHEAD_MS = 50;

const BESIDE_LONE = "handed back: an item beside it runs alone";

/** What `Runs` is made of, beside the worker's own options. */
export interface RunsOptions extends WorkerRuntimeOptions {
  readonly keeper: LeaseKeeper;
  /** Told when an item will be due that nobody else may know of. */
  readonly onDue: () => void;
  /** Told when something was handed back that is claimable now. */
  readonly onClaimable: () => void;
  /** Nothing begins any more once it aborts. */
  readonly stop: AbortSignal;
}

/** When a claim was sent: what its items' leases are counted from. */
export interface SentAt {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Runs claimed items to their acknowledged settlement. */
export class Runs {
  /** A slot became free: only a loop that has none waits for it, so an idle queue is not asked after each item. */
  readonly slotFreed = new Signal();
  readonly #o: RunsOptions;
  readonly #stop: AbortSignal;
  readonly #handlers: ReadonlyMap<string, WorkHandler>;
  readonly #runs = new Set<Run>();
  /** Runs that hold a slot: their handler has not settled. */
  #running = 0;
  readonly #recentKinds = new Set<string>();
  /** Something settled: for the drain, and for an item that waits to run alone. */
  readonly #changed = new Signal();
  readonly #giveUp = new AbortController();
  readonly #handBackOptions: SettleOptions;
  readonly #deadlines: Deadlines;
  readonly #ahead: ClaimAhead;
  /** The item that runs, or is about to run, with nothing beginning beside it. */
  #lone: ClaimedItem | null = null;
  #drained = { finished: 0, released: 0, left: 0 };

  constructor(options: RunsOptions) {
    this.#o = options;
    this.#stop = options.stop;
    const { managers: { work }, clock, logger, metrics } = options;
    this.#handBackOptions = {
      ...{ work, clock, logger, metrics, giveUp: this.#giveUp.signal },
      onHandedBack: (run, verdict, outcome) => this.#handedBack(run, verdict, outcome),
    };
    this.#deadlines = new Deadlines(clock);
    this.#ahead = new ClaimAhead(options.claimAheadMs ?? DEFAULT_CLAIM_AHEAD_MS);
    this.#handlers = new Map(options.handlers.map((handler) => [handler.kind.name, handler]));
  }

  /**
   * How many items to claim. A handler that has settled leaves its slot at once, and the next item is claimed while its
   * outcome is on its way; but no more than a capacity of outcomes may be, else a database that takes none would be worked
   * for in vain.
   */
  room(): number {
    if (this.#lone !== null) return 0;
    const { capacity, clock } = this.#o;
    const ahead = this.#ahead.allowed(clock.monotonic());
    const free = capacity + ahead - this.#running - this.#ahead.waiting;
    return Math.min(free, (capacity + ahead) * 2 - this.#runs.size);
  }

  /**
   * Takes what one claim brought. Each item begins, or waits for a slot. Of those whose last claim expired one is run
   * alone; the others, and what waits, are handed back first: what it does to this process must not cost them an attempt.
   * So is all of a claim that was on its way meanwhile.
   *
   * @returns How many items it took.
   */
  async take(claimed: readonly ClaimedItem[], sentAt: SentAt): Promise<number> {
    if (this.#lone !== null) {
      await this.returnUnstarted(claimed, BESIDE_LONE);
      return 0;
    }
    const suspects: ClaimedItem[] = [];
    for (const item of claimed) {
      if (item.item.expiries > 0) suspects.push(item);
      else this.#take(item, sentAt);
    }
    if (this.#ahead.waiting > 0) this.#deadlines.add(LONGEST_WAIT_MS, () => void this.#giveBackOverdue());
    const [lone, ...others] = suspects;
    if (lone !== undefined) {
      this.#lone = lone;
      // Its lease is kept from here on: the hand-backs that go ahead of it may wait long for their answers.
      const run = this.#add(lone, sentAt);
      await Promise.all([
        this.#giveBack(this.#ahead.takeAll(), BESIDE_LONE),
        this.returnUnstarted(others, "handed back: it runs with nothing beside it"),
      ]);
      void this.#runAlone(run);
    }
    this.#o.metrics.set("laneway_items_running", this.#running);
    return claimed.length;
  }

  /** Hands back what is claimed and was not taken. Best effort: else its lease expires. */
  async returnUnstarted(claimed: readonly ClaimedItem[], note: string): Promise<void> {
    await Promise.all(claimed.map((item) => this.#returnUnstarted(item, note)));
  }

  /** Hands back what waits for a slot: nothing begins any more. */
  endWaiting(): void {
    void this.#giveBack(this.#ahead.takeAll(), "handed back: its worker was stopped");
    this.#changed.fire();
  }

  /** Items whose outcome is not written yet. */
  get unsettled(): number {
    return [...this.#runs].filter((run) => !run.released).length;
  }

  /** Runs that were told to stop and did not within the grace. */
  get deaf(): number {
    return [...this.#runs].filter((run) => !run.handlerSettled && run.abortedForMs >= ABORT_GRACE_MS).length;
  }

  /** What became of runs since the drain began. */
  get drained(): DrainReport {
    return { ...this.#drained };
  }

  /** Kinds of what ran since the last call. A handler that blocked has mostly settled by the time somebody can ask. */
  kindsSinceLastAsked(): string[] {
    const kinds = [...this.#recentKinds];
    this.#recentKinds.clear();
    for (const run of this.#runs) if (run.holdsSlot) this.#recentKinds.add(run.claimed.item.kind);
    return kinds;
  }

  /** Fires the deadlines of runs until `stop`. */
  watchDeadlines(stop: AbortSignal): Promise<void> {
    return this.#deadlines.run(stop);
  }

  /** Tells every run to stop. */
  abortAll(): void {
    for (const run of this.#runs) run.abort("DRAINED", "the worker is stopping");
  }

  /** Ends every retry of a hand-back: the worker is about to exit. */
  giveUp(): void {
    this.#giveUp.abort();
  }

  /** Resolves when nothing is unsettled, or when `stop` aborts. */
  async settled(stop: AbortSignal): Promise<void> {
    while (this.unsettled > 0 && !stop.aborted) await this.#changed.wait(stop);
  }

  /** Begins, or waits for a slot. */
  #take(claimed: ClaimedItem, sentAt: { monotonicMs: number; wallMs: number }): void {
    const run = this.#add(claimed, sentAt);
    if (this.#running < this.#o.capacity) this.#begin(run);
    else this.#ahead.push(run, this.#o.clock.monotonic());
  }

  #add(claimed: ClaimedItem, sentAt: { monotonicMs: number; wallMs: number }): Run {
    const run = new Run(claimed, this.#o.clock, sentAt);
    this.#runs.add(run);
    this.#o.keeper.add(run);
    return run;
  }

  #begin(run: Run): Promise<void> {
    run.holdsSlot = true;
    this.#running++;
    return this.#drive(run);
  }

  #freeSlot(run: Run): void {
    if (!run.holdsSlot) return;
    run.holdsSlot = false;
    this.#running--;
    this.#ahead.ended();
    const next = this.#running < this.#o.capacity ? this.#ahead.shift() : undefined;
    if (next === undefined) this.slotFreed.fire();
    else void this.#begin(next);
  }

  /** What waits for a slot longer than it should goes to whoever has one. */
  #giveBackOverdue(): Promise<void> {
    const overdue = this.#ahead.takeOverdue(this.#o.clock.monotonic());
    return this.#giveBack(overdue, "handed back: no slot became free for it");
  }

  /** Hands back items that never began. */
  async #giveBack(runs: readonly Run[], note: string): Promise<void> {
    await Promise.all(runs.map(async (run) => {
      if (run.cause !== "LEASE_LOST") await this.#returnUnstarted(run.claimed, note);
      run.released = true;
      this.#o.keeper.remove(run);
      this.#runs.delete(run);
    }));
    if (runs.length > 0) this.#changed.fire();
  }

  /**
   * An item whose last claim expired may be what killed its process, or blocked it. It waits until what runs has ended, at
   * most one lease, and nothing begins beside it: to its end when it is under suspicion for the second time or on its last
   * attempt, else until its lease was renewed while it ran. Most claims expire in an outage of the database, a whole
   * worker's at once; run one after the other to their ends they would close the lane for the sum of their lengths.
   */
  async #runAlone(run: Run): Promise<void> {
    const { clock, leaseMs } = this.#o;
    const { claimed } = run;
    const untilMs = clock.monotonic() + leaseMs;
    while (this.#runs.size > 1 && clock.monotonic() < untilMs && !this.#stop.aborted) {
      await this.#changed.within(Math.max(untilMs - clock.monotonic(), 1), { clock, stop: this.#stop });
    }
    // Claimed ahead, it may still find no slot free.
    while (this.#running >= this.#o.capacity && run.cause === null && !this.#stop.aborted) {
      await this.#changed.within(leaseMs, { clock, stop: this.#stop });
    }
    if (this.#stop.aborted) run.abort("DRAINED", "the worker is stopping");
    const ended = this.#begin(run);
    await (staysAlone(claimed) ? ended : Promise.race([ended, this.#proven(run)]));
    this.#endLone(claimed);
  }

  /** Claims again. Called when the lone item is settled: a handler that stays deaf keeps its slot and no more. */
  #endLone(claimed: ClaimedItem): void {
    if (this.#lone !== claimed) return;
    this.#lone = null;
    this.slotFreed.fire();
    // The others that were handed back for it are claimable now.
    this.#o.onClaimable();
  }

  /** Resolves when a renewal came through that was sent well after this moment: the run neither kills nor blocks. */
  #proven(run: Run): Promise<void> {
    const fromMs = this.#o.clock.monotonic() + this.#o.leaseMs / 6;
    return new Promise((resolve) => {
      run.onRenewed = (sentMs) => {
        if (sentMs >= fromMs) resolve();
      };
    });
  }

  /** One run from its start to its acknowledged settlement. Never throws. */
  #drive(run: Run): Promise<void> {
    const handler = this.#handlers.get(run.claimed.item.kind);
    return handler === undefined || run.cause !== null ? this.#pass(run) : this.#handle(run, handler);
  }

  /** A run that does not begin: it was told to stop before, or nobody here handles its kind. */
  async #pass(run: Run): Promise<void> {
    const { kind } = run.claimed.item;
    try {
      if (run.cause !== null) await this.#settle(run, abortedVerdict(run.cause, 0));
      else await this.#returnUnstarted(run.claimed, `handed back: this worker has no handler for ${kind}`, 60_000);
    } catch (error) {
      this.#broke(run, error);
    } finally {
      this.#ended(run);
    }
  }

  async #handle(run: Run, handler: WorkHandler): Promise<void> {
    const { clock, metrics, traces } = this.#o;
    const { kind, availableAt } = run.claimed.item;
    try {
      metrics.observe("laneway_start_latency_seconds", Math.max(clock.now() - availableAt.getTime(), 0) / 1000, {
        kind,
      });
      run.startedMs = clock.monotonic();
      this.#recentKinds.add(kind);
      const { timeoutMs } = handler.kind;
      run.onAbort = this.#onAbort;
      const timeout = timeoutMs > 0 ? this.#deadlines.add(timeoutMs, () => timeOut(run, timeoutMs)) : null;
      const verdict = traces === true
        ? await withSpan(run.claimed, () => runHandler(run, handler, clock))
        : await runHandler(run, handler, clock);
      if (run.abandoned === null) {
        this.#freeSlot(run);
        await this.#settle(run, verdict);
      }
      if (timeout !== null) this.#deadlines.remove(timeout);
      await run.abandoned;
    } catch (error) {
      this.#broke(run, error);
    } finally {
      this.#ended(run);
    }
  }

  /** Told to stop. A deaf handler keeps its slot until it settles, but not its item: that is handed back after the grace. */
  readonly #onAbort = (run: Run): void => {
    this.#deadlines.add(ABORT_GRACE_MS, () => {
      if (!run.handlerSettled) run.abandoned = this.#abandon(run);
    });
  };

  async #abandon(run: Run): Promise<void> {
    const { item } = run.claimed;
    try {
      const timeoutMs = this.#handlers.get(item.kind)?.kind.timeoutMs ?? 0;
      await this.#settle(run, abortedVerdict(run.cause ?? "DRAINED", timeoutMs));
      this.#o.logger.warn("work.handler_deaf", { item: item.id, kind: item.kind, cause: run.cause ?? "none" });
    } catch (error) {
      this.#broke(run, error);
    }
  }

  #broke(run: Run, error: unknown): void {
    const { id, kind } = run.claimed.item;
    this.#o.logger.error("work.run_broke", { item: id, kind, error: describeError(error) });
  }

  #ended(run: Run): void {
    run.released = true;
    this.#o.keeper.remove(run);
    this.#runs.delete(run);
    this.#freeSlot(run);
    this.#o.metrics.set("laneway_items_running", this.#running);
    this.slotFreed.fire();
    this.#changed.fire();
  }

  #settle(run: Run, verdict: Verdict): Promise<void> {
    return handBack(run, verdict, this.#handBackOptions);
  }

  #handedBack(run: Run, verdict: Verdict, outcome: HandedBack): void {
    const { logger } = this.#o;
    // Nobody else may know when it is due.
    if (outcome === "retried" || outcome === "deferred") this.#o.onDue();
    if (outcome !== "left") run.released = true;
    this.#o.keeper.remove(run);
    if (outcome !== "left") this.#endLone(run.claimed);
    if (this.#stop.aborted) this.#countDrained(run, outcome);
    if (verdict.type === "fail" && (outcome === "retried" || outcome === "dead_lettered")) {
      const { item } = run.claimed;
      logger.warn(`work.${outcome}`, {
        item: item.id,
        kind: item.kind,
        attempt: item.attempts,
        maxAttempts: item.maxAttempts,
        error: describeError(verdict.error),
      });
    }
    if (run.startedMs !== null) {
      const seconds = (this.#o.clock.monotonic() - run.startedMs) / 1000;
      this.#o.metrics.observe("laneway_run_duration_seconds", seconds, { kind: run.claimed.item.kind, outcome });
    }
    this.#changed.fire();
  }

  #countDrained(run: Run, outcome: HandedBack): void {
    if (outcome === "left" || run.cause === "LEASE_LOST") this.#drained.left++;
    else if (outcome === "released") this.#drained.released++;
    else this.#drained.finished++;
  }

  /** Best effort: an item that never began goes back uncharged, else its lease expires. */
  async #returnUnstarted(claimed: ClaimedItem, note: string, delayMs = 0): Promise<void> {
    try {
      await this.#o.managers.work.release(claimed.ctx, claimed.item, note, delayMs);
    } catch (error) {
      this.#o.logger.warn("work.not_handed_back", { item: claimed.item.id, error: describeError(error) });
    }
  }
}

// Whoever began beside a slow killer lost one attempt by it; alone with their last, they cannot die of it.
function staysAlone({ item }: ClaimedItem): boolean {
  return item.expiries > 1 || item.attempts >= item.maxAttempts;
}

function timeOut(run: Run, timeoutMs: number): void {
  run.abort("TIMED_OUT", `the run timed out after ${timeoutMs} ms`);
}
