/**
 * The chart of drain rates, as SVG, from results alone. Readable on light and on dark.
 *
 * @module
 */
import type { Contender, Retention } from "./contenders.ts";
import { CLASSES, present } from "./report.ts";
import { allRounds, type Results } from "./results.ts";
import { median } from "./statistics.ts";

const WIDTH = 860;
const LABELS = 264;
const BARS = 430;
const ROW = 26;

interface Bar {
  readonly contender: Contender;
  readonly middle: number;
  readonly low: number;
  readonly high: number;
}

/** Draws the drain rates by class of retention: bars at the median, lines over the full range. */
export function renderChart(results: Results): string {
  const groups = [
    { title: `Postgres, full durability: ${CLASSES.keep}`, bars: barsOf(results, "postgres", "keep") },
    { title: `Postgres, full durability: ${CLASSES.delete}`, bars: barsOf(results, "postgres", "delete") },
    { title: `Without a server: ${CLASSES.keep}`, bars: barsOf(results, "embedded", "keep") },
  ].filter(({ bars }) => bars.length > 0);
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ high }) => high)), 1);
  const body: string[] = [];
  let y = 62;
  for (const { title, bars } of groups) {
    body.push(`  <text class="group" x="16" y="${y + 12}">${escape(title)}</text>`);
    y += 24;
    for (const bar of bars) {
      body.push(drawBar(bar, { y, most }));
      y += ROW;
    }
    y += 12;
  }
  return frame(results, y + 30, body);
}

function barsOf(results: Results, where: "postgres" | "embedded", retention: Retention): Bar[] {
  return present(results, "drain")
    .filter((one) => one.retention === retention && (one.engine === "postgres") === (where === "postgres"))
    .map((contender) => {
      const rates = allRounds(results, "drain", contender.id, "perSecond");
      return { contender, middle: median(rates), low: Math.min(...rates), high: Math.max(...rates) };
    });
}

function drawBar({ contender, middle, low, high }: Bar, { y, most }: { y: number; most: number }): string {
  const at = (rate: number) => (LABELS + rate / most * BARS).toFixed(1);
  const center = y + 9;
  const kind = contender.family === "laneway" ? "ours" : "theirs";
  const range = low === high
    ? ""
    : `\n  <path class="range" d="M${at(low)} ${center}H${at(high)}M${at(low)} ${center - 4}v8M${at(high)} ${
      center - 4
    }v8"/>`;
  return `  <text class="label" x="${LABELS - 8}" y="${center + 4}">${escape(contender.name)}</text>
  <rect class="${kind}" x="${LABELS}" y="${y}" width="${(middle / most * BARS).toFixed(1)}" height="18" rx="2"/>${range}
  <text class="rate" x="${Number(at(Math.max(high, middle))) + 8}" y="${center + 4}">${
    Math.round(middle).toLocaleString("en")
  }/s</text>`;
}

function frame(results: Results, height: number, body: readonly string[]): string {
  const { date, machine, versions, rounds } = results;
  const shown = Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ");
  const [first, second] = wrap(`${machine.cores} × ${machine.cpu}; ${shown}`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title">
  <title id="title">No-op items a second, Laneway beside its peers, ${escape(date)}</title>
  <style>
    text { font: 12px system-ui, sans-serif; fill: #24292f }
    .title { font-size: 16px; font-weight: 600 }
    .group { font-weight: 600 }
    .label { text-anchor: end }
    .small { font-size: 11px; fill: #57606a }
    .ours { fill: #2f81f7 }
    .theirs { fill: #8c959f }
    .range { stroke: #24292f; fill: none }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9198a1 }
      .range { stroke: #e6edf3 }
    }
  </style>
  <text class="title" x="16" y="26">No-op items a second, one worker process</text>
  <text class="small" x="16" y="44">${escape(date)}, median and full range of ${rounds} ${
    rounds === 1 ? "round" : "rounds"
  }; longer is faster</text>
${body.join("\n")}
  <text class="small" x="16" y="${height - 26}">${escape(first)}</text>
  <text class="small" x="16" y="${height - 10}">${escape(second)}</text>
</svg>
`;
}

// Two lines of small text.
function wrap(text: string): [string, string] {
  const most = 140;
  if (text.length <= most) return [text, ""];
  const at = text.lastIndexOf(" ", most);
  return [text.slice(0, at), text.slice(at + 1)];
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
