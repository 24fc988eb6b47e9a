/**
 * Enqueues: one process, nobody working, the clock in the producer; the rows counted in the database afterwards.
 *
 * @module
 */
import type { Contender } from "./contenders.ts";
import { MismatchError } from "./drain.ts";
import { type Bench, Stage } from "./stage.ts";

/** One way of enqueueing. */
export interface EnqueueShape {
  /** Its name in the results. */
  readonly key: string;
  /** For people. */
  readonly name: string;
  /** Items a call. */
  readonly per: number;
  /** Calls in flight. */
  readonly concurrent: number;
  /** Items at full scale. */
  readonly items: number;
}

/** Every way that is measured. */
export const ENQUEUE_SHAPES: readonly EnqueueShape[] = [
  { key: "single", name: "one a call, one after the other", per: 1, concurrent: 1, items: 600 },
  { key: "concurrent", name: "one a call, 10 at once", per: 1, concurrent: 10, items: 3_000 },
  { key: "bulk100", name: "100 a call", per: 100, concurrent: 1, items: 10_000 },
  { key: "bulk1000", name: "1,000 a call", per: 1_000, concurrent: 1, items: 30_000 },
  { key: "bulk20000", name: "20,000 a call", per: 20_000, concurrent: 1, items: 40_000 },
];

/** Enqueues in every shape into one store. @returns Items a second by shape. @throws {MismatchError} Rows are missing. */
export async function enqueueOnce(contender: Contender, bench: Bench, scale: number): Promise<Record<string, number>> {
  const stage = await Stage.open(contender, bench);
  try {
    const producer = await stage.spawnProducer();
    // The first calls compile and connect.
    let enqueued = await warmUp(producer);
    const rates: Record<string, number> = {};
    for (const { key, per, concurrent, items } of ENQUEUE_SHAPES) {
      const count = Math.max(Math.round(items * Math.min(scale, 1) / per), 1) * per;
      const { ms } = await producer.ask("enqueue", { count, per, concurrent, from: enqueued });
      rates[key] = count / Number(ms) * 1_000;
      enqueued += count;
    }
    const { left, finished } = await stage.count(producer);
    if (left !== enqueued || finished !== 0) {
      throw new MismatchError(`${contender.id}: ${left} items wait of ${enqueued} enqueued: the figure is void`);
    }
    return rates;
  } finally {
    await stage.close();
  }
}

async function warmUp(producer: { ask(command: string, details: Record<string, unknown>): Promise<unknown> }) {
  await producer.ask("enqueue", { count: 100, per: 1, concurrent: 10 });
  await producer.ask("enqueue", { count: 200, per: 100, from: 100 });
  return 300;
}
