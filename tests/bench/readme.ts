/**
 * README's figures, rendered from the committed results, so that none is written by hand.
 *
 * @module
 */
import { README_SECTIONS, renderSections, renderSurroundings } from "./report.ts";
import type { Results } from "./results.ts";

/** Where the whole report is kept beside the chart. */
export const REPORT = "docs/bench.md";

/** The whole report as a page of its own. */
export function reportPage(report: string): string {
  return `# The bench\n\nMade by \`deno task bench --render\`; do not edit.\n\n![No-op items a second](bench.svg)\n\n${report}\n`;
}

const START = "<!-- bench: figures -->";
const END = "<!-- end: figures -->";

/** README with its figures as the results have them. @throws {Error} A marker is missing, so that none can get lost. */
export function readmeWithFigures(readme: string, results: Results): string {
  const [from, to] = [readme.indexOf(START), readme.indexOf(END)];
  if (from === -1 || to < from) throw new Error(`README.md lacks the markers ${START} and ${END}`);
  const figures = [renderSurroundings(results), ...renderSections(results, README_SECTIONS)].join("\n\n");
  return `${readme.slice(0, from + START.length)}\n${figures}\n${readme.slice(to)}`;
}
