/**
 * Runs seeds one after the other and tells of them.
 *
 * @module
 */
import { runSeed, type WorldReport } from "./world.ts";

/** Events with faults of one seed, unless said otherwise. */
export const DEFAULT_STEPS = 2_500;

/** What became of several seeds. */
export interface Summary {
  readonly seeds: number;
  readonly steps: number;
  readonly seconds: number;
  readonly failed: WorldReport | null;
  /** The last seed's trace hash. */
  readonly hash: string;
  readonly seen: ReadonlyMap<string, number>;
  readonly text: string;
}

/** Runs seeds until one fails. */
export async function runSeeds(
  { from, count, steps }: { readonly from: number; readonly count: number; readonly steps: number },
): Promise<Summary> {
  const startedMs = performance.now();
  const seen = new Map<string, number>();
  const sum = { seeds: 0, steps: 0, worldMs: 0, hash: "" };
  let failed: WorldReport | null = null;
  for (let seed = from; seed < from + count && failed === null; seed++) {
    const report = await runSeed(seed, steps);
    sum.seeds++;
    sum.steps += report.steps;
    sum.worldMs += report.worldMs;
    sum.hash = report.hash;
    for (const [what, n] of report.seen) seen.set(what, (seen.get(what) ?? 0) + n);
    if (report.failure !== null) failed = report;
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const text = `${sum.seeds} seeds, ${sum.steps} steps, ${Math.round(sum.worldMs / 1_000)} s of world time in ` +
    `${seconds.toFixed(1)} s: ${(sum.seeds / seconds).toFixed(1)} seeds/s, ${Math.round(sum.steps / seconds)} steps/s`;
  return { seeds: sum.seeds, steps: sum.steps, seconds, failed, hash: sum.hash, seen, text };
}

/** A failing seed: what, what happened last, and how to see it again. */
export function describeFailure({ seed, steps, worldMs, failure, last, hash }: WorldReport, asked: number): string {
  return [
    ...last,
    "",
    `seed ${seed} fails at step ${steps}, ${(worldMs / 1_000).toFixed(1)} s into its world (trace ${hash})`,
    `${failure?.checker}: ${failure?.message}`,
    `again: deno task simulate --seed ${seed} --steps ${asked}`,
  ].join("\n");
}
