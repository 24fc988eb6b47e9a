/**
 * Handles `HANDLE_SAMPLE_RECORD`: makes the effect, then marks the sample record.
 *
 * A crash between the two makes the effect again, under the same id, so that its receiver can drop it. The mark is a
 * compare-and-set on the record's version: the lease and the claim token guard the item, never the record.
 *
 * @module
 */
import {
  ConflictError,
  Deferral,
  eitherOf,
  FinalError,
  NotFoundError,
  type OpContext,
  type WorkHandler,
  type WorkItem,
  type WorkKind,
  type WorkRun,
} from "laneway";
import type { HandleSampleRecordEffect } from "./effect.ts";
import { HANDLE_SAMPLE_RECORD, type HandleSampleRecordPayload } from "./kind.ts";
import type { SampleRecord, SampleRecordManager } from "./sample_records/types.ts";

/** What the handler works with. */
export interface HandleSampleRecordOptions {
  readonly sampleRecords: Pick<SampleRecordManager, "read" | "markDone">;
  readonly effect: HandleSampleRecordEffect;
  /** The longest one effect may take, milliseconds. */
  readonly timeoutMs: number;
}

// A record that other writers keep moving is left to a later attempt.
const MAX_TRIES = 5;

/** Handles `HANDLE_SAMPLE_RECORD`. */
export class HandleSampleRecordHandler implements WorkHandler<HandleSampleRecordPayload> {
  readonly kind: WorkKind<HandleSampleRecordPayload> = HANDLE_SAMPLE_RECORD;
  readonly #o: HandleSampleRecordOptions;

  constructor(options: HandleSampleRecordOptions) {
    this.#o = options;
  }

  /**
   * Makes the effect unless the record is marked, then marks it. Safe to repeat.
   *
   * @throws {FinalError} The record does not exist.
   */
  async handle(ctx: OpContext, item: WorkItem<HandleSampleRecordPayload>, run: WorkRun): Promise<void | Deferral> {
    const sampleRecord = await this.#read(ctx, item.payload.sampleRecordId);
    // Run before: by this item, whose completion was lost, or by another one.
    if (sampleRecord.status === "done") return;
    const ended = await this.#perform(ctx, sampleRecord, run);
    if (ended instanceof Deferral) return ended;
    await this.#mark(ctx, sampleRecord);
  }

  /** Makes the effect, cut by the run's signal and by its own time limit. */
  async #perform(ctx: OpContext, sampleRecord: SampleRecord, run: WorkRun): Promise<void | Deferral> {
    const { effect, timeoutMs } = this.#o;
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(new Error(`The effect took longer than ${timeoutMs} ms`)), timeoutMs);
    using either = eitherOf(run.signal, limit.signal);
    try {
      either.signal.throwIfAborted();
      return await effect.perform(ctx, sampleRecord, { effectId: sampleRecord.effectId, signal: either.signal });
    } finally {
      clearTimeout(timer);
    }
  }

  async #read(ctx: OpContext, id: string): Promise<SampleRecord> {
    try {
      return await this.#o.sampleRecords.read(ctx, id);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      throw new FinalError(`Cannot handle what does not exist: ${error.message}`, { cause: error });
    }
  }

  /** Marks under the version that was read; where another was faster reads again, unless that leaves nothing to do. */
  async #mark(ctx: OpContext, read: SampleRecord): Promise<void> {
    let sampleRecord = read;
    for (let tries = 1; sampleRecord.status !== "done"; tries++) {
      try {
        await this.#o.sampleRecords.markDone(ctx, sampleRecord.id, sampleRecord.version);
        return;
      } catch (error) {
        if (!(error instanceof ConflictError) || tries === MAX_TRIES) throw error;
        sampleRecord = await this.#read(ctx, sampleRecord.id);
      }
    }
  }
}
