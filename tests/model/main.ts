/**
 * `deno task model`: sequences against the model, as many as asked for.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { runModel } from "./run.ts";
import { type StoreName, STORES } from "./stores.ts";

const HELP = `Holds the storages of work items to a model of them, by random sequences of operations.

  deno task model [options]

  --runs N         sequences. Default 1000.
  --store NAMES    comma-separated: ${STORES.join(", ")}. Default: all, each command on all of them.
  --seed S         begins where a failure began. Default: a random one, which is told.
  --path P         of a failure's report: runs what failed alone.
  --replay R       of a failure's report.
  --minutes M      begins no sequence after so long. Default: no limit.
  --help           this text.

Exit codes: 0 all agree, 1 one does not, 2 a wrong argument.`;

function refuse(why: string): never {
  console.error(`model: ${why}; see --help`);
  Deno.exit(2);
}

function number(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : refuse(`Cannot use --${name} "${text}": it must be a number`);
}

function readArgs() {
  const text = { type: "string" } as const;
  try {
    return parseArgs({
      args: Deno.args,
      options: {
        ...{ runs: text, store: text, seed: text, path: text, replay: text, minutes: text },
        help: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

const values = readArgs();
if (values.help) {
  console.log(HELP);
  Deno.exit(0);
}
const stores = (values.store ?? STORES.join(",")).split(",");
const unknown = stores.find((name) => !(STORES as readonly string[]).includes(name));
if (unknown !== undefined) refuse(`Cannot use --store "${unknown}": there are ${STORES.join(", ")}`);
const [seed, minutes] = [number("seed", values.seed), number("minutes", values.minutes)];
const report = await runModel({
  stores: stores as StoreName[],
  runs: number("runs", values.runs) ?? 1_000,
  ...(seed === undefined ? {} : { seed }),
  ...(values.path === undefined ? {} : { path: values.path }),
  ...(values.replay === undefined ? {} : { replayPath: values.replay }),
  ...(minutes === undefined ? {} : { limitMs: minutes * 60_000 }),
});
console.log(
  `${report.runs} sequences, ${report.commands} commands on ${stores.join(", ")} in ${report.seconds.toFixed(1)} s ` +
    `(${(report.runs / report.seconds).toFixed(1)}/s, seed ${report.seed})`,
);
if (report.failure !== null) console.log(report.failure);
Deno.exit(report.failure === null ? 0 : 1);
