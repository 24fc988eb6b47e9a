/**
 * README's generated tables, each between `<!-- generated: NAME -->` and `<!-- end: NAME -->`.
 *
 * @module
 */
import { METRICS, type MetricSpec } from "../src/core/metrics.ts";
import { PROCESS_METRICS } from "../src/core/prom_metrics.ts";
import { EXIT_CODES } from "../src/cli/exit.ts";
import { flagTable, sampleEnv, urlTable } from "../src/runtime/flag_docs.ts";

const TABLES: Readonly<Record<string, () => string>> = {
  flags: flagTable,
  urls: urlTable,
  metrics: metricTable,
  "exit-codes": exitTable,
  "sample-env": () => `\`\`\`sh\n${sampleEnv().trimEnd()}\n\`\`\``,
};

/**
 * README with every table as the code now says it.
 *
 * @throws {Error} A marker is missing, so that no table can get lost.
 */
export function readmeWithTables(readme: string): string {
  let text = readme;
  for (const [name, table] of Object.entries(TABLES)) {
    const [start, end] = [`<!-- generated: ${name} -->`, `<!-- end: ${name} -->`];
    const [from, to] = [text.indexOf(start), text.indexOf(end)];
    if (from === -1 || to < from) throw new Error(`README.md lacks the markers ${start} and ${end}`);
    text = `${text.slice(0, from + start.length)}\n${table()}\n${text.slice(to)}`;
  }
  return text;
}

function metricTable(): string {
  const rows = (Object.entries(METRICS) as [string, MetricSpec][]).map(([name, spec]) =>
    `| \`${name}\` | ${spec.type} | ${spec.labels.map((label) => `\`${label}\``).join(", ")} | ${spec.help} |`
  );
  const own = Object.entries(PROCESS_METRICS).map(([name, help]) =>
    `| \`${name}\` | ${name.endsWith("_total") ? "counter" : "gauge"} |  | ${help} |`
  );
  return ["| metric | type | labels | what it says |", "|---|---|---|---|", ...rows, ...own].join("\n");
}

function exitTable(): string {
  const rows = Object.entries(EXIT_CODES).map(([code, meaning]) => `| ${code} | ${meaning} |`);
  return ["| code | means |", "|---|---|", ...rows].join("\n");
}
