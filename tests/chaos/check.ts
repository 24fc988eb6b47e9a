/**
 * What the log of the handlers and the rows of the database say together, apart from anything the product counts.
 *
 * @module
 */
import type { Fault } from "./fleet.ts";

/** One line of the log. */
export interface Line {
  readonly item: string;
  readonly fence: number;
  readonly pid: number;
  readonly what: "start" | "end";
}

/** A line, and when it was seen, by the observer's clock. */
export interface SeenLine extends Line {
  readonly seenMs: number;
}

/** One finished row. */
export interface Finished {
  readonly id: string;
  readonly status: "done" | "failed";
  /** Claims of it in all: the last one's number. */
  readonly claims: number;
  readonly lastError: string | null;
}

/** What was found. Every list is to be empty. */
export interface Findings {
  /** Items that ended in no way. */
  readonly lost: readonly string[];
  /** Items with two ends. */
  readonly twice: readonly string[];
  /** Items that were done without a run that came to its end under the claim that was accepted. */
  readonly unearned: readonly string[];
  /** Items that failed and are not poisoned. */
  readonly innocents: readonly string[];
  /** Poisoned items that were done. */
  readonly undead: readonly string[];
  /** Runs of one item under one claim. */
  readonly sameClaim: readonly string[];
  /** Second runs to their end that no lost lease explains. */
  readonly unexplained: readonly string[];
  readonly runs: number;
  readonly secondRuns: number;
  readonly doubleEnds: number;
}

/** Reads the log; a line that was cut by a death is left out. */
export function parseLog(text: string): Line[] {
  return text.split("\n").flatMap((line) => {
    const [item, fence, pid, what] = line.split(" ");
    if (what !== "start" && what !== "end") return [];
    return [{ item: item ?? "", fence: Number(fence), pid: Number(pid), what }];
  });
}

/**
 * Judges.
 *
 * @param options.poisoned Ids of items that end their process.
 * @param options.faults What was done to processes and to the database: the only reasons for an item to run again.
 */
export function judge(
  options: {
    readonly enqueued: readonly string[];
    readonly poisoned: ReadonlySet<string>;
    readonly lines: readonly SeenLine[];
    readonly finished: readonly Finished[];
    readonly faults: readonly Fault[];
    /** A fault explains what follows it within so long, milliseconds: a lease or three, as renewals ran out. */
    readonly echoMs: number;
  },
): Findings {
  const { enqueued, poisoned, lines, finished, faults, echoMs } = options;
  const rows = new Map<string, Finished[]>();
  for (const row of finished) rows.set(row.id, [...rows.get(row.id) ?? [], row]);
  const runs = groupBy(lines.filter(({ what }) => what === "start"));
  const ends = groupBy(lines.filter(({ what }) => what === "end"));
  const explained = ({ pid, seenMs }: SeenLine) =>
    faults.some((fault) =>
      (fault.pid === null || fault.pid === pid) && seenMs > fault.fromMs - BEFORE_MS && seenMs < fault.toMs + echoMs
    );
  const done = enqueued.filter((id) => rows.get(id)?.[0]?.status === "done");
  return {
    lost: enqueued.filter((id) => rows.get(id) === undefined),
    twice: [...rows].filter(([, of]) => of.length > 1).map(([id]) => id),
    unearned: done.filter((id) => !(ends.get(id) ?? []).some(({ fence }) => fence === rows.get(id)?.[0]?.claims)),
    innocents: enqueued.filter((id) => !poisoned.has(id) && rows.get(id)?.[0]?.status === "failed"),
    undead: [...poisoned].filter((id) => rows.get(id)?.[0]?.status === "done"),
    sameClaim: [...runs].filter(([, of]) => new Set(of.map(({ fence }) => fence)).size < of.length).map(([id]) => id),
    // Whoever came to the end and was not accepted had lost the lease: frozen, cut off, or without its database.
    unexplained: [...ends].filter(([id, of]) => {
      const accepted = rows.get(id)?.[0]?.claims;
      return accepted !== undefined && of.some((end) => end.fence !== accepted && !explained(end));
    }).map(([id]) => id),
    runs: lines.filter(({ what }) => what === "start").length,
    secondRuns: [...runs.values()].reduce((sum, of) => sum + of.length - 1, 0),
    doubleEnds: [...ends.values()].reduce((sum, of) => sum + of.length - 1, 0),
  };
}

// A run that came to its end just before its process died was not acknowledged.
const BEFORE_MS = 2_000;

function groupBy(lines: readonly SeenLine[]): Map<string, SeenLine[]> {
  const groups = new Map<string, SeenLine[]>();
  for (const line of lines) {
    const of = groups.get(line.item);
    if (of === undefined) groups.set(line.item, [line]);
    else of.push(line);
  }
  return groups;
}
