/**
 * Commands by the path of their config: what a worker needs of it, without its insides.
 *
 * @module
 */
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/log.ts";
import type { WorkKind } from "../../work/types.ts";
import type { AttemptRecord, Notifier } from "../types.ts";
import { type Commands, openCommands } from "./handler.ts";
import { kindsOf, loadCommandConfig } from "./load.ts";

/** What commands are run with. */
export interface CommandsAtOptions {
  /** The name of the machine's row in `queue.hosts`. */
  readonly host: string;
  /** Which runner: `host-runner@machine/1234`. */
  readonly worker: string;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** Is told of what is the host's fault. */
  readonly notifier: Notifier;
  /** Stores a row per attempt. Best effort: it is not waited for, and losing one stops nothing. */
  readonly recordAttempt: (attempt: AttemptRecord) => Promise<void>;
}

/** The kinds of a command config. @throws {UsageError} It does not serve. @throws {SettingsError} It cannot be read. */
export async function commandKinds(path: string): Promise<readonly WorkKind[]> {
  return kindsOf(await loadCommandConfig(path));
}

/**
 * Reads a command config and opens its commands: see `openCommands`.
 *
 * @throws {UsageError} It does not serve. @throws {SettingsError} It cannot be read, or the work folder not made.
 */
export async function openCommandsAt(path: string, options: CommandsAtOptions): Promise<Commands> {
  return await openCommands({ config: await loadCommandConfig(path), ...options });
}
