/**
 * Gathers calls that wait into one: while a batch is in flight the next one fills, so a lone call leaves at once and
 * no timer stands in its way. The idea is common to River's batch completer and graphile-worker's completion batches,
 * here without their ticker.
 *
 * @module
 */

/** How a `Batcher` runs. */
export interface BatcherOptions<In, Out> {
  /** Runs one batch; must return one outcome for each input, in order, or throw for all of them. */
  run(inputs: readonly In[]): Promise<readonly BatchOutcome<Out>[]>;
  /** The most inputs of one batch. */
  maxSize: number;
  /** How many batches may be in flight at once. Default 1. */
  concurrency?: number;
}

/** What became of one input of a batch. */
export type BatchOutcome<Out> = { readonly ok: true; readonly value: Out } | {
  readonly ok: false;
  readonly error: unknown;
};

interface Waiting<In, Out> {
  readonly input: In;
  resolve(value: Out): void;
  reject(error: unknown): void;
}

/** One caller's input goes in, its own outcome comes out; what lies between is one statement for many. */
export class Batcher<In, Out> {
  readonly #options: BatcherOptions<In, Out>;
  #waiting: Waiting<In, Out>[] = [];
  #inFlight = 0;
  #scheduled = false;

  constructor(options: BatcherOptions<In, Out>) {
    this.#options = options;
  }

  /** How many inputs wait for a batch to leave. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Adds one input; settles with its own outcome. */
  add(input: In): Promise<Out> {
    return new Promise<Out>((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= (this.#options.concurrency ?? 1)) return;
    this.#scheduled = true;
    // One microtask later: calls made in the same turn leave together.
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#waiting.length === 0 || this.#inFlight >= (this.#options.concurrency ?? 1)) return;
    const batch = this.#waiting.slice(0, this.#options.maxSize);
    this.#waiting = this.#waiting.slice(batch.length);
    this.#inFlight++;
    this.#run(batch).finally(() => {
      this.#inFlight--;
      if (this.#waiting.length > 0) this.#flush();
    });
    if (this.#waiting.length > 0) this.#schedule();
  }

  async #run(batch: readonly Waiting<In, Out>[]): Promise<void> {
    let outcomes: readonly BatchOutcome<Out>[];
    try {
      outcomes = await this.#options.run(batch.map((w) => w.input));
      if (outcomes.length !== batch.length) {
        throw new Error(`a batch of ${batch.length} came back with ${outcomes.length} outcomes`);
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
      return;
    }
    batch.forEach((waiting, i) => {
      const outcome = outcomes[i];
      if (outcome === undefined) return;
      if (outcome.ok) waiting.resolve(outcome.value);
      else waiting.reject(outcome.error);
    });
  }
}
