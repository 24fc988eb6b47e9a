/**
 * What the parts of a host runner tell each other.
 *
 * @module
 */

/** A named time range of a host, on days of the week in a time zone. */
export interface HostWindow {
  /** For people and the log: `night`. */
  readonly name: string;
  /** An IANA time zone, `Europe/Berlin`. */
  readonly timeZone: string;
  /** Days it begins on, 1 (Monday) to 7. Empty: every day. */
  readonly days: readonly number[];
  /** Wall time it begins at, `HH:MM`. */
  readonly from: string;
  /** Wall time it ends before, `HH:MM`; not after `from` means the next day, equal means a whole day. */
  readonly to: string;
  /** The most items at once while it holds; 0 closes. */
  readonly maxInFlight: number;
  /** Weights allowed while it holds; null: those of the host. */
  readonly weights: readonly string[] | null;
}

/** A row of `queue.hosts`: what a machine may take, and what is known of it. */
export interface HostRow {
  /** Its name, for ever. */
  readonly name: string;
  /** The kill switch. New rows are off. */
  readonly enabled: boolean;
  /** Orgs it serves; none when empty. */
  readonly orgIds: readonly string[];
  /** Kinds it may claim; none when empty. */
  readonly kinds: readonly string[];
  /** Default `super-light` and `light`. */
  readonly weights: readonly string[];
  /** The smallest number of a priority it may claim (a smaller one is more urgent). Default 5. */
  readonly priorityFloor: number;
  /** The lane it serves. */
  readonly lane: string;
  /** Without windows none is open: a host without any claims nothing. */
  readonly windows: readonly HostWindow[];
  /** When a runner of it wrote last, by the database; null before the first time. */
  readonly lastHeartbeatAt: Date | null;
  /** How many items it held then, for people. */
  readonly currentWorkers: number;
}

/** The row as one heartbeat read it back, and the database's time then. */
export interface HostBeat {
  /** The row. */
  readonly row: HostRow;
  /** When the heartbeat was written, by the database: epoch milliseconds. */
  readonly databaseMs: number;
  /** When its answer was read, by this machine's monotonic clock: the database is at least as far since. */
  readonly answeredMonotonicMs: number;
}

/** What a host may claim at a moment. */
export interface ClaimAllowance {
  /** The most items, at least 1. */
  readonly limit: number;
  readonly orgIds: readonly string[];
  readonly kinds: readonly string[];
  readonly weights: readonly string[];
  readonly priorityFloor: number;
  /** Its name: items that prefer another host are left. */
  readonly host: string;
}

/** Why nothing may be claimed, for the log and `check`; never an error. */
export interface ClaimRefusal {
  readonly reason:
    | "no-row"
    | "disabled"
    | "no-window"
    | "window-closed"
    | "at-cap"
    | "nothing-allowed";
  /** In words, naming what mends it. */
  readonly said: string;
}

/** What the host's database rows are read and written through. Every call has a deadline. */
export interface HostApi {
  /**
   * Writes the heartbeat, and `currentWorkers` when it is known, and reads the row back; null when there is no row.
   *
   * @throws {UnavailableError} No answer. Nothing depends on the write.
   */
  beat(currentWorkers: number | null): Promise<HostBeat | null>;
  /** Reads the row alone, for when the heartbeat cannot be written; null when there is none. @throws {UnavailableError} */
  read(): Promise<HostRow | null>;
  /** Items this host holds now, whichever of its runners claimed them. @throws {UnavailableError} */
  countInFlight(): Promise<number>;
  /** Stores an attempt; of one attempt (org, item, token) the first stands. @throws {UnavailableError} */
  recordAttempt(attempt: AttemptRecord): Promise<void>;
}

/** How a command's end is read. */
export type AttemptOutcome = "done" | "retry" | "final" | "defer" | "aborted";

/** Why an attempt ended as it did, in one word of the documented table. */
export type FailureReason =
  | "exit_code"
  | "signal"
  | "timed_out"
  | "lease_lost"
  | "drained"
  | "not_started"
  | "invalid_item"
  | "workdir"
  | "clone"
  | "prompt";

/** A row of `queue.attempts`: one run of one item's command on a host. */
export interface AttemptRecord {
  /** Whose item it was. */
  readonly orgId: string;
  /** The item. */
  readonly itemId: string;
  /** The fence of the claim it ran under. */
  readonly claimToken: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** The machine: its name in `queue.hosts`. */
  readonly host: string;
  /** Which runner: `host-runner@machine/1234`. */
  readonly worker: string;
  /** By the host's clock, for people. */
  readonly startedAt: Date;
  /** By the same clock. */
  readonly finishedAt: Date;
  /** From its start to its end, clone and prompt included. */
  readonly durationMs: number;
  /** What became of the item. */
  readonly outcome: AttemptOutcome;
  /** Null when it is done or deferred. */
  readonly reason: FailureReason | null;
  /** Null when it was not started, or ended by a signal. */
  readonly exitCode: number | null;
  /** `SIGKILL`; null when it exited. */
  readonly signal: string | null;
  /** The end of what it wrote, valid UTF-8, at most 8 KiB each. */
  readonly stdoutTail: string;
  /** The same of its standard error. */
  readonly stderrTail: string;
  /** Bytes written before what is kept. */
  readonly stdoutCutBytes: number;
  /** The same of its standard error. */
  readonly stderrCutBytes: number;
}

/** Tells people of an unexpected error. Never throws, never waits for the network. */
export interface Notifier {
  /**
   * Tells, or holds back and counts.
   *
   * @param cause What it is counted by: one notice a cause in its interval. Stable words, no ids.
   * @param text What happened, for people.
   */
  notify(cause: string, text: string): void;
  /** Sends what is held back, bounded. */
  close(): Promise<void>;
}
