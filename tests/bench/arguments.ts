/**
 * The bench's command line.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { CONTENDERS } from "./contenders.ts";

/** What is measured, in the order it is. */
export const PARTS = ["drain", "sleep", "enqueue", "latency", "start", "fleet"] as const;

/** One kind of measure. */
export type Part = (typeof PARTS)[number];

/** What the bench was told. */
export interface BenchArguments {
  readonly help: boolean;
  /** Only render what was measured before. */
  readonly render: boolean;
  readonly rounds: number;
  /** Of the full size, above 0. */
  readonly scale: number;
  readonly parts: readonly Part[];
  /** Ids of contenders. */
  readonly contenders: readonly string[];
  /** Where results are written; null for nowhere. */
  readonly json: string | null;
}

/** Where a full run leaves its results, and `--render` takes them from. */
export const RESULTS = "tests/bench/results/latest.json";

/** Shown by `--help`. */
export const HELP = `Measures Laneway beside its peers on one Postgres server of its own, with full durability.

  deno task bench [options]

  --only PARTS        comma-separated: ${PARTS.join(", ")}. Default: all.
  --contenders IDS    comma-separated. Default: all. Without a peer among them nothing is installed.
                      ${CONTENDERS.map(({ id }) => id).join(", ")}
  --rounds N          rounds, 1 to 100; every contender runs once in each, the order rotated. Default 5.
  --scale F           of the full sizes, above 0 up to 10. Default 1.
  --quick             a smoke of a minute or two: --rounds 1 --scale 0.1, without fleet.
  --json FILE         where raw results are written. Default for a run of all parts and contenders: ${RESULTS};
                      for any other: nowhere.
  --render            measures nothing: renders README's tables, docs/bench.md and docs/bench.svg from
                      ${RESULTS} (or from --json FILE).
  --help              this text.

The report goes to standard output, progress to standard error. A full run takes about 25 minutes.
Exit codes: 0 measured, 1 a figure did not agree with the database or something failed, 2 a wrong argument.
Peers are installed once, by npm, into the user's cache folder.`;

/** A wrong argument; the message says which and what is accepted. */
export class ArgumentError extends Error {}

/** Reads the command line. @throws {ArgumentError} A wrong argument. */
export function parseArguments(args: readonly string[]): BenchArguments {
  const values = readOptions(args);
  const quick = values.quick === true;
  const parts = listOf("--only", values.only, PARTS) ?? PARTS.filter((part) => !quick || part !== "fleet");
  const contenders = listOf("--contenders", values.contenders, CONTENDERS.map(({ id }) => id)) ??
    CONTENDERS.map(({ id }) => id);
  const whole = !quick && values.only === undefined && values.contenders === undefined && values.scale === undefined;
  return {
    help: values.help === true,
    render: values.render === true,
    rounds: numberOf("--rounds", values.rounds ?? (quick ? "1" : "5"), { min: 1, max: 100, whole: true }),
    scale: numberOf("--scale", values.scale ?? (quick ? "0.1" : "1"), { min: 0, max: 10, whole: false }),
    parts,
    contenders,
    json: values.json ?? (whole || values.render === true ? RESULTS : null),
  };
}

function readOptions(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean", short: "h" },
        render: { type: "boolean" },
        quick: { type: "boolean" },
        rounds: { type: "string" },
        scale: { type: "string" },
        only: { type: "string" },
        contenders: { type: "string" },
        json: { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new ArgumentError(`Cannot read the arguments: ${error instanceof Error ? error.message : error}`);
  }
}

function listOf<T extends string>(flag: string, text: string | undefined, known: readonly T[]): T[] | null {
  if (text === undefined) return null;
  const named = text.split(",").map((entry) => entry.trim()).filter((entry) => entry !== "");
  const unknown = named.find((entry) => !(known as readonly string[]).includes(entry));
  if (named.length === 0 || unknown !== undefined) {
    throw new ArgumentError(`Cannot use ${flag} ${JSON.stringify(unknown ?? text)}: name some of ${known.join(", ")}`);
  }
  return known.filter((entry) => named.includes(entry));
}

function numberOf(
  flag: string,
  text: string,
  range: { readonly min: number; readonly max: number; readonly whole: boolean },
): number {
  const value = Number(text);
  const fits = range.whole ? Number.isInteger(value) && value >= range.min : value > range.min;
  if (text.trim() === "" || !fits || value > range.max) {
    const what = range.whole ? `a whole number from ${range.min}` : `a number above ${range.min}`;
    throw new ArgumentError(`Cannot use ${flag} ${JSON.stringify(text)}: it must be ${what} to ${range.max}`);
  }
  return value;
}
