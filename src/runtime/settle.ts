/**
 * Hands a run's outcome back, and keeps trying while its lease is kept: work that was done is not thrown away because
 * the database was away for a moment.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";
import { ConflictError, UnavailableError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { WorkManager } from "../work/manager.ts";
import type { Run, Verdict } from "./run.ts";

/** What became of a hand-back. `left`: not written; the lease is left to expire. */
export type HandedBack = "completed" | "retried" | "dead_lettered" | "deferred" | "released" | "refused" | "left";

/** What `handBack` works with. */
export interface SettleOptions {
  readonly work: WorkManager;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Ends the retries: the worker is about to exit. */
  readonly giveUp: AbortSignal;
  /** Told how it ended, once. */
  readonly onHandedBack: (run: Run, verdict: Verdict, outcome: HandedBack) => void;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Writes a verdict. Retries while the database is out of reach, until the lease is lost or the worker gives up; a
 * refusal is final: another claim holds the item, and this run's outcome is dropped. `onHandedBack` is told, as a caller
 * that awaited this would be, without a promise more for each item.
 */
export async function handBack(run: Run, verdict: Verdict, options: SettleOptions): Promise<void> {
  let outcome: HandedBack = "refused";
  if (run.cause !== "LEASE_LOST" && verdict.type !== "drop") {
    try {
      outcome = outcomeOf(verdict, await write(run, verdict, options.work));
    } catch (error) {
      outcome = await insist(run, verdict, { ...options, error });
    }
  }
  const { kind, lane } = run.claimed.item;
  const label = outcome === "left" ? "refused" : outcome;
  options.metrics.count("laneway_items_settled_total", { kind, lane, outcome: label });
  options.onHandedBack(run, verdict, outcome);
}

/** What follows a first write that failed. */
async function insist(
  run: Run,
  verdict: Exclude<Verdict, { type: "drop" }>,
  options: SettleOptions & { readonly error: unknown },
): Promise<HandedBack> {
  const { item } = run.claimed;
  const { clock, logger, giveUp } = options;
  let { error } = options;
  let doubt = false;
  for (let pauseMs = FIRST_PAUSE_MS;; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    if (error instanceof ConflictError) {
      // Its command or another program finished it under this very claim, and it was moved away since.
      if (run.finishedUnderClaim) return "completed";
      logRefusal(run, verdict, doubt, logger);
      return "refused";
    }
    if (!(error instanceof UnavailableError)) {
      logger.error("work.outcome_not_written", { item: item.id, kind: item.kind, error: describeError(error) });
      return "left";
    }
    doubt ||= error.outcome === "unknown";
    if (giveUp.aborted) return "left";
    using waiting = eitherOf(giveUp, lostSignal(run));
    await clock.sleep(pauseMs * (0.5 + Math.random() / 2), waiting.signal);
    if (run.cause === "LEASE_LOST") return "refused";
    try {
      return outcomeOf(verdict, await write(run, verdict, options.work));
    } catch (failure) {
      error = failure;
    }
  }
}

/** After a lost answer a refusal most likely means that the first write took effect: that is no stale holder. */
function logRefusal(run: Run, verdict: Verdict, doubt: boolean, logger: Logger): void {
  const { id, kind, attempts } = run.claimed.item;
  const fields = { item: id, kind, attempt: attempts, verdict: verdict.type };
  if (doubt) logger.info("work.outcome_perhaps_written", fields);
  else logger.warn("work.outcome_refused", fields);
}

// While a run was told to stop for another reason, its signal says nothing of its lease.
function lostSignal(run: Run): AbortSignal | undefined {
  return run.cause === null ? run.signal : undefined;
}

/** Not async, as it is called for every item: the manager's own promise does. */
function write(run: Run, verdict: Exclude<Verdict, { type: "drop" }>, work: WorkManager): Promise<unknown> {
  const { ctx, item } = run.claimed;
  switch (verdict.type) {
    case "complete":
      return work.complete(ctx, item);
    case "fail":
      return work.fail(ctx, item, verdict.error);
    case "defer":
      return work.defer(ctx, item, verdict.delayMs, verdict.note);
    case "release":
      return work.release(ctx, item, verdict.note);
  }
}

function outcomeOf(verdict: Exclude<Verdict, { type: "drop" }>, told: unknown): HandedBack {
  switch (verdict.type) {
    case "complete":
      return "completed";
    case "fail":
      if (told === "FINISHED") return "completed";
      return told === "RETRIED" ? "retried" : "dead_lettered";
    case "defer":
      return "deferred";
    case "release":
      return "released";
  }
}
