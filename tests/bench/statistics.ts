/**
 * Figures out of samples.
 *
 * @module
 */

/** The value at quantile `q` (0–1) of unsorted samples; NaN of none. */
export function quantile(samples: readonly number[], q: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(q * sorted.length), sorted.length - 1)] ?? NaN;
}

/** The median and the full range of a few rounds, as text. */
export function medianAndRange(samples: readonly number[], unit = ""): string {
  const round = (n: number) => n >= 100 ? Math.round(n).toLocaleString("en") : n.toFixed(1);
  const [low, mid, high] = [quantile(samples, 0), quantile(samples, 0.5), quantile(samples, 1)];
  return `${round(mid)}${unit} [${round(low)}..${round(high)}]`;
}

/** Writes rows as a Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
