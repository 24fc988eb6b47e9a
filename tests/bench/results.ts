/**
 * The results of a run: every round's raw figures, and what they were measured on. The report, README's tables and the
 * chart are all rendered from these.
 *
 * @module
 */
import type { Rounds } from "./statistics.ts";

/** One measure of one contender in one round. */
export interface Sample {
  /** `drain`, `sleep`, `enqueue`, `idle`, `loaded`, `start`, `fleet` or `calibration`. */
  readonly measure: string;
  /** The contender's id; `pgbench` for the calibration. */
  readonly contender: string;
  /** From 0. */
  readonly round: number;
  readonly figures: Readonly<Record<string, number | null>>;
}

/** What it was measured on. */
export interface Surroundings {
  /** The day, `2026-11-30`. */
  readonly date: string;
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGiB: number;
    /** The load of a minute before the run. */
    readonly load: number;
  };
  /** Of everything that took part. */
  readonly versions: Readonly<Record<string, string>>;
  /** Postgres settings, read from the server. */
  readonly server: Readonly<Record<string, string>>;
}

/** A whole run. */
export interface Results extends Surroundings {
  readonly rounds: number;
  readonly scale: number;
  /** How long it took. */
  readonly minutes: number;
  /** What was not measured, and why. */
  readonly leftOut: readonly string[];
  readonly samples: readonly Sample[];
}

/** One figure of one contender by round; null where a round lacks it. */
export function byRound(results: Results, measure: string, contender: string, figure: string): Rounds {
  return Array.from({ length: results.rounds }, (_, round) => {
    const sample = results.samples.find((one) =>
      one.measure === measure && one.contender === contender && one.round === round
    );
    return sample?.figures[figure] ?? null;
  });
}

/** The same without the rounds that lack it. */
export function allRounds(results: Results, measure: string, contender: string, figure: string): number[] {
  return byRound(results, measure, contender, figure).filter((value) => value !== null);
}

/** The file's text: one sample a line, so that two runs can be compared line by line. */
export function formatResults({ samples, ...head }: Results): string {
  const rounded = samples.map((sample) => ({
    ...sample,
    figures: Object.fromEntries(Object.entries(sample.figures).map(([name, value]) => [name, fourDigits(value)])),
  }));
  const lines = rounded.map((sample) => `    ${JSON.stringify(sample)}`).join(",\n");
  return `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "samples": [\n${lines}\n  ]\n}\n`;
}

/** Reads a file of results. @throws {Error} It is none. */
export function parseResults(text: string): Results {
  const results = JSON.parse(text) as Partial<Results>;
  if (!Array.isArray(results.samples) || typeof results.rounds !== "number") {
    throw new Error("Cannot read the results: they are not what the bench writes");
  }
  return results as Results;
}

// More would be noise, and a file of noise.
function fourDigits(value: number | null): number | null {
  if (value === null) return null;
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(4));
}
