/**
 * What the commands share.
 *
 * @module
 */
import type { Command } from "commander";
import type { WorkerDefinition } from "../runtime/definition.ts";
import type { Settings } from "../runtime/settings.ts";
import type { CliIo } from "./io.ts";

/** Handed to every command. */
export interface CommandContext {
  readonly definition: WorkerDefinition;
  readonly io: CliIo;
  /** The settings as this command's flags and the environment say. */
  settingsOf(command: Command): Settings;
  /** Sets the exit code. */
  exit(code: number): void;
}
