/**
 * The report, from results alone.
 *
 * @module
 */
import { type Comparison, COMPARISONS, type Contender, CONTENDERS, HANDICAPPED, type Retention } from "./contenders.ts";
import { ENQUEUE_SHAPES } from "./enqueue.ts";
import { IDLE_PER_SECOND, LOADED_PER_SECOND } from "./latency.ts";
import { allRounds, byRound, type Results } from "./results.ts";
import { median, medianAndRange, ratios, ratioText, table } from "./statistics.ts";

/** The classes of retention, as headings. */
export const CLASSES: Readonly<Record<Retention, string>> = {
  keep: "finished rows are kept",
  delete: "finished rows are deleted",
};

/** Everything that was measured, as Markdown. */
export function renderReport(results: Results): string {
  return [
    renderSurroundings(results),
    ...renderSections(results, SECTIONS),
    ...(results.leftOut.length === 0
      ? []
      : [`Left out, or to be known:\n\n${results.leftOut.map((line) => `- ${line}`).join("\n")}`]),
    `Settings that are no defaults:\n\n${
      present(results, "drain").map(({ name, settings, completion }) =>
        `- ${name}: ${settings}; completes ${
          completion === "each item" ? "each item by itself" : "a whole batch as one"
        }`
      ).join("\n")
    }`,
  ].filter((part) => part !== "").join("\n\n");
}

/** What it was measured on, in two lines. */
export function renderSurroundings({ date, machine, versions, server, rounds, scale, minutes }: Results): string {
  const durability = ["fsync", "full_page_writes", "synchronous_commit"].map((name) => `\`${name}\` ${server[name]}`);
  const sizes = Object.entries(server).filter(([name]) =>
    !/^(server_version|fsync|full_page_writes|synchronous_commit)$/.test(name)
  );
  return `Measured ${date} on ${machine.cores} × ${machine.cpu}, ${machine.memoryGiB} GiB, load ${
    machine.load.toFixed(1)
  } before; ${Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ")}. ` +
    `${rounds} ${rounds === 1 ? "round" : "rounds"}${
      scale === 1 ? "" : ` at ${scale} of the full size`
    }, interleaved, the order rotated, ${
      Math.round(minutes)
    } minutes. Median and full range.\n\nPostgres ${server.server_version}: ${durability.join(", ")}; ${
      sizes.map(([name, value]) => `${name} ${value}`).join(", ")
    }.`;
}

type Section = (results: Results) => string;

const RATIOS: readonly Section[] = [
  (results) => ratioSection(results, "Ratios within a round, no-op items, like with like", COMPARISONS, "drain"),
  (results) =>
    ratioSection(results, "Against us: Laneway keeps each finished row, graphile-worker none", HANDICAPPED, "drain"),
];
const DRAINS: readonly Section[] = [
  (results) => drainSection(results, "keep"),
  (results) => drainSection(results, "delete"),
];
const SLEEPS: readonly Section[] = [
  (results) =>
    ratioSection(results, "Ratios within a round, handlers of 1 ms", [...COMPARISONS, ...HANDICAPPED], "sleep"),
  (results) => sleepSection(results, "keep"),
  (results) => sleepSection(results, "delete"),
];
const OTHERS: readonly Section[] = [
  enqueueSection,
  (results) =>
    latencySection(
      results,
      "idle",
      `Enqueue → start of the handler, idle at ${IDLE_PER_SECOND}/s, producer in another process`,
    ),
  (results) => latencySection(results, "loaded", `Enqueue → start of the handler, loaded at ${LOADED_PER_SECOND}/s`),
  startSection,
  fleetSection,
];

/** Every section of the report, ratios first. */
const SECTIONS: readonly Section[] = [...RATIOS, ...DRAINS, ...SLEEPS, ...OTHERS, calibrationSection];

/** The sections README shows. */
export const README_SECTIONS: readonly Section[] = [...RATIOS, ...DRAINS, ...OTHERS];

/** The tables, those that hold nothing left away. */
export function renderSections(results: Results, sections: readonly Section[]): string[] {
  return sections.map((section) => section(results)).filter((text) => text !== "");
}

/** The contenders a measure has figures of, in the order of the report. */
export function present(results: Results, measure: string): Contender[] {
  return CONTENDERS.filter(({ id }) =>
    results.samples.some((sample) => sample.measure === measure && sample.contender === id)
  );
}

const nameOf = (id: string) => CONTENDERS.find((contender) => contender.id === id)?.name ?? id;

function section(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? "" : table([title, ...head], rows);
}

function ratioSection(results: Results, title: string, pairs: readonly Comparison[], measure: string): string {
  const rows = pairs.flatMap(({ ours, theirs }) => {
    const samples = ratios(
      byRound(results, measure, ours, "perSecond"),
      byRound(results, measure, theirs, "perSecond"),
    );
    return samples.length === 0 ? [] : [[`${nameOf(ours)} / ${nameOf(theirs)}`, ratioText(samples)]];
  });
  return section(title, ["ratio"], rows);
}

function drainSection(results: Results, retention: Retention): string {
  const rows = present(results, "drain").filter((contender) => contender.retention === retention).map(
    ({ id, name, completion }) => {
      const of = (figure: string) => allRounds(results, "drain", id, figure);
      const calibrated = ratios(
        byRound(results, "drain", id, "perSecond"),
        byRound(results, "calibration", "pgbench", "oneRowPerSecond"),
      );
      return [
        name,
        medianAndRange(of("perSecond")),
        calibrated.length === 0 ? "" : median(calibrated).toFixed(2),
        completion,
        medianAndRange(of("clientCpuUs")),
        medianAndRange(of("serverCpuUs")),
        medianAndRange(of("walBytes")),
        medianAndRange(of("peakMiB")),
      ];
    },
  );
  return section(`Drain, no-op items: ${CLASSES[retention]}`, [
    "items/s",
    "× pgbench's one-row items",
    "completes",
    "worker CPU, µs/item",
    "server CPU, µs/item",
    "WAL, B/item",
    "worker's peak memory, MiB",
  ], rows);
}

function sleepSection(results: Results, retention: Retention): string {
  const rows = present(results, "sleep").filter((contender) => contender.retention === retention).map((
    { id, name },
  ) => [
    name,
    medianAndRange(allRounds(results, "sleep", id, "perSecond")),
    medianAndRange(allRounds(results, "sleep", id, "clientCpuUs")),
    medianAndRange(allRounds(results, "sleep", id, "serverCpuUs")),
  ]);
  return section(`Drain, handlers of 1 ms: ${CLASSES[retention]}`, [
    "items/s",
    "worker CPU, µs/item",
    "server CPU, µs/item",
  ], rows);
}

function enqueueSection(results: Results): string {
  const contenders = present(results, "enqueue");
  const rows = contenders.map(({ id, name }) => [
    name.replace(/,.*/, id.startsWith("sqlite") ? ", SQLite file" : id.startsWith("memory") ? ", in memory" : ""),
    ...ENQUEUE_SHAPES.map(({ key }) => medianAndRange(allRounds(results, "enqueue", id, key))),
  ]);
  const best = ENQUEUE_SHAPES.map(({ key }) => {
    const ours = byRound(results, "enqueue", "laneway", key);
    return ratioText(ratios(ours, byRound(results, "enqueue", "graphile", key)));
  });
  if (best.some((text) => text !== "")) rows.push(["Laneway / graphile-worker, ratio within a round", ...best]);
  return section("Enqueue, items/s", ENQUEUE_SHAPES.map(({ name }) => name), rows);
}

function latencySection(results: Results, measure: "idle" | "loaded", title: string): string {
  const rows = present(results, measure).map(({ id, name }) => {
    const of = (figure: string) => allRounds(results, measure, id, figure);
    const samples = of("samples").reduce((sum, count) => sum + count, 0);
    return [
      name,
      medianAndRange(of("p50"), " ms"),
      medianAndRange(of("p99"), " ms"),
      `${Math.max(...of("max")).toFixed(1)} ms`,
      samples.toLocaleString("en"),
    ];
  });
  for (const theirs of ["graphile", "graphile-best"]) {
    const of = (figure: string) =>
      ratioText(ratios(byRound(results, measure, "laneway", figure), byRound(results, measure, theirs, figure)));
    if (of("p50") !== "") {
      rows.push([`${nameOf("laneway")} / ${nameOf(theirs)}, ratio within a round`, of("p50"), of("p99"), "", ""]);
    }
  }
  return section(title, ["p50", "p99", "max", "samples"], rows);
}

function startSection(results: Results): string {
  const of = (figure: string) => allRounds(results, "start", "laneway", figure);
  if (of("firstClaimMs").length === 0) return "";
  const compiled = of("binaryMiB").length > 0;
  return section("Start on Postgres", ["exec → first claim", "resident memory, idle", "size of the binary"], [[
    compiled ? "compiled binary" : "from source (no binary in dist/)",
    medianAndRange(of("firstClaimMs"), " ms"),
    medianAndRange(of("idleMiB"), " MiB"),
    compiled ? `${median(of("binaryMiB")).toFixed(1)} MiB` : "",
  ]]);
}

function fleetSection(results: Results): string {
  const of = (figure: string) => allRounds(results, "fleet", "laneway", figure);
  const [workers] = of("workers");
  if (workers === undefined) return "";
  const head = ["statements a minute and worker", "CPU of a core, each worker", "resident memory, each worker"];
  return section("Idle workers on Postgres, defaults", head, [[
    `${workers} workers, ${median(of("orgs")).toLocaleString("en")} orgs`,
    medianAndRange(of("statementsPerMinute")),
    `${median(of("cpuPercent")).toFixed(2)} %`,
    medianAndRange(of("memoryMiB"), " MiB"),
  ]]);
}

function calibrationSection(results: Results): string {
  const of = (figure: string) => allRounds(results, "calibration", "pgbench", figure);
  if (of("selectsPerSecond").length === 0) return "";
  return section("Calibration: pgbench, 10 clients", ["a second"], [
    ["`select 1`", medianAndRange(of("selectsPerSecond"))],
    ["one-row claim and one-row completion, items", medianAndRange(of("oneRowPerSecond"))],
  ]);
}
