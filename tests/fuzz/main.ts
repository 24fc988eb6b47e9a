/**
 * `deno task fuzz`: bad input, as much as asked for.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { fuzz, type FuzzRun, keep } from "./target.ts";
import { TARGETS } from "./targets.ts";

const HELP = `Gives bad input to whatever takes input. What once failed (tests/fuzz/corpus/) is tried first.

  deno task fuzz [options]

  --runs N         inputs of each target. Default 2000.
  --target NAMES   comma-separated: ${TARGETS.map(({ name }) => name).join(", ")}. Default: all.
  --seed S         begins where a failure began. Default: a random one, which is told.
  --path P         of a failure's report: runs what failed alone.
  --minutes M      of each target: begins no input after so long. Default: no limit.
  --keep           adds what fails to the corpus.
  --help           this text.

Exit codes: 0 nothing failed, 1 something did, 2 a wrong argument.`;

function refuse(why: string): never {
  console.error(`fuzz: ${why}; see --help`);
  Deno.exit(2);
}

function number(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : refuse(`Cannot use --${name} "${text}": it must be a number`);
}

function readArgs() {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  try {
    const options = { runs: text, target: text, seed: text, path: text, minutes: text, keep: flag, help: flag };
    return parseArgs({ args: Deno.args, options }).values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

const values = readArgs();
if (values.help) {
  console.log(HELP);
  Deno.exit(0);
}
const names = values.target?.split(",") ?? TARGETS.map(({ name }) => name);
const unknown = names.find((name) => !TARGETS.some((target) => target.name === name));
if (unknown !== undefined) refuse(`Cannot use --target "${unknown}": it is not known`);
const [seed, minutes] = [number("seed", values.seed), number("minutes", values.minutes)];
const options: FuzzRun = {
  runs: number("runs", values.runs) ?? 2_000,
  ...(seed === undefined ? {} : { seed }),
  ...(values.path === undefined ? {} : { path: values.path }),
  ...(minutes === undefined ? {} : { limitMs: minutes * 60_000 }),
};
let failed = false;
for (const target of TARGETS.filter(({ name }) => names.includes(name))) {
  const { kept, runs, seconds, seed: used, failure } = await fuzz(target, options);
  console.log(
    `${target.name.padEnd(12)} ${kept} kept, ${runs} inputs in ${seconds.toFixed(1)} s ` +
      `(${(runs / seconds).toFixed(0)}/s, seed ${used}): ${failure === null ? "ok" : "FAILED"}`,
  );
  if (failure === null) continue;
  failed = true;
  console.log(`${failure.text}\nThe input: ${JSON.stringify(failure.input)}`);
  if (values.keep) await keep(target, failure.input, failure.text.split("\n")[0] ?? "");
}
Deno.exit(failed ? 1 : 0);
