/**
 * Hands a run's outcome back, and keeps trying while its lease is kept: work that was done is not thrown away because
 * the database was away for a moment.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
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
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Writes a verdict. Retries while the database is out of reach, until the lease is lost or the worker gives up; a
 * refusal is final: another claim holds the item, and this run's outcome is dropped.
 */
export async function handBack(run: Run, verdict: Verdict, options: SettleOptions): Promise<HandedBack> {
  const { item } = run.claimed;
  const { clock, logger, metrics, giveUp } = options;
  let outcome: HandedBack = "left";
  let doubt = false;
  for (let pauseMs = FIRST_PAUSE_MS;; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    if (run.cause === "LEASE_LOST" || verdict.type === "drop") {
      outcome = "refused";
      break;
    }
    try {
      outcome = await write(run, verdict, options.work);
      break;
    } catch (error) {
      if (error instanceof ConflictError) {
        logRefusal(run, verdict, doubt, logger);
        outcome = "refused";
        break;
      }
      if (!(error instanceof UnavailableError)) {
        logger.error("work.outcome_not_written", { item: item.id, kind: item.kind, error: describeError(error) });
        break;
      }
      doubt ||= error.outcome === "unknown";
      if (giveUp.aborted) break;
    }
    await clock.sleep(pauseMs * (0.5 + Math.random() / 2), AbortSignal.any([giveUp, ...lostSignal(run)]));
  }
  const label = outcome === "left" ? "refused" : outcome;
  metrics.count("laneway_items_settled_total", { kind: item.kind, lane: item.lane, outcome: label });
  return outcome;
}

/** After a lost answer a refusal most likely means that the first write took effect: that is no stale holder. */
function logRefusal(run: Run, verdict: Verdict, doubt: boolean, logger: Logger): void {
  const { id, kind, attempts } = run.claimed.item;
  const fields = { item: id, kind, attempt: attempts, verdict: verdict.type };
  if (doubt) logger.info("work.outcome_perhaps_written", fields);
  else logger.warn("work.outcome_refused", fields);
}

// While a run was told to stop for another reason, its signal says nothing of its lease.
function lostSignal(run: Run): AbortSignal[] {
  return run.cause === null ? [run.signal] : [];
}

async function write(run: Run, verdict: Exclude<Verdict, { type: "drop" }>, work: WorkManager): Promise<HandedBack> {
  const { ctx, item } = run.claimed;
  switch (verdict.type) {
    case "complete":
      await work.complete(ctx, item);
      return "completed";
    case "fail":
      return await work.fail(ctx, item, verdict.error) === "RETRIED" ? "retried" : "dead_lettered";
    case "defer":
      await work.defer(ctx, item, verdict.delayMs, verdict.note);
      return "deferred";
    case "release":
      await work.release(ctx, item, verdict.note);
      return "released";
  }
}
