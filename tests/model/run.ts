/**
 * Runs sequences against the model and reports how many, how fast, and what failed.
 *
 * @module
 */
import fc from "fast-check";
import { compareAll, sequences } from "./commands.ts";
import type { Step, World } from "./step.ts";
import { openStore, type Store, type StoreName } from "./stores.ts";
import { WorkModel } from "./work_model.ts";

/** What is run. */
export interface ModelRun {
  readonly stores: readonly StoreName[];
  readonly runs: number;
  /** Default a random one. */
  readonly seed?: number;
  /** Where in the seed a failure was, as its report says. */
  readonly path?: string;
  readonly replayPath?: string;
  /** No sequence begins after so long, milliseconds. */
  readonly limitMs?: number;
  /** The most commands of a sequence. Default 60. */
  readonly commands?: number;
  /** Forgets a completed item at the end of each sequence, to see what a failure looks like. */
  readonly tamper?: boolean;
}

/** What came of it. */
export interface ModelReport {
  readonly runs: number;
  readonly commands: number;
  readonly seconds: number;
  readonly seed: number;
  /** What failed, with all it takes to run it again; null: nothing. */
  readonly failure: string | null;
}

/** Runs, with stores of its own. */
export async function runModel(options: ModelRun): Promise<ModelReport> {
  const stores = await Promise.all(options.stores.map(openStore));
  try {
    return await runOver(stores, options);
  } finally {
    for (const store of stores) await store.close();
  }
}

async function runOver(stores: readonly Store[], options: ModelRun): Promise<ModelReport> {
  const startedMs = performance.now();
  let commands = 0;
  const property = fc.asyncProperty(
    fc.boolean(),
    sequences(options.commands ?? 60, options.replayPath),
    async (elsewhere, sequence) => {
      const model = new WorkModel();
      await Promise.all(stores.map((store) => store.reset(model.nowMs)));
      const world: World = { stores, elsewhere, ids: new Set(), keys: new Set(), tokens: 0 };
      const counted = counting(sequence, () => commands++);
      await fc.asyncModelRun(() => ({ model, real: world }), counted);
      if (options.tamper) forgetDone(model);
      await compareAll(model, world);
    },
  );
  const { limitMs, seed, path } = options;
  const details = await fc.check(property, {
    numRuns: options.runs,
    endOnFailure: false,
    ...(limitMs === undefined ? {} : { interruptAfterTimeLimit: limitMs, markInterruptAsFailure: false }),
    ...(seed === undefined ? {} : { seed }),
    ...(path === undefined ? {} : { path }),
  });
  const seconds = (performance.now() - startedMs) / 1_000;
  return { runs: details.numRuns, commands, seconds, seed: details.seed, failure: failureOf(details, options) };
}

/** The same sequence, which counts what is run of it; it stays what shows and shrinks. */
function* counting(sequence: Iterable<Step>, count: () => void): Generator<Step> {
  for (const step of sequence) {
    count();
    yield step;
  }
}

function forgetDone({ items }: WorkModel): void {
  for (const [name, { item }] of items) if (item.status === "done") items.delete(name);
}

function failureOf(details: fc.RunDetails<[boolean, Iterable<Step>]>, { stores }: ModelRun): string | null {
  if (!details.failed) return null;
  const [elsewhere, sequence] = details.counterexample ?? [];
  const shown = String(sequence);
  const replayPath = /replayPath="([^"]*)"/.exec(shown)?.[1] ?? "";
  const again =
    `deno task model --store ${stores.join(",")} --seed=${details.seed} --path ${details.counterexamplePath} ` +
    `--replay "${replayPath}"`;
  const error = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance);
  return `seed ${details.seed}, path ${details.counterexamplePath}, ${details.numShrinks} shrinks\n` +
    `claims ${elsewhere ? "elsewhere" : "here"}: ${shown}\n${error}\nRun it again: ${again}`;
}
