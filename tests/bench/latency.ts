/**
 * From enqueue to the start of the handler, producer and worker in two processes.
 *
 * The worker is idle but for a paced producer, or loaded: LOADED_PER_SECOND for every contender, about half of what the
 * slowest drains at its defaults. It is one rate for all, so that they can be compared; half of what each drains in
 * batches is more than any producer can enqueue one by one.
 *
 * @module
 */
import type { Contender } from "./contenders.ts";
import { MismatchError } from "./drain.ts";
import type { BenchProcess } from "./process.ts";
import { type Bench, Stage } from "./stage.ts";
import { quantile } from "./statistics.ts";

/** Enqueues a second while idle. */
export const IDLE_PER_SECOND = 50;
/** Enqueues a second under load. */
export const LOADED_PER_SECOND = 400;

const IDLE_SAMPLES = 400;
const LOADED_SAMPLES = 1_600;
const WARM_UP = 50;
// A worker of any kind listens within this.
const LISTENING_MS = 1_000;
const SYNCS = 50;

/** Latencies of one round, milliseconds. */
export interface LatencyFigures {
  readonly samples: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Measures one contender idle and loaded. @throws {MismatchError} An item ran other than once, or not at all. */
export async function latencyOnce(
  contender: Contender,
  bench: Bench,
  scale: number,
): Promise<{ readonly idle: LatencyFigures; readonly loaded: LatencyFigures }> {
  const size = (samples: number) => Math.max(Math.round(samples * scale), 20);
  const [idle, loaded] = [size(IDLE_SAMPLES), size(LOADED_SAMPLES)];
  const stage = await Stage.open(contender, bench, contender.latency);
  try {
    const producer = await stage.spawnProducer();
    const worker = await stage.spawn();
    const expected = WARM_UP + idle + loaded;
    await worker.ask("work", { expected, handlerMs: 0 });
    await new Promise((listening) => setTimeout(listening, LISTENING_MS));
    const ahead = await clockAhead(worker) - await clockAhead(producer);
    await producer.ask("produce", { count: WARM_UP, perSecond: IDLE_PER_SECOND });
    const idleSent = await producer.ask("produce", { count: idle, perSecond: IDLE_PER_SECOND, from: WARM_UP });
    const loadedSent = await producer.ask("produce", {
      count: loaded,
      perSecond: LOADED_PER_SECOND,
      from: WARM_UP + idle,
    });
    await worker.ask("ran");
    const ran = await worker.ask("starts");
    if (ran.runs !== expected || ran.once !== expected) {
      throw new MismatchError(`${contender.id}: ${ran.once} of ${expected} ids ran exactly once: the figure is void`);
    }
    const started = (ran.startedMs as number[]).map((atMs) => atMs - ahead);
    return {
      idle: figures(idleSent.sentMs as number[], started.slice(WARM_UP)),
      loaded: figures(loadedSent.sentMs as number[], started.slice(WARM_UP + idle)),
    };
  } finally {
    await stage.close();
  }
}

function figures(sentMs: readonly number[], startedMs: readonly number[]): LatencyFigures {
  const latencies = sentMs.map((sent, n) => (startedMs[n] ?? NaN) - sent);
  const at = (q: number) => quantile(latencies, q);
  return { samples: latencies.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/**
 * How far a process's clock is ahead of ours. Both count from their own start and neither drifts; of many questions the
 * one answered fastest tells most.
 */
async function clockAhead(process: BenchProcess): Promise<number> {
  let best = { tripMs: Infinity, ahead: 0 };
  for (let i = 0; i < SYNCS; i++) {
    const askedMs = performance.now();
    const { nowMs } = await process.ask("now");
    const tripMs = performance.now() - askedMs;
    if (tripMs < best.tripMs) best = { tripMs, ahead: Number(nowMs) - (askedMs + tripMs / 2) };
  }
  return best.ahead;
}
