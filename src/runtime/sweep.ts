/**
 * The sweep: housekeeping every worker does on a timer. An ordered list of idempotent, bounded, wrapped steps under a
 * time budget; a pass that runs out carries on where it stopped. The database lets one worker run a step per interval.
 *
 * @module
 */
import type { RequestContext } from "../core/context.ts";
import { describeError } from "../core/describe_error.ts";
import { SettingsError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { limitRepeats } from "../core/log_limit.ts";
import type { Managers } from "../managers.ts";
import { HostGauges } from "./host_gauges.ts";
import type { SweepStep, WorkerRuntimeOptions } from "./types.ts";

const ORGS_A_PASS = 100;
const STALE_BATCH = 1_000;
const RELAY_BATCH = 200;
const PURGE_BATCH = 1_000;
const REPEAT_MS = 10_000;
/** What can wait has its turn once in so many intervals: an idle worker's statements are mostly the sweep's. */
const SLOW = 6;
const GAUGES_EVERY = 3;

/**
 * The built-in steps, in order.
 *
 * @param kinds The kinds this build knows: its relay leaves rows of others, so its turn must not be theirs.
 */
export function builtInSteps(managers: Managers, kinds: readonly string[] = []): readonly SweepStep[] {
  const { work, outbox, idempotency, tenancy } = managers;
  return [
    {
      name: "requeue-stale",
      async run(rctx) {
        const { live } = await work.staleOrgs(rctx, ORGS_A_PASS);
        let count = 0;
        const failures: unknown[] = [];
        for (const ctx of live) {
          // One org's trouble must not keep the others' items from coming back.
          const counts = await work.requeueStale(ctx, STALE_BATCH).catch((error) => void failures.push(error));
          count += (counts?.requeued ?? 0) + (counts?.deadLettered ?? 0);
        }
        if (failures.length > 0) throw failures[0];
        return { count, more: live.length === ORGS_A_PASS || count >= STALE_BATCH };
      },
    },
    {
      name: "fail-orphans",
      every: SLOW,
      async run(rctx) {
        const { ended } = await work.staleOrgs(rctx, ORGS_A_PASS);
        const count = await work.failStaleOfEnded(rctx, ended);
        return { count, more: count >= STALE_BATCH };
      },
    },
    {
      name: "audit-dead-letters",
      every: SLOW,
      run: (rctx) => batch(work.auditDeadLetters(rctx, STALE_BATCH), STALE_BATCH),
    },
    {
      name: "relay-outbox",
      turn: relayTurn(kinds),
      async run(rctx) {
        const { relayed } = await outbox.relayPending(rctx, RELAY_BATCH);
        return { count: relayed, more: relayed >= RELAY_BATCH };
      },
    },
    { name: "prune-host-orgs", every: SLOW, run: (rctx) => batch(work.pruneHostOrgs(rctx), Infinity) },
    { name: "archive-done", every: SLOW, run: (rctx) => batch(work.archiveDone(rctx), PURGE_BATCH) },
    { name: "purge-outbox", every: SLOW, run: (rctx) => batch(outbox.purgeDone(rctx), PURGE_BATCH) },
    { name: "purge-items", every: SLOW, run: (rctx) => batch(work.purgeItems(rctx), PURGE_BATCH) },
    { name: "purge-attempts", every: SLOW, run: (rctx) => batch(work.purgeAttempts(rctx), PURGE_BATCH) },
    { name: "purge-keys", every: SLOW, run: (rctx) => batch(work.purgeKeys(rctx), PURGE_BATCH) },
    { name: "purge-markers", every: SLOW, run: (rctx) => batch(idempotency.purgeMarkers(rctx), PURGE_BATCH) },
    { name: "purge-tickets", every: SLOW, run: (rctx) => batch(tenancy.purgeSocketTickets(rctx), PURGE_BATCH) },
    { name: "purge-sessions", every: SLOW, run: (rctx) => batch(tenancy.purgeSessions(rctx), PURGE_BATCH) },
  ];
}

/** What builds that know the same kinds share their relay's turn by. */
export function relayTurn(kinds: readonly string[]): string {
  return `relay-outbox ${[...kinds].sort().join(",")}`.slice(0, 500);
}

/** A container's steps among the built-in ones: each before the step it names, or behind all. */
function inOrder(builtIn: readonly SweepStep[], own: readonly SweepStep[]): SweepStep[] {
  const names = new Set(builtIn.map((step) => step.name));
  const wrong = own.find(({ before }) => before !== undefined && !names.has(before));
  if (wrong !== undefined) {
    throw new SettingsError(
      `Cannot put sweep step ${wrong.name} before ${wrong.before}: there is no such built-in step; name one of ` +
        [...names].join(", "),
    );
  }
  const placed = builtIn.flatMap((step) => [...own.filter(({ before }) => before === step.name), step]);
  return [...placed, ...own.filter(({ before }) => before === undefined)];
}

function turnOf(step: SweepStep): string {
  return step.turn ?? step.name;
}

function paceOf({ every }: SweepStep): number {
  return every ?? 1;
}

async function batch(counted: Promise<number>, size: number): Promise<{ count: number; more: boolean }> {
  const count = await counted;
  return { count, more: count >= size };
}

/** Runs the steps on a timer. */
export class Sweeper {
  readonly #o: WorkerRuntimeOptions;
  readonly #rctx: RequestContext;
  readonly #steps: readonly SweepStep[];
  readonly #onRows: () => void;
  /** A step that fails does so at every pass while the database is away. */
  readonly #limited: Logger;
  /** Turns taken and not yet used up. */
  readonly #turns = new Set<string>();
  /** When a turn is asked for again. */
  readonly #askAtMs = new Map<string, number>();
  #gaugesAtMs = -Infinity;
  readonly #hosts = new HostGauges();
  #next = 0;

  /** @param onRows Called when a step moved rows: some may be claimable now. */
  constructor(options: WorkerRuntimeOptions, rctx: RequestContext, onRows: () => void) {
    this.#o = options;
    this.#rctx = rctx;
    const kinds = options.handlers.map((handler) => handler.kind.name);
    this.#steps = inOrder(builtInSteps(options.managers, kinds), options.sweepSteps ?? []);
    this.#onRows = onRows;
    this.#limited = limitRepeats(options.logger, {
      clock: options.clock,
      intervalMs: REPEAT_MS,
      key: (event, fields) => `${event} ${fields.step}`,
    });
  }

  /** Passes until `stop`. The first pass is at once, so that a crash's leftovers do not wait. Never throws. */
  async run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await this.pass(stop);
      // Jittered downwards alone: a step is never later than its interval.
      await this.#o.clock.sleep(this.#o.sweepMs * (0.8 + Math.random() * 0.2), stop);
    }
  }

  /** One pass: the steps that are this worker's turn, from where the last pass stopped, then the gauges. */
  async pass(stop: AbortSignal): Promise<number> {
    const { clock, sweepMs } = this.#o;
    const untilMs = clock.monotonic() + Math.max(sweepMs / 2, 1_000);
    await this.#takeTurns();
    let rows = 0;
    for (let done = 0; done < this.#steps.length && !stop.aborted && clock.monotonic() < untilMs; done++) {
      const step = this.#steps[this.#next % this.#steps.length];
      if (step !== undefined && this.#turns.delete(turnOf(step))) {
        rows += await this.#runStep(step, untilMs, stop);
      }
      this.#next = (this.#next + 1) % this.#steps.length;
    }
    if (!stop.aborted && clock.monotonic() >= this.#gaugesAtMs) {
      this.#gaugesAtMs = clock.monotonic() + sweepMs * (GAUGES_EVERY - 1);
      await this.#gauges();
    }
    if (rows > 0) this.#onRows();
    return rows;
  }

  /**
   * Asks for all turns of one pace in one statement. Half an interval: a lone worker always gets its turn, a fleet runs a
   * step at most twice an interval. A turn that the time budget left unused, or not used up, is kept for the next pass.
   */
  async #takeTurns(): Promise<void> {
    const nowMs = this.#o.clock.monotonic();
    const due = this.#steps.filter((step) => {
      const turn = turnOf(step);
      return !this.#turns.has(turn) && nowMs >= (this.#askAtMs.get(turn) ?? -Infinity);
    });
    for (const every of new Set(due.map(paceOf))) await this.#takeTurnsOf(every, due);
  }

  async #takeTurnsOf(every: number, due: readonly SweepStep[]): Promise<void> {
    const { managers, sweepMs, clock } = this.#o;
    const wanted = due.filter((step) => paceOf(step) === every).map(turnOf);
    try {
      const taken = await managers.work.takeSweepSteps(this.#rctx, wanted, Math.floor(sweepMs * every / 2));
      for (const turn of taken) this.#turns.add(turn);
      // Whoever was refused knows that somebody had the turn lately, and waits as long as whoever had it.
      for (const turn of wanted) this.#askAtMs.set(turn, clock.monotonic() + sweepMs * (every - 1));
    } catch (error) {
      this.#limited.warn("sweep.turns_not_taken", { error: describeError(error) });
    }
  }

  async #runStep(step: SweepStep, untilMs: number, stop: AbortSignal): Promise<number> {
    const { metrics, clock } = this.#o;
    let rows = 0;
    let more = true;
    try {
      while (more && !stop.aborted && clock.monotonic() < untilMs) {
        const result = await step.run(this.#rctx);
        rows += result.count;
        more = result.more;
      }
      if (more) this.#turns.add(turnOf(step));
      metrics.count("laneway_sweep_steps_total", { step: step.name, outcome: "ok" });
      if (rows > 0) metrics.count("laneway_sweep_rows_total", { step: step.name }, rows);
    } catch (error) {
      metrics.count("laneway_sweep_steps_total", { step: step.name, outcome: "failed" });
      this.#limited.warn("sweep.step_failed", { step: step.name, error: describeError(error) });
    }
    return rows;
  }

  async #gauges(): Promise<void> {
    const { managers, metrics, countParked } = this.#o;
    try {
      const gauges = await managers.work.readGauges(this.#rctx);
      metrics.set("laneway_queue_oldest_age_seconds", gauges.oldestAgeSeconds);
      metrics.set("laneway_work_queued", gauges.queued);
      metrics.set("laneway_work_failed", gauges.failed);
      metrics.set("laneway_records_parked", countParked === undefined ? 0 : await countParked(this.#rctx));
      metrics.set("laneway_outbox_lag_seconds", (await managers.outbox.readLag(this.#rctx)).oldestAgeSeconds);
      await this.#hosts.update(this.#rctx, managers.work, metrics);
    } catch (error) {
      this.#limited.warn("sweep.gauges_failed", { error: describeError(error) });
    }
  }
}
