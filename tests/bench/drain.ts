/**
 * Drain: a worker process meets a full queue. The clock runs from the worker's start to the last row done in the database.
 *
 * @module
 */
import type { Contender } from "./contenders.ts";
import type { BenchProcess } from "./process.ts";
import { type Bench, Stage } from "./stage.ts";
import type { Counts } from "./truth.ts";

/** What one drain took. */
export interface DrainFigures {
  readonly items: number;
  readonly perSecond: number;
  /** Processor time of the worker's process, microseconds an item. */
  readonly clientCpuUs: number;
  /** Processor time of the server's processes, microseconds an item; null without a server. */
  readonly serverCpuUs: number | null;
  /** Write-ahead log, bytes an item; null without a server. */
  readonly walBytes: number | null;
  /** The most memory the worker's process held, MiB. */
  readonly peakMiB: number;
}

/** Thrown when the database does not say what the figure would. */
export class MismatchError extends Error {}

/** Thrown by a contender whose class does not hold in this build. */
export class LeftOutError extends Error {}

// Between two looks at the database once every handler has run.
const LOOK_MS = 5;
const DONE_MS = 60_000;

/** Fills and drains once. @throws {MismatchError} Items are left, lost, or ran other than once. */
export async function drainOnce(
  contender: Contender,
  bench: Bench,
  options: { readonly items: number; readonly handlerMs: number },
): Promise<DrainFigures> {
  const { items, handlerMs } = options;
  const stage = await Stage.open(contender, bench);
  try {
    const worker = await stage.fill(items);
    const [before, serverBefore] = [worker.use(), await bench.server.use()];
    const startMs = performance.now();
    await worker.ask("work", { expected: items, handlerMs });
    const ran = await worker.ask("ran");
    const counts = await untilDone(stage, worker);
    const tookMs = performance.now() - startMs;
    const [after, serverAfter] = [worker.use(), await bench.server.use()];
    checkTruth(contender, { items, counts, runs: Number(ran.runs), once: Number(ran.once) });
    const onServer = contender.engine === "postgres";
    return {
      items,
      perSecond: items / tookMs * 1_000,
      clientCpuUs: (after.cpuMs - before.cpuMs) * 1_000 / items,
      serverCpuUs: onServer ? (serverAfter.cpuMs - serverBefore.cpuMs) * 1_000 / items : null,
      walBytes: onServer ? (serverAfter.walBytes - serverBefore.walBytes) / items : null,
      peakMiB: after.peakMiB,
    };
  } finally {
    await stage.close();
  }
}

async function untilDone(stage: Stage, worker: BenchProcess): Promise<Counts> {
  const untilMs = performance.now() + DONE_MS;
  for (;;) {
    const counts = await stage.count(worker);
    if (counts.left === 0 || performance.now() > untilMs) return counts;
    await new Promise((again) => setTimeout(again, LOOK_MS));
  }
}

/** What a drain says of itself and what the database says of it. */
export interface Truth {
  readonly items: number;
  readonly counts: Counts;
  readonly runs: number;
  /** Ids that ran exactly once. */
  readonly once: number;
}

/**
 * Holds a drain to the database.
 *
 * @throws {MismatchError} Items are left, failed, lost, or ran other than once.
 * @throws {LeftOutError} This build keeps finished rows where it was told to keep none.
 */
export function checkTruth(
  contender: Pick<Contender, "id" | "family" | "retention">,
  { items, counts, runs, once }: Truth,
): void {
  const kept = contender.retention === "keep" ? items : 0;
  const wrong = [
    counts.left === 0 ? null : `${counts.left} items are left`,
    counts.failed === 0 ? null : `${counts.failed} items failed`,
    runs === items ? null : `${runs} handlers ran`,
    once === items ? null : `${once} ids ran exactly once`,
  ].filter((line) => line !== null);
  if (wrong.length > 0) {
    throw new MismatchError(`${contender.id}: of ${items} items ${wrong.join(", ")}: the figure is void`);
  }
  if (counts.finished === kept) return;
  const rows = `${counts.finished} finished rows are kept where ${kept} should be`;
  if (contender.family === "laneway" && contender.retention === "delete") {
    throw new LeftOutError(`${contender.id} is left out: ${rows}, so this build has no such mode`);
  }
  throw new MismatchError(`${contender.id}: ${rows}: the figure is void`);
}
