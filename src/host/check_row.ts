/**
 * `check`: the host's row, whether somebody sweeps, and the clocks.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import type { Check } from "../runtime/definition.ts";
import { decideClaim, isAllowance } from "./policy_rules.ts";
import type { ProbeAnswer, RestProbe } from "./rest_probe.ts";
import type { HostApi, HostBeat, HostRow } from "./types.ts";
import { describeWindow, nextOpening } from "./windows.ts";

const CLOCK_WARN_MS = 2_000;
/** Every SQL worker asks for its sweep's turns far oftener. */
const SWEPT_WITHIN_MS = 5 * 60_000;

/** What the row is held against. */
export interface RowFacts {
  readonly host: string;
  readonly lane: string;
  /** The kinds with a command here. */
  readonly kinds: readonly string[];
}

/**
 * Writes a heartbeat, as the runner does every poll, and looks at the row it reads back and at the clocks.
 *
 * @returns The findings, and the database's time; null when it could not be read.
 */
export async function checkRow(
  api: HostApi,
  facts: RowFacts,
  clock: Clock,
): Promise<{ readonly checks: readonly Check[]; readonly databaseMs: number | null }> {
  let beat: HostBeat | null;
  const sentMs = clock.monotonic();
  try {
    beat = await api.beat(await api.countInFlight());
  } catch (error) {
    return { checks: [fail("host row", `it cannot be read: ${describeError(error)}`)], databaseMs: null };
  }
  if (beat === null) {
    const said = `queue.hosts has no row ${facts.host}, or the key may not see it: insert it (new rows are off)`;
    return { checks: [fail("host row", said)], databaseMs: null };
  }
  const halfwayMs = (beat.answeredMonotonicMs - sentMs) / 2;
  const aheadMs = Math.round(beat.databaseMs - (clock.now() - halfwayMs));
  return { checks: [...describeRow(beat, facts), checkClock(aheadMs)], databaseMs: beat.databaseMs };
}

/** What the row lets this runner do now, and whether all of its kinds have a command. */
export function describeRow({ row, databaseMs }: HostBeat, { host, lane, kinds }: RowFacts): Check[] {
  const answer = decideClaim({ host, row, atMs: databaseMs, kinds, lane, inFlight: null, limit: 1 });
  const checks = [isAllowance(answer) ? ok("host row", describeAllowed(row)) : refused(row, answer, databaseMs)];
  const without = row.kinds.filter((kind) => !kinds.includes(kind));
  if (without.length > 0) {
    const said = `${
      without.join(", ")
    } may be claimed and has no command here: another runner of this host must have it`;
    checks.push({ name: "kinds", state: "warn", said });
  }
  const idle = kinds.filter((kind) => !row.kinds.includes(kind));
  if (idle.length > 0) {
    const said = `${idle.join(", ")} has a command here and is not in the row's kinds: it is never claimed`;
    checks.push({ name: "kinds", state: "warn", said });
  }
  return checks;
}

function refused(row: HostRow, { reason, said }: { reason: string; said: string }, atMs: number): Check {
  // How a host stands before it is switched on, and outside its hours.
  if (reason === "disabled") return { name: "host row", state: "warn", said: `${said} (${describeAllowed(row)})` };
  if (reason !== "window-closed") return fail("host row", said);
  const opensMs = nextOpening(row.windows, atMs);
  if (opensMs === null) return fail("host row", `${said}, nor in the week to come: look at the caps of its windows`);
  return { name: "host row", state: "warn", said: `${said}; the next opens at ${new Date(opensMs).toISOString()}` };
}

function describeAllowed(row: HostRow): string {
  const windows = row.windows.map((window) => `${describeWindow(window)} up to ${window.maxInFlight}`).join("; ");
  return `${row.orgIds.length} org${row.orgIds.length === 1 ? "" : "s"}, kinds ${row.kinds.join(", ") || "none"}, ` +
    `weights ${row.weights.join(", ") || "none"}, priority ${row.priorityFloor} and less urgent, lane ${row.lane}, ` +
    `windows ${windows || "none"}`;
}

function checkClock(aheadMs: number): Check {
  const ms = Math.abs(aheadMs);
  if (ms <= CLOCK_WARN_MS) return ok("clock", `within ${Math.max(ms, 1)} ms of the database`);
  const said =
    `the database is ${ms} ms ${aheadMs > 0 ? "ahead" : "behind"}: leases and windows go by its clock, but set ` +
    "this machine's, or log lines mislead and TLS may fail";
  return { name: "clock", state: "warn", said };
}

/** Whether a SQL worker sweeps: without one, what a dead host held is never taken back, nor a finished row moved. */
export async function checkSweeper(probe: RestProbe, databaseMs: number): Promise<Check> {
  const name = "sweeper";
  const path = "/sweep_steps?select=last_run_at&order=last_run_at.desc&limit=1";
  const last = lastRun(await probe({ method: "GET", path }));
  if (typeof last === "string") return fail(name, last);
  if (last === null) return fail(name, "no SQL worker has ever swept: start one, for example the maintenance worker");
  const ageMs = databaseMs - last;
  const seconds = Math.max(0, Math.round(ageMs / 1_000));
  return ageMs <= SWEPT_WITHIN_MS
    ? ok(name, `a SQL worker swept ${seconds} s ago`)
    : fail(name, `no SQL worker has swept for ${seconds} s: start one, for example the maintenance worker`);
}

function lastRun({ status, code, body }: ProbeAnswer): number | string | null {
  if (status !== 200 || !Array.isArray(body)) {
    return `it cannot be read when somebody swept last (${status} ${code ?? ""})`;
  }
  const [row] = body as readonly { readonly last_run_at?: unknown }[];
  return row === undefined ? null : Date.parse(String(row.last_run_at));
}

function ok(name: string, said: string): Check {
  return { name, state: "ok", said };
}

function fail(name: string, said: string): Check {
  return { name, state: "fail", said };
}
