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

/** The middle of a few rounds; of an even number the mean of the two in the middle. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? NaN) + (sorted[Math.floor(half)] ?? NaN)) / 2;
}

/** The median and the full range of a few rounds, as text; a lone one alone. */
export function medianAndRange(samples: readonly number[], unit = ""): string {
  const round = (n: number) => n >= 100 ? Math.round(n).toLocaleString("en") : n.toFixed(1);
  const middle = `${round(median(samples))}${unit}`;
  if (samples.length < 2) return samples.length === 0 ? "" : middle;
  return `${middle} [${round(Math.min(...samples))}..${round(Math.max(...samples))}]`;
}

/** Figures by round; null where one is missing. */
export type Rounds = readonly (number | null)[];

/** Within-round ratios: what the machine did meanwhile hits both sides alike. */
export function ratios(ours: Rounds, theirs: Rounds): number[] {
  return ours.flatMap((our, round) => {
    const their = theirs[round];
    return our === null || their === null || their === undefined || their === 0 ? [] : [our / their];
  });
}

/** A ratio as it is told: median and full range, or that no difference is shown when the range holds 1. */
export function ratioText(samples: readonly number[]): string {
  if (samples.length === 0) return "";
  const [low, high] = [Math.min(...samples), Math.max(...samples)];
  const range = `${median(samples).toFixed(2)} × [${low.toFixed(2)}..${high.toFixed(2)}]`;
  if (samples.length === 1) return `${median(samples).toFixed(2)} × (one round)`;
  return low <= 1 && high >= 1 ? `no difference shown: ${range}` : range;
}

/** The order of a round: each entry comes first once in as many rounds as there are entries. */
export function rotated<T>(entries: readonly T[], round: number): T[] {
  const from = entries.length === 0 ? 0 : round % entries.length;
  return [...entries.slice(from), ...entries.slice(0, from)];
}

/** Writes rows as a Markdown table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
