/**
 * What is given bad input, and how it is run: the corpus of what once failed first, then as much as is asked for.
 *
 * Inputs are plain JSON, so that one that failed can be kept: what JSON does not hold is written down as a recipe
 * (`recipes.ts`).
 *
 * @module
 */
import fc from "fast-check";

/** Something that takes input. */
export interface Target<I> {
  /** Names it, and its file in `corpus/`. */
  readonly name: string;
  /** What it must do, as a test's name. */
  readonly behaviour: string;
  readonly inputs: fc.Arbitrary<I>;
  open(): Promise<Session<I>> | Session<I>;
}

/** An open target. */
export interface Session<I> {
  /** Gives it one input. @throws What it must not do. */
  run(input: I): Promise<void> | void;
  close(): Promise<void> | void;
}

/** How long it is run. */
export interface FuzzRun {
  readonly runs: number;
  /** No input begins after so long, milliseconds. */
  readonly limitMs?: number;
  readonly seed?: number;
  /** Where in the seed a failure was. */
  readonly path?: string;
}

/** What came of it. */
export interface FuzzReport {
  readonly kept: number;
  readonly runs: number;
  readonly seconds: number;
  readonly seed: number;
  /** The input that failed, made small, and how; null: none did. */
  readonly failure: { readonly input: unknown; readonly text: string } | null;
}

/** One input that once failed. */
interface Kept {
  /** What was wrong then. */
  readonly why: string;
  readonly input: unknown;
}

function corpusOf({ name }: { readonly name: string }): URL {
  return new URL(`./corpus/${name}.json`, import.meta.url);
}

/** The inputs a target once failed at. */
export async function readCorpus(target: { readonly name: string }): Promise<Kept[]> {
  const text = await Deno.readTextFile(corpusOf(target)).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return "[]";
    throw error;
  });
  return JSON.parse(text);
}

/** Keeps an input that failed. */
export async function keep(target: { readonly name: string }, input: unknown, why: string): Promise<void> {
  const all = [...await readCorpus(target), { why, input }];
  await Deno.writeTextFile(corpusOf(target), JSON.stringify(all, null, 2) + "\n");
}

/** Runs a target: its corpus, then inputs drawn at random. */
export async function fuzz<I>(target: Target<I>, options: FuzzRun): Promise<FuzzReport> {
  const startedMs = performance.now();
  const session = await target.open();
  const seconds = () => (performance.now() - startedMs) / 1_000;
  try {
    const corpus = await readCorpus(target);
    for (const [n, { why, input }] of corpus.entries()) {
      const error = await failureOf(session, input as I);
      if (error === null) continue;
      const text = `input ${n} of its corpus (${why}): ${error}`;
      return { kept: n, runs: 0, seconds: seconds(), seed: 0, failure: { input, text } };
    }
    const details = await fc.check(
      fc.asyncProperty(target.inputs, async (input) => {
        const error = await failureOf(session, input);
        if (error !== null) throw new Error(error);
      }),
      parametersOf(options),
    );
    const report = { kept: corpus.length, runs: details.numRuns, seconds: seconds(), seed: details.seed };
    if (!details.failed) return { ...report, failure: null };
    const again = `deno task fuzz --target ${target.name} --seed=${details.seed} --path ${details.counterexamplePath}`;
    const why = (details.errorInstance as Error | null)?.message ?? "it ended early";
    return { ...report, failure: { input: details.counterexample?.[0], text: `${why}\nRun it again: ${again}` } };
  } finally {
    await session.close();
  }
}

function parametersOf({ runs, limitMs, seed, path }: FuzzRun): fc.Parameters<[unknown]> {
  return {
    numRuns: runs,
    ...(limitMs === undefined ? {} : { interruptAfterTimeLimit: limitMs, markInterruptAsFailure: false }),
    ...(seed === undefined ? {} : { seed }),
    ...(path === undefined ? {} : { path }),
  } as fc.Parameters<[unknown]>;
}

async function failureOf<I>(session: Session<I>, input: I): Promise<string | null> {
  try {
    await session.run(input);
    return null;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}` : String(error);
  }
}
