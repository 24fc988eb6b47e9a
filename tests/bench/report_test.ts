import assert from "node:assert/strict";
import { renderChart } from "./chart.ts";
import { readmeWithFigures } from "./readme.ts";
import { renderReport } from "./report.ts";
import { allRounds, byRound, formatResults, parseResults, type Results } from "./results.ts";

const drain = (contender: string, round: number, perSecond: number) => ({
  measure: "drain",
  contender,
  round,
  figures: { items: 10, perSecond, clientCpuUs: 12.3456, serverCpuUs: null, walBytes: 512, peakMiB: 80 },
});

const RESULTS: Results = {
  date: "2026-11-30",
  machine: { cpu: "Some <CPU> & more", cores: 2, memoryGiB: 24, load: 0.5 },
  versions: { Postgres: "17.10", "pg-boss": "12.38.0" },
  server: {
    server_version: "17.10",
    fsync: "on",
    full_page_writes: "on",
    synchronous_commit: "on",
    shared_buffers: "1GB",
  },
  rounds: 3,
  scale: 1,
  minutes: 1.4,
  leftOut: ["calibration is left out: there is no pgbench on this machine"],
  samples: [
    drain("laneway-tuned", 0, 30_000),
    drain("laneway-tuned", 1, 20_000),
    drain("laneway-tuned", 2, 36_000),
    drain("pgboss-best", 0, 15_000),
    drain("pgboss-best", 1, 16_000),
    drain("pgboss-best", 2, 12_000),
    drain("graphile-best", 0, 31_000),
    drain("graphile-best", 1, 19_000),
  ],
};

Deno.test("the report gives ratios within the round, and says where none is shown", () => {
  const report = renderReport(RESULTS);
  assert.ok(report.includes("| Laneway, tuned / pg-boss, batches | 2.00 × [1.25..3.00] |"), report);
  assert.ok(
    report.includes("| Laneway, tuned / graphile-worker, documented best | no difference shown: 1.01 × [0.97..1.05] |"),
  );
  assert.ok(report.includes("30,000 [20,000..36,000]"));
  assert.ok(report.includes("there is no pgbench"));
});

Deno.test("a table never mixes contenders that keep finished rows with those that delete them", () => {
  const [, kept, deleted] = renderReport(RESULTS).split(/\| Drain, no-op items: finished rows are (?:kept|deleted)/);
  assert.ok(kept?.includes("pg-boss, batches | 15,000") && !kept.includes("graphile-worker, documented best | "));
  const table = deleted?.split("\n\n")[0];
  assert.ok(
    table?.includes("graphile-worker, documented best") && !table.includes("pg-boss") && !table.includes("Laneway"),
  );
});

Deno.test("a round that lacks a figure is null and takes part in no ratio", () => {
  assert.deepEqual(byRound(RESULTS, "drain", "graphile-best", "perSecond"), [31_000, 19_000, null]);
  assert.deepEqual(allRounds(RESULTS, "drain", "graphile-best", "perSecond"), [31_000, 19_000]);
  assert.deepEqual(allRounds(RESULTS, "drain", "laneway-tuned", "serverCpuUs"), []);
});

Deno.test("results are written one sample a line, to four digits, and read back", () => {
  const text = formatResults(RESULTS);
  const read = parseResults(text);
  assert.equal(read.samples.length, RESULTS.samples.length);
  assert.equal(read.samples[0]?.figures.clientCpuUs, 12.35);
  assert.deepEqual({ ...read, samples: [] }, { ...RESULTS, samples: [] });
  assert.equal(text.split("\n").filter((line) => line.includes('"measure"')).length, RESULTS.samples.length);
  assert.throws(() => parseResults("{}"), /Cannot read the results/);
});

Deno.test("the chart shows each contender with its rate, date, machine and versions, and holds no raw markup", () => {
  const chart = renderChart(RESULTS);
  for (const text of ["Laneway, tuned", "30,000/s", "2026-11-30", "Some &lt;CPU&gt; &amp; more", "pg-boss 12.38.0"]) {
    assert.ok(chart.includes(text), text);
  }
  assert.ok(chart.includes("prefers-color-scheme: dark"));
  assert.equal(chart.match(/<rect/g)?.length, 3);
  const widths = [...chart.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
  assert.ok(widths.every((width) => width > 0 && width <= 440), String(widths));
});

Deno.test("README's figures are put between their markers, which must be there", () => {
  const readme = "# A\n<!-- bench: figures -->\nold\n<!-- end: figures -->\nrest\n";
  const once = readmeWithFigures(readme, RESULTS);
  assert.ok(once.startsWith("# A\n<!-- bench: figures -->\nMeasured 2026-11-30") && once.endsWith("\nrest\n"));
  assert.ok(!once.includes("old"));
  assert.equal(readmeWithFigures(once, RESULTS), once);
  assert.throws(() => readmeWithFigures("# A", RESULTS), /lacks the markers/);
});
