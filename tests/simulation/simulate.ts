/**
 * `deno task simulate`: runs seeds, and says of a failing one what happened last and how to see it again.
 *
 *     deno task simulate --seed 7 --steps 3000            one seed
 *     deno task simulate --seeds 2000                     that many, from --seed on
 *     deno task simulate --mutations                      proves that it can find bugs (tests/simulation/mutations.md)
 *
 * @module
 */
import { parseArgs } from "node:util";
import { DEFAULT_STEPS, describeFailure, runSeeds } from "./seeds.ts";
import { runMutations } from "./mutate.ts";

const HELP = `Runs worlds of workers under seeded schedules and faults, and judges every change beneath the product.

  deno task simulate [options]

  --seed N       the first seed. Default 1.
  --seeds K      how many, one after the other. Default 1.
  --steps M      of each, at most. Default ${DEFAULT_STEPS}.
  --quiet        leaves out what was met how often.
  --mutations    proves that it can find faults: each mutation of the product, up to --seeds (200) seeds.
  --only TEXT    of the mutations those whose description holds the text.
  --help         this text.

Exit codes: 0 no finding, 1 one, with the command that shows it again, 2 a wrong argument.`;

function readArgs() {
  try {
    return parseArgs({
      options: {
        seed: { type: "string" },
        seeds: { type: "string" },
        steps: { type: "string" },
        mutations: { type: "boolean" },
        only: { type: "string" },
        quiet: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    console.error(`simulate: ${error instanceof Error ? error.message : error}. See --help.`);
    Deno.exit(2);
  }
}

const values = readArgs();
if (values.help === true) {
  console.log(HELP);
  Deno.exit(0);
}

function whole(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isSafeInteger(value) || value < 0) {
    console.error(`Cannot use --${name} ${text}: it must be a whole number, 0 or above`);
    Deno.exit(2);
  }
  return value;
}

const steps = whole("steps", values.steps, DEFAULT_STEPS);
const seed = whole("seed", values.seed, 1);
if (values.mutations === true) {
  Deno.exit(await runMutations({ seeds: whole("seeds", values.seeds, 200), steps, only: values.only }) ? 0 : 1);
}
const count = whole("seeds", values.seeds, 1);
const summary = await runSeeds({ from: seed, count, steps });
if (summary.failed !== null) {
  console.error(describeFailure(summary.failed, steps));
  Deno.exit(1);
}
console.log(summary.text);
if (count === 1) console.log(`trace ${summary.hash}`);
if (values.quiet !== true) {
  for (const [what, n] of [...summary.seen].sort()) console.log(`  ${String(n).padStart(8)} ${what}`);
}
