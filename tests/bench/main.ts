/**
 * `deno task bench`: Laneway beside its peers. `--help` says how, `tests/bench/README.md` by which rules.
 *
 * @module
 */
import { ArgumentError, type BenchArguments, HELP, parseArguments } from "./arguments.ts";
import { CONTENDERS } from "./contenders.ts";
import { drainOnce, LeftOutError } from "./drain.ts";
import { installPeers } from "./peers.ts";
import { BenchServer } from "./server.ts";
import { medianAndRange, rotated, table } from "./statistics.ts";

const log = (line: string) => console.error(line);

async function main(): Promise<number> {
  let args: BenchArguments;
  try {
    args = parseArguments(Deno.args);
  } catch (error) {
    if (!(error instanceof ArgumentError)) throw error;
    console.error(`${error.message}\nTry deno task bench --help`);
    return 2;
  }
  if (args.help) {
    console.log(HELP);
    return 0;
  }
  let contenders = CONTENDERS.filter(({ id }) => args.contenders.includes(id));
  const peers = contenders.some(({ family }) => family !== "laneway") ? await installPeers(log) : null;
  const server = await BenchServer.start();
  try {
    console.log(JSON.stringify(await server.settings()));
    const figures = new Map<string, number[]>();
    for (let round = 0; round < args.rounds; round++) {
      for (const contender of rotated(contenders, round)) {
        const items = Math.round(contender.drainItems * args.scale);
        try {
          const drained = await drainOnce(contender, { server, peers }, { items, handlerMs: 0 });
          log(`round ${round + 1} ${contender.id}: ${JSON.stringify(drained)}`);
          figures.set(contender.id, [...figures.get(contender.id) ?? [], drained.perSecond]);
        } catch (error) {
          if (!(error instanceof LeftOutError)) throw error;
          log(error.message);
          contenders = contenders.filter((other) => other !== contender);
        }
      }
    }
    console.log(table(["", "items/s"], [...figures].map(([id, samples]) => [id, medianAndRange(samples)])));
    return 0;
  } finally {
    await server.close();
  }
}

if (import.meta.main) Deno.exit(await main());
