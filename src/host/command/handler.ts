/**
 * Runs a local command for each item.
 *
 * @module
 */
import type { OpContext } from "../../core/context.ts";
import { describeError } from "../../core/describe_error.ts";
import { FinalError } from "../../core/errors.ts";
import {
  defer,
  type Deferral,
  type WorkHandler,
  type WorkItem,
  type WorkKind,
  type WorkRun,
} from "../../work/types.ts";
import type { AttemptRecord } from "../types.ts";
import type { KindCommand } from "./config.ts";
import { Folders } from "./folders.ts";
import { workKind } from "./load.ts";
import { LogFolder } from "./run_log.ts";
import { type CommandParts, type CommandsOptions, type Finished, runCommand } from "./run_command.ts";
import { RunStop } from "./stop.ts";
import { WorkFolders } from "./work_folders.ts";

export type { CommandsOptions };

/** The handlers of a config, and what they share. */
export interface Commands {
  /** One for each kind. */
  readonly handlers: readonly WorkHandler[];
  /**
   * Ends and clears what killed runners left on this host. Done once at `open`, and again before a run at most once a
   * minute; safe at any time.
   */
  clearLeftovers(): Promise<number>;
  /** Waits for attempts that are being recorded, bounded, and removes the work folder. Call it when nothing runs. */
  close(): Promise<void>;
}

/** How long `close` waits for attempts that are being recorded. */
const RECORD_WAIT_MS = 3_000;
const CLEAR_EVERY_MS = 60_000;

/**
 * Opens the work folder, clears what killed runners left, and gives a handler for each kind of the config.
 *
 * @throws {SettingsError} The work folder cannot be made, or others could write to it.
 */
export async function openCommands(options: CommandsOptions): Promise<Commands> {
  const folders = await WorkFolders.open(options.config.work, options.logger);
  return new CommandSet(options, folders);
}

class CommandSet implements Commands {
  readonly handlers: readonly WorkHandler[];
  readonly #parts: CommandParts;
  readonly #recording = new Set<Promise<void>>();
  #clearedMs: number;

  constructor(options: CommandsOptions, work: WorkFolders) {
    const { config, logger, clock } = options;
    this.#clearedMs = clock.monotonic();
    this.#parts = { ...options, work, files: new Folders(config.folders), logs: new LogFolder(config.logs, logger) };
    const hooks = { record: (attempt: AttemptRecord) => this.#record(attempt), beforeRun: () => this.#beforeRun() };
    this.handlers = Object.values(config.kinds).map((command) => new CommandHandler(command, this.#parts, hooks));
  }

  clearLeftovers(): Promise<number> {
    this.#clearedMs = this.#parts.clock.monotonic();
    return this.#parts.work.clearLeftovers();
  }

  async close(): Promise<void> {
    const { clock } = this.#parts;
    const done = new AbortController();
    const all = Promise.all(this.#recording).then(() => done.abort());
    await Promise.race([all, clock.sleep(RECORD_WAIT_MS, done.signal)]);
    await this.#parts.work.close();
  }

  #beforeRun(): void {
    const { clock, logger } = this.#parts;
    if (clock.monotonic() - this.#clearedMs < CLEAR_EVERY_MS) return;
    void this.clearLeftovers().catch((error) => {
      logger.warn("host.leftovers_not_cleared", { error: describeError(error) });
    });
  }

  #record(attempt: AttemptRecord): void {
    const { logger, recordAttempt } = this.#parts;
    const recording = (async () => {
      try {
        await recordAttempt(attempt);
      } catch (error) {
        logger.warn("host.attempt_not_recorded", { item: attempt.itemId, error: describeError(error) });
      }
    })();
    this.#recording.add(recording);
    void recording.then(() => this.#recording.delete(recording));
  }
}

/** What a handler tells its set. */
interface Hooks {
  readonly record: (attempt: AttemptRecord) => void;
  readonly beforeRun: () => void;
}

/** Runs items of one kind by the config's command. */
export class CommandHandler implements WorkHandler {
  readonly kind: WorkKind;
  readonly #command: KindCommand;
  readonly #parts: CommandParts;
  readonly #hooks: Hooks;

  constructor(command: KindCommand, parts: CommandParts, hooks: Hooks) {
    this.kind = workKind(command);
    this.#command = command;
    this.#parts = parts;
    this.#hooks = hooks;
  }

  /**
   * Runs the command to its end. Its exit decides, by the kind's table; whatever was asked of it by the runtime (a lost
   * lease, a stop) the runtime itself writes. The process group, the work directory and the log are ended by then.
   *
   * @throws {FinalError} The item cannot be run, or its end is final.
   */
  async handle(ctx: OpContext, item: WorkItem, run: WorkRun): Promise<void | Deferral> {
    this.#hooks.beforeRun();
    const { clock } = this.#parts;
    const startedAt = new Date(clock.now());
    const startedMs = clock.monotonic();
    const { timeLimitMs, killGraceMs } = this.#command;
    const stop = new RunStop({ signal: run.signal, timeLimitMs, killGraceMs, clock });
    let finished: Finished;
    try {
      finished = await runCommand({ ctx, item, run, stop, command: this.#command }, this.#parts);
    } finally {
      stop.dispose();
    }
    this.#hooks.record({
      orgId: ctx.orgId,
      itemId: item.id,
      claimToken: item.claimToken ?? "",
      attempt: item.attempts,
      host: this.#parts.host,
      worker: this.#parts.worker,
      startedAt,
      finishedAt: new Date(clock.now()),
      durationMs: Math.round(clock.monotonic() - startedMs),
      outcome: finished.is.outcome,
      reason: finished.is.reason,
      exitCode: finished.exitCode,
      signal: finished.signal,
      stdoutTail: finished.stdout.text,
      stderrTail: finished.stderr.text,
      stdoutCutBytes: finished.stdout.cutBytes,
      stderrCutBytes: finished.stderr.cutBytes,
    });
    this.#tell(item, finished);
    return verdict(finished);
  }

  #tell(item: WorkItem, { is, message, exitCode, signal }: Finished): void {
    const { logger, notifier, host } = this.#parts;
    const fields = { item: item.id, kind: item.kind, attempt: item.attempts, outcome: is.outcome };
    const quiet = is.outcome === "done" || is.outcome === "defer" || is.outcome === "aborted";
    if (quiet) logger.info("host.command_ended", { ...fields, reason: is.reason, exitCode, signal });
    else logger.warn("host.command_failed", { ...fields, reason: is.reason, exitCode, signal, error: message });
    if (quiet || is.reason === null || !HOSTS_FAULT.has(is.reason)) return;
    notifier?.notify(`command.${is.reason}.${item.kind}`, `Host ${host} cannot run ${item.kind}: ${message}`);
  }
}

/** What no item is to blame for. */
const HOSTS_FAULT: ReadonlySet<string> = new Set(["not_started", "workdir", "clone", "prompt"]);

/** What the runtime is told. */
function verdict({ is, message }: Finished): void | Deferral {
  switch (is.outcome) {
    case "done":
      return;
    case "defer":
      return defer(is.afterMs, message);
    case "final":
      throw new FinalError(message);
    default:
      // Aborted: the runtime knows why, and decides by that.
      throw new Error(message);
  }
}
