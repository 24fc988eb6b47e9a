/**
 * `deno task chaos`: a fleet of the compiled binary on a real Postgres, and everything that can be done to both. Prints a
 * table. Exit codes: 0 nothing was lost and nothing accepted twice, 1 something was, 2 a wrong argument.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { buildTestWorker } from "../support/test_worker.ts";
import { findFakeTime } from "./fake_time.ts";
import { reportLines, wrongs } from "./report.ts";
import { runChaos } from "./run.ts";

const HELP = `A fleet of the compiled binary on a real Postgres, and everything that can be done to both.

  deno task chaos [options]

  --items N     how many items. Default 200000.
  --workers N   how many processes, 4 to 40. Default 20.
  --help        this text.`;

const { values } = parseArgs({
  args: [...Deno.args],
  options: { items: { type: "string" }, workers: { type: "string" }, help: { type: "boolean" } },
});
if (values.help) {
  console.log(HELP);
  Deno.exit(0);
}
const [items, workers] = [count("items", 200_000, [100, 10_000_000]), count("workers", 20, [4, 40])];

function count(name: "items" | "workers", standard: number, [min, max]: readonly [number, number]): number {
  const number = Number(values[name] ?? standard);
  if (Number.isInteger(number) && number >= min && number <= max) return number;
  console.error(`chaos: Cannot use --${name} ${values[name]}: it must be a whole number from ${min} to ${max}`);
  Deno.exit(2);
}

const folder = await Deno.makeTempDir({ prefix: "laneway-chaos-build-" });
try {
  const say = (line: string) => console.error(`chaos: ${line}`);
  say("building the binary");
  const binary = await buildTestWorker(folder, { name: "chaos-worker", source: "tests/chaos/worker.ts" });
  const fakeTime = await findFakeTime();
  if (fakeTime === null) say("NOT RUN: wrong clocks, which need libfaketime (Debian's package libfaketime)");
  const report = await runChaos({
    ...{ binary, items, workers, fakeTime, say },
    poisonEvery: 1_000,
    leaseMs: 6_000,
    sweepMs: 1_000,
    killEveryMs: 1_000,
    freezeEveryMs: 4_000,
  });
  console.log(reportLines(report, { items, workers, leaseMs: 6_000, sweepMs: 1_000 }).join("\n"));
  Deno.exitCode = wrongs(report).length === 0 ? 0 : 1;
} finally {
  await Deno.remove(folder, { recursive: true });
}
