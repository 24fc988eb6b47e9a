/**
 * The chaos in a table.
 *
 * @module
 */
import type { ChaosReport } from "./run.ts";

/** How much of it was asked for. */
export interface ChaosSize {
  readonly items: number;
  readonly workers: number;
  readonly leaseMs: number;
  readonly sweepMs: number;
}

/** Claims are to resume so soon after the database is back. */
export const RESUME_MS = 5_000;

/** What must not be, in words; none when all went well. */
export function wrongs({ findings, strayLines, unclean }: ChaosReport): string[] {
  const lists = Object.entries(findings).filter(([, found]) => Array.isArray(found) && found.length > 0);
  return [
    ...lists.map(([what, found]) => `${what}: ${(found as string[]).length}, for example ${(found as string[])[0]}`),
    ...(strayLines.length === 0 ? [] : [`lines that are no log: ${strayLines.length}, for example ${strayLines[0]}`]),
    ...(unclean === 0 ? [] : [`workers that did not end with 0 when they were told to stop: ${unclean}`]),
  ];
}

/** The table. */
export function reportLines(report: ChaosReport, { items, workers, leaseMs, sweepMs }: ChaosSize): string[] {
  const { findings, resumedMs, takenOverMs } = report;
  const target = leaseMs + sweepMs + 1_000;
  return [
    `| ${items.toLocaleString("en")} items, ${workers} workers | ${report.seconds.toFixed(0)} s |`,
    "|---|---|",
    `| lost | ${findings.lost.length} |`,
    `| accepted twice, or done without a run of the accepted claim | ${
      findings.twice.length + findings.unearned.length + findings.sameClaim.length
    } |`,
    `| innocents that failed, poisoned that were done | ${findings.innocents.length}, ${findings.undead.length} |`,
    `| dead letters (the poisoned) | ${report.dead} |`,
    `| runs; second runs; of those to the end a second time | ${findings.runs}; ${findings.secondRuns}; ${findings.doubleEnds} |`,
    `| second runs that nothing explains | ${findings.unexplained.length} |`,
    `| killed, frozen past the lease, deaths in all | ${report.kills}, ${report.freezes}, ${report.deaths} |`,
    `| workers with a wrong clock | ${report.wrongClocks} |`,
    ...Object.entries(resumedMs).map(([what, ms]) => `| the next run after: ${what} | ${ms.join(", ")} ms |`),
    `| a dead worker's items run elsewhere (target ${target} ms) | ${spread(takenOverMs)} |`,
    ...wrongs(report).map((wrong) => `| **wrong** | ${wrong} |`),
  ];
}

function spread(ms: readonly number[]): string {
  const [median, most, all] = [0.5, 0.95, 1].map((q) => quantile(ms, q));
  return `median ${median}, 19 of 20 within ${most}, at most ${all} ms; ${ms.length} items`;
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
