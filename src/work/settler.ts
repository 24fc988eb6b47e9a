/**
 * The settling half of the work manager: every write after a claim, many as one statement, each under its own token.
 *
 * @module
 */
import { Batcher, type BatchOutcome } from "../core/batch.ts";
import { ConflictError, invariant, ValidationError } from "../core/errors.ts";
import type { ClaimRef, Settlement, WorkStorage, WriteOutcome } from "./storage.ts";
import type { WorkItem } from "./types.ts";

/** The most rows of one settling statement. */
const MAX_BATCH = 500;

/** One batch is filled while another is on its way; more in flight would only make them smaller. */
const BATCHES_IN_FLIGHT = 2;

/** How a claim that was held ended. */
type Settled = Exclude<WriteOutcome, "REFUSED">;

/** Settles claims in batches; each caller gets its own outcome. */
export class Settler {
  readonly #storage: WorkStorage;
  /** Completions go by themselves: their statement is another one, and what harms the others must not make it unsure. */
  readonly #completions: Batcher<Settlement, void>;
  readonly #others: Batcher<Settlement, Settled>;

  constructor(storage: WorkStorage) {
    this.#storage = storage;
    const options = { maxSize: MAX_BATCH, concurrency: BATCHES_IN_FLIGHT };
    this.#completions = new Batcher({
      ...options,
      run: async (settlements) => (await this.#run(settlements)).map((told) => told.ok ? COMPLETED : told),
    });
    this.#others = new Batcher({ ...options, run: (settlements) => this.#run(settlements) });
  }

  /**
   * Completes one claim; repeating it is success. Neither this nor its caller is async: it is what happens to nearly every
   * item, and each promise between costs a tenth of what the rest of a run does.
   *
   * @throws {ConflictError} The claim is no longer held; nothing was written.
   * @throws {UnavailableError} As storage; repeating is safe.
   */
  complete(orgId: string, item: WorkItem, keep: boolean): Promise<void> {
    const { id, claimToken: token } = item;
    if (token === null) return Promise.reject(unclaimed(item));
    return this.#completions.add({ orgId, id, token, to: "done", keep });
  }

  /**
   * Settles one claim in any other way.
   *
   * @returns `ALREADY` when the item was finished in this way before, by a write whose answer was lost.
   * @throws {ConflictError} The claim is no longer held; nothing was written.
   * @throws {UnavailableError} As storage; repeating is safe, a finished item tells a repeat from a stale holder.
   */
  settle(settlement: Exclude<Settlement, { to: "done" }>): Promise<Settled> {
    return this.#others.add(settlement);
  }

  async #run(settlements: readonly Settlement[]): Promise<BatchOutcome<Settled>[]> {
    try {
      const outcomes = await this.#storage.settle(settlements);
      invariant(outcomes.length === settlements.length, "every settlement has an outcome");
      return settlements.map((settlement, n) => judge(settlement, outcomes[n]));
    } catch (error) {
      if (!(error instanceof ValidationError) || settlements.length === 1) throw error;
      return await this.#runSingly(settlements);
    }
  }

  /** One row's data harmed the statement: each goes by itself, so that it harms no other. */
  async #runSingly(settlements: readonly Settlement[]): Promise<BatchOutcome<Settled>[]> {
    const outcomes: BatchOutcome<Settled>[] = [];
    for (const settlement of settlements) {
      try {
        const [value] = await this.#storage.settle([settlement]);
        outcomes.push(judge(settlement, value));
      } catch (error) {
        outcomes.push({ ok: false, error });
      }
    }
    return outcomes;
  }
}

/** Names the claim an item is held under. @throws {ConflictError} The item carries no token: it was never claimed. */
export function claimRef(orgId: string, item: WorkItem): ClaimRef {
  if (item.claimToken === null) throw unclaimed(item);
  return { orgId, id: item.id, token: item.claimToken };
}

function unclaimed(item: WorkItem): ConflictError {
  return new ConflictError(`Cannot write item ${item.id}: it carries no claim token, so nobody holds it`);
}

const COMPLETED: BatchOutcome<void> = { ok: true, value: undefined };

function judge(settlement: Settlement, outcome: WriteOutcome = "REFUSED"): BatchOutcome<Settled> {
  return outcome === "REFUSED" ? { ok: false, error: refusal(settlement) } : { ok: true, value: outcome };
}

function refusal(settlement: Settlement): ConflictError {
  const wish = { done: "complete", failed: "dead-letter", retry: "fail", back: "hand back" }[settlement.to];
  return new ConflictError(
    `Cannot ${wish} item ${settlement.id}: its lease has passed or another claim holds it; this run's outcome is dropped`,
  );
}
