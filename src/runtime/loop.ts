/**
 * The loop, the only one: wake, claim what there is room for, hand it to `Runs`, and again.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import { UnavailableError } from "../core/errors.ts";
import type { ClaimedItem } from "../work/types.ts";
import type { Health } from "./health.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import { Lookout } from "./lookout.ts";
import { Runs, type SentAt } from "./runs.ts";
import type { WorkerRuntimeOptions } from "./types.ts";

/** The most items of one claim. */
const CLAIM_BATCH = 500;
/** Claims of this many items that come back full are asked for two at a time. */
const BUSY_FROM = 100;
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 3_000;

/** What the loop is made of, beside the worker's own options. */
export interface LoopParts {
  readonly options: WorkerRuntimeOptions;
  readonly keeper: LeaseKeeper;
  readonly health: Health;
  readonly rctx: RequestContext;
}

/** What a claim brought. */
interface Claim {
  readonly sentAt: SentAt;
  readonly claimed: readonly ClaimedItem[];
}

/** Claims. */
export class Loop {
  /** What was claimed. */
  readonly runs: Runs;
  readonly #o: WorkerRuntimeOptions;
  readonly #health: Health;
  readonly #rctx: RequestContext;
  readonly #lookout: Lookout;
  readonly #stopClaiming = new AbortController();
  /** Items asked for by claims on their way. */
  #asked = 0;
  /** Items moved into reach beside a claim, which the next one is to find. */
  #promoted = 0;
  /** Whether the last claim may have taken effect although it failed: the next one looks for what it took. */
  #unsure = false;
  /** Whether the last claim was large and came back full. */
  #busy = false;
  #second: Promise<void> | null = null;

  constructor(parts: LoopParts) {
    this.#o = parts.options;
    this.#health = parts.health;
    this.#rctx = parts.rctx;
    const stop = this.#stopClaiming.signal;
    const lookout = this.#lookout = new Lookout({ ...parts, beat: () => this.#health.beat(), stop });
    this.runs = new Runs({
      ...parts.options,
      keeper: parts.keeper,
      onDue: () => lookout.expectDue(),
      onClaimable: () => lookout.insist(),
      stop,
    });
  }

  /** Something may be claimable: claim without waiting for the poll. */
  wake(): void {
    this.#lookout.hint();
  }

  /** Ends claiming; what has not begun is handed back. */
  stopClaiming(): void {
    this.#stopClaiming.abort();
    this.runs.endWaiting();
  }

  /** Claims until `stopClaiming`. Never throws. */
  async turn(): Promise<void> {
    const { clock } = this.#o;
    const stop = this.#stopClaiming.signal;
    let backoffMs = FIRST_BACKOFF_MS;
    let hinted = false;
    while (!stop.aborted) {
      this.#health.beat();
      const limit = this.#room();
      // While the second loop's claim is on its way, few slots are not worth one.
      if (limit <= 0 || (this.#asked > 0 && limit < BUSY_FROM)) {
        await this.#slotFreed();
        continue;
      }
      try {
        this.#health.asking();
        const found = await this.#look(limit, hinted);
        backoffMs = FIRST_BACKOFF_MS;
        this.#busy = limit >= BUSY_FROM && found === limit;
        if (this.#busy) this.#second ??= this.#claimBeside();
        this.#lookout.answered(found, hinted);
        hinted = found < limit && await this.#lookout.rest();
      } catch (error) {
        this.#busy = false;
        this.#health.failed("claim", error);
        this.#o.metrics.count("laneway_claim_failures_total");
        // No wake-up shortens this: a hint says nothing of whether the database is back.
        await clock.sleep(backoffMs * (0.5 + Math.random() / 2), stop);
        backoffMs = Math.min(backoffMs * 2, LONGEST_BACKOFF_MS);
      }
    }
    await this.#second;
  }

  /**
   * Claims, with what has become due in reach. A hint tells of what is in reach already: that claim does not wait for the
   * others to be moved there, and they are looked for right behind it.
   *
   * @returns How many items the runs took.
   */
  async #look(limit: number, hinted: boolean): Promise<number> {
    const promoted = this.#promoted;
    this.#promoted = 0;
    if (!hinted) return await this.#claim(limit, promoted + await this.#lookout.prepare());
    const [moving, claiming] = await Promise.allSettled([this.#lookout.prepare(), this.#claim(limit, promoted)]);
    if (moving.status === "rejected") throw moving.reason;
    if (claiming.status === "rejected") throw claiming.reason;
    this.#promoted = moving.value;
    if (moving.value > 0) this.#lookout.insist();
    return claiming.value;
  }

  /**
   * A second loop of claims, as long as those of the first come back full: while this process begins what one claim
   * brought, the database makes the next one. A failure ends it, and is left to the first to meet.
   */
  async #claimBeside(): Promise<void> {
    try {
      while (this.#busy && !this.#stopClaiming.signal.aborted) {
        const limit = this.#room();
        if (limit < BUSY_FROM) await this.#slotFreed();
        else if (await this.#claim(limit, 0) < limit) break;
      }
    } catch (error) {
      this.#health.failed("claim", error);
    } finally {
      this.#second = null;
    }
  }

  /** How many items to ask for now. */
  #room(): number {
    const room = Math.min(this.runs.room() - this.#asked, CLAIM_BATCH);
    // A lost claim is looked for by a full worker too, which hands back what it finds: left alone it would expire.
    return this.#unsure ? Math.max(room, 1) : room;
  }

  async #slotFreed(): Promise<void> {
    const { clock, heartbeatMs } = this.#o;
    const stop = this.#stopClaiming.signal;
    await this.runs.slotFreed.within(heartbeatMs / 2, { clock, stop });
    // Handlers that end together free their slots one after the other in this turn of the event loop: claim for all.
    await clock.sleep(0, stop);
  }

  /** @returns How many items the runs took. */
  async #claim(limit: number, promoted: number): Promise<number> {
    const { clock, managers, lane, kinds, worker, leaseMs, claimOrder: order } = this.#o;
    this.#asked += limit;
    let taken: Promise<number>;
    try {
      const sentAt = { monotonicMs: clock.monotonic(), wallMs: clock.now() };
      const claimed = await managers.work.claim(this.#rctx, { lane, kinds, worker, leaseMs, limit, order });
      this.#unsure = false;
      this.#health.answered("claim");
      // Due now and not taken here: others may have slept past it.
      if (promoted > claimed.length) void this.#o.topics.publish("WORK_AVAILABLE", { lane: null });
      taken = this.#take({ sentAt, claimed });
    } catch (error) {
      this.#unsure ||= error instanceof UnavailableError && error.outcome === "unknown";
      throw error;
    } finally {
      // From here on they count as held.
      this.#asked -= limit;
      if (this.#second !== null) this.runs.slotFreed.fire();
    }
    return await taken;
  }

  /** Hands what was claimed to the runs, or back. @returns How many items the runs took. */
  async #take({ claimed, sentAt }: Claim): Promise<number> {
    const { clock, metrics, lane, leaseMs } = this.#o;
    if (this.#stopClaiming.signal.aborted) {
      // The signal came while the claim was on its way: nothing begins any more.
      await this.runs.returnUnstarted(claimed, "handed back: its worker was stopped");
      return 0;
    }
    if (Math.max(clock.monotonic() - sentAt.monotonicMs, clock.now() - sentAt.wallMs) >= leaseMs / 2) {
      // The lease keeper would stop a run this old: none is begun on what may be somebody else's by now.
      await this.runs.returnUnstarted(claimed, "handed back: its claim was answered late");
      return 0;
    }
    for (const { item } of claimed) metrics.count("laneway_items_claimed_total", { kind: item.kind, lane });
    return await this.runs.take(claimed, sentAt);
  }
}
