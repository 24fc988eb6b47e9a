/**
 * Relays the outbox when somebody says that rows wait: a writer in another language, or one that could not relay itself.
 * A hint reaches every worker; one of them relays. Whatever a lost hint leaves, the sweep takes.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import { describeError } from "../core/describe_error.ts";
import { limitRepeats } from "../core/log_limit.ts";
import { Signal } from "./signal.ts";
import { relayTurn } from "./sweep.ts";
import type { WorkerRuntimeOptions } from "./types.ts";

const BATCH = 200;
/** Hints this close together are one relay's work. */
const TURN_MS = 200;
const SPREAD_MS = 50;
const REPEAT_MS = 10_000;

/** Relays on hints until `stop`. Never throws. */
export async function relayOnHints(
  options: WorkerRuntimeOptions,
  rctx: RequestContext,
  stop: AbortSignal,
): Promise<void> {
  const hint = new Signal();
  const logger = limitRepeats(options.logger, { clock: options.clock, intervalMs: REPEAT_MS });
  const unsubscribe = options.topics.subscribe("OUTBOX_PENDING", () => hint.fire());
  stop.addEventListener("abort", unsubscribe, { once: true });
  while (!stop.aborted) {
    await hint.wait(stop);
    if (stop.aborted) return;
    try {
      await relayOnce(options, rctx, stop);
    } catch (error) {
      logger.warn("outbox.hint_not_relayed", { error: describeError(error) });
    }
  }
}

/** Whoever loses the turn looks once more after it: the winner may have looked before the rows were committed. */
async function relayOnce(options: WorkerRuntimeOptions, rctx: RequestContext, stop: AbortSignal): Promise<void> {
  const { clock, managers, handlers } = options;
  const turn = `hinted ${relayTurn(handlers.map((handler) => handler.kind.name))}`;
  for (let tries = 0; tries < 2 && !stop.aborted; tries++) {
    await clock.sleep(Math.random() * SPREAD_MS + tries * TURN_MS, stop);
    if ((await managers.work.takeSweepSteps(rctx, [turn], TURN_MS)).length === 0) continue;
    while ((await managers.outbox.relayPending(rctx, BATCH)).relayed >= BATCH && !stop.aborted);
    return;
  }
}
