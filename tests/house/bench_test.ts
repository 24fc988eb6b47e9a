/**
 * Peers are dependencies of the bench alone, and the figures README shows are those of the committed run.
 */
import assert from "node:assert/strict";
import { RESULTS } from "../bench/arguments.ts";
import { renderChart } from "../bench/chart.ts";
import { readmeWithFigures, REPORT, reportPage } from "../bench/readme.ts";
import { renderReport } from "../bench/report.ts";
import { parseResults } from "../bench/results.ts";
import { readSources, ROOT } from "./source_files.ts";

const read = (path: string) => Deno.readTextFile(ROOT + path);

Deno.test("README, the report and the chart show the committed results (deno task bench --render)", async () => {
  const results = parseResults(await read(RESULTS));
  const readme = await read("README.md");
  assert.equal(readme, readmeWithFigures(readme, results));
  assert.equal(await read(REPORT), reportPage(renderReport(results)));
  assert.equal(await read("docs/bench.svg"), renderChart(results));
  for (const { path } of await readSources("docs", [".svg"])) assert.ok(readme.includes(`](${path})`), path);
});

Deno.test("nothing outside the bench imports a peer, and no lock or import map of ours holds one", async () => {
  const { dependencies } = JSON.parse(await read("tests/bench/peers/package.json")) as {
    dependencies: Record<string, string>;
  };
  const peers = Object.keys(dependencies);
  assert.ok(peers.includes("graphile-worker") && peers.includes("pg-boss") && peers.includes("bullmq"));
  const named = new RegExp(`["'](?:npm:)?(?:${peers.join("|")})(?:[@/][^"']*)?["']`);
  const files = [
    ...await readSources("", [".ts"]),
    { path: "deno.json", text: await read("deno.json") },
    { path: "deno.lock", text: await read("deno.lock") },
  ].filter(({ path }) => !/^tests\/(?:bench\/|house\/bench_test\.ts$)/.test(path));
  assert.deepEqual(files.filter(({ text }) => named.test(text)).map(({ path }) => path), []);
  assert.ok(named.test('import { run } from "graphile-worker";') && named.test("'npm:pg@8'") && !named.test('"pgx"'));
});

Deno.test("the peers' versions are exact, and their lock names no registry", async () => {
  const { dependencies } = JSON.parse(await read("tests/bench/peers/package.json")) as {
    dependencies: Record<string, string>;
  };
  for (const [name, version] of Object.entries(dependencies)) assert.match(version, /^\d+\.\d+\.\d+$/, name);
  assert.doesNotMatch(await read("tests/bench/peers/package-lock.json"), /"resolved"/);
});
