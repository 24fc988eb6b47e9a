/**
 * What handling a sample record does to the world. **This is the file to make yours**: call your provider here.
 *
 * @module
 */
import type { Deferral, Logger, OpContext } from "laneway";
import type { SampleRecord } from "./sample_records/types.ts";

/** What one try of the effect is given. */
export interface EffectRun {
  /**
   * The same at every try, whichever item or worker makes it: hand it to the receiver as its idempotency key, since a crash
   * between the effect and its mark makes it again.
   */
  readonly effectId: string;
  /** Aborts when the time is up, the lease is lost or the worker stops: hand it to `fetch` and the like. */
  readonly signal: AbortSignal;
}

/** The effect. */
export interface HandleSampleRecordEffect {
  /**
   * Makes the effect. What it throws is tried again later, up to the item's attempts; `FinalError` is not; `defer(ms)`
   * returned tries again after that time, uncharged.
   */
  perform(ctx: OpContext, sampleRecord: SampleRecord, run: EffectRun): Promise<void | Deferral>;
}

/** Writes a line of the log, so that the whole way from creating to marking can be seen before there is a provider. */
export class LoggedEffect implements HandleSampleRecordEffect {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  perform(_ctx: OpContext, { id, reference }: SampleRecord, { effectId }: EffectRun): Promise<void> {
    this.#logger.info("handle_sample_record.performed", { sampleRecord: id, reference, effect: effectId });
    return Promise.resolve();
  }
}
