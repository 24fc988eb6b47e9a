/**
 * How a command's end is read: a table from exit codes to outcomes. The table in README.md is this one.
 *
 * @module
 */
import type { AttemptOutcome, FailureReason } from "../types.ts";

/** What an end makes of the item. */
export interface Ending {
  readonly outcome: Exclude<AttemptOutcome, "aborted">;
  /** For `defer`: how long to wait, milliseconds. */
  readonly afterMs: number;
  /** What it means, for people; stands in the item's error or note. */
  readonly note: string | null;
}

/** A kind's table. */
export interface ExitTable {
  /** By exit code, 0 to 255. */
  readonly codes: ReadonlyMap<number, Ending>;
  /** Every other code. */
  readonly other: Ending;
  /** Death by a signal that was not ours. Never `done`. */
  readonly signal: Ending;
  /** The time limit passed. Never `done`. */
  readonly timeout: Ending;
}

const RETRY: Ending = { outcome: "retry", afterMs: 0, note: null };

/** What holds where a kind's config says nothing. */
export const DEFAULT_EXITS: ExitTable = {
  codes: new Map<number, Ending>([
    [0, { outcome: "done", afterMs: 0, note: null }],
    [65, { outcome: "final", afterMs: 0, note: "the command cannot use this input (EX_DATAERR)" }],
    [75, { outcome: "defer", afterMs: 60_000, note: "the command asks to be run later (EX_TEMPFAIL)" }],
  ]),
  other: RETRY,
  signal: RETRY,
  timeout: RETRY,
};

/** Why a run was ended by us. */
export type StopReason = "timed_out" | "lease_lost" | "drained";

/** How a command ended. */
export interface CommandEnd {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Set when we ended it: then neither code nor signal say anything of the work. */
  readonly stopped: StopReason | null;
}

/** What becomes of the item, and why. */
export interface Classified {
  readonly outcome: AttemptOutcome;
  readonly reason: FailureReason | null;
  readonly afterMs: number;
  readonly note: string | null;
}

/** Reads a command's end. */
export function classify(end: CommandEnd, table: ExitTable): Classified {
  if (end.stopped === "lease_lost" || end.stopped === "drained") {
    return { outcome: "aborted", reason: end.stopped, afterMs: 0, note: null };
  }
  if (end.stopped === "timed_out") return named(table.timeout, "timed_out");
  if (end.signal !== null || end.exitCode === null) return named(table.signal, "signal");
  return named(table.codes.get(end.exitCode) ?? table.other, "exit_code");
}

function named(ending: Ending, reason: FailureReason): Classified {
  const quiet = ending.outcome === "done" || ending.outcome === "defer";
  return { ...ending, reason: quiet ? null : reason };
}

/** One line of the table, for people. */
export interface ExitLine {
  readonly end: string;
  readonly outcome: string;
  readonly reason: string;
}

/** A table as lines: what README.md and `check` show. */
export function exitLines(table: ExitTable): ExitLine[] {
  const show = ({ outcome, afterMs }: Ending) => outcome === "defer" ? `defer ${afterMs / 1000} s` : outcome;
  const line = (end: string, ending: Ending, reason: string): ExitLine => ({
    end,
    outcome: show(ending),
    reason: named(ending, "exit_code").reason === null ? "" : reason,
  });
  return [
    ...[...table.codes].map(([code, ending]) => line(`exit ${code}`, ending, "exit_code")),
    line("any other exit code", table.other, "exit_code"),
    line("death by a signal", table.signal, "signal"),
    line("time limit passed", table.timeout, "timed_out"),
    { end: "lease lost", outcome: "aborted (nothing is written)", reason: "lease_lost" },
    { end: "runner stopped", outcome: "aborted (handed back, uncharged)", reason: "drained" },
    { end: "the item does not fit the config", outcome: "final", reason: "invalid_item" },
    { end: "no program, or the host lacks what it needs", outcome: "retry", reason: "not_started" },
    { end: "no work directory", outcome: "retry", reason: "workdir" },
    { end: "git clone failed", outcome: "retry", reason: "clone" },
    { end: "no prompt file, or no refresh", outcome: "retry", reason: "prompt" },
  ];
}
