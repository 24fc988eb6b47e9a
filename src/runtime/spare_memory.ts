/**
 * Gives back what starting took: parsed modules, schemas, the first connections. Left alone, the engine keeps 4 MB of it for
 * as long as the worker is idle, as nothing is allocated that would make it look.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";

/** How memory is given back. */
export interface SpareMemoryOptions {
  readonly clock: Clock;
  readonly stop: AbortSignal;
  /** Whether items run: the pause, some 20 ms, is not made beside them. */
  readonly isBusy: () => boolean;
  /** Default the engine's own, which only a binary made with `--expose-gc` has; without one nothing is done. */
  readonly collect?: (() => void) | undefined;
}

const FIRST_LOOK_MS = 1_500;
const LOOK_MS = 5_000;

/** Collects once, when the worker is first seen idle. */
export async function giveBackOnce(options: SpareMemoryOptions): Promise<void> {
  const { clock, stop, isBusy, collect = engineCollect() } = options;
  if (collect === undefined) return;
  await clock.sleep(FIRST_LOOK_MS, stop);
  while (!stop.aborted && isBusy()) await clock.sleep(LOOK_MS, stop);
  if (!stop.aborted) collect();
}

function engineCollect(): (() => void) | undefined {
  const { gc } = globalThis as { gc?: (how: Readonly<Record<string, string>>) => void };
  if (typeof gc !== "function") return undefined;
  return () => gc({ type: "major", execution: "sync", flavor: "last-resort" });
}
