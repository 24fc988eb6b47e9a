/**
 * Between two claims: waits for a hint, the poll or the earliest due time, and moves due items into the claim's reach.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import { Signal } from "./signal.ts";
import type { WorkerRuntimeOptions } from "./types.ts";
import { Wakes } from "./wakes.ts";

const PROMOTE_BATCH = 1_000;
const IDLE_POLL_MS = 30_000;
/** How much of a poll passes between two promotions that nothing led to. */
const PROMOTE_SHARE = 0.75;

/** What a `Lookout` is made of, beside the worker's own options. */
export interface LookoutParts {
  readonly options: WorkerRuntimeOptions;
  readonly rctx: RequestContext;
  /** Called as long as it waits, at least twice a heartbeat. */
  readonly beat: () => void;
  /** Ends every wait. */
  readonly stop: AbortSignal;
}

/** Waits for work on behalf of the loop. */
export class Lookout {
  readonly #o: WorkerRuntimeOptions;
  readonly #parts: LookoutParts;
  readonly #wakes: Wakes;
  /** Something may be claimable. */
  readonly #hint = new Signal();
  #promotedAtMs = -Infinity;
  #promoteAtMs = 0;

  constructor(parts: LookoutParts) {
    this.#parts = parts;
    this.#o = parts.options;
    const { pollMs, idlePollMs = IDLE_POLL_MS } = parts.options;
    this.#wakes = new Wakes({ pollMs, idlePollMs });
  }

  /** Something may be claimable: somebody said so. */
  hint(): void {
    this.#hint.fire();
  }

  /** Something is claimable: looks at once, whatever hints were worth lately. */
  insist(): void {
    this.#wakes.forgetMisses();
    this.#hint.fire();
  }

  /** Something will be claimable at a time that is not known here: asks for it within a poll. */
  expectDue(): void {
    this.#wakes.hinted();
    this.#promoteAtMs = Math.min(this.#promoteAtMs, this.#promotedAtMs + this.#o.pollMs * PROMOTE_SHARE);
  }

  /**
   * To be called before each claim. What was hinted until now is what this claim looks for; items that have become due are
   * moved into its reach, no oftener than a poll unless something is known to fall due.
   *
   * @returns How many were moved, of whatever lane.
   */
  async prepare(): Promise<number> {
    const { clock, managers } = this.#o;
    // What a hint tells of may have a start in the future.
    if (this.#hint.take()) this.expectDue();
    if (clock.monotonic() < this.#promoteAtMs) return 0;
    const { promoted, nextDueInMs } = await managers.work.promote(this.#parts.rctx, PROMOTE_BATCH);
    const pollMs = this.#wakes.pollMs(this.#listening) * PROMOTE_SHARE;
    const inMs = promoted === PROMOTE_BATCH ? 0 : Math.min(pollMs, nextDueInMs ?? pollMs);
    this.#promotedAtMs = clock.monotonic();
    this.#promoteAtMs = this.#promotedAtMs + inMs;
    return promoted;
  }

  /** To be called with each claim's answer: how many items it found, and whether a hint had led to it. */
  answered(found: number, hinted: boolean): void {
    this.#wakes.answered(this.#o.clock.monotonic(), { found, hinted });
  }

  /**
   * Until a hint, the jittered poll, or the earliest due time, whichever is first, as `Wakes` has it. Beats while it waits,
   * and sees within a poll when hints no longer arrive.
   *
   * @returns Whether a hint leads to the next look.
   */
  async rest(): Promise<boolean> {
    const { clock, pollMs, heartbeatMs } = this.#o;
    const { stop } = this.#parts;
    const restedMs = clock.monotonic();
    let hinted = false;
    while (!stop.aborted) {
      const lookAtMs = this.#wakes.lookAtMs({ hinted, listening: this.#listening });
      const leftMs = Math.min(lookAtMs, Math.max(this.#promoteAtMs, restedMs + 1)) - clock.monotonic();
      if (leftMs <= 0) return hinted;
      this.#parts.beat();
      const restMs = Math.min(leftMs, heartbeatMs / 2, pollMs);
      if (hinted) {
        await clock.sleep(restMs, stop);
      } else if (await this.#hint.within(restMs, { clock, stop })) {
        hinted = true;
        this.expectDue();
      }
    }
    return hinted;
  }

  get #listening(): boolean {
    return this.#o.topics.listening ?? false;
  }
}
