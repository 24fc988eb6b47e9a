/**
 * The error of a person's input, as against the world's.
 *
 * @module
 */
import { SettingsError } from "../core/errors.ts";

/** The command line, the environment or a file given to a command is wrong: exit code 2, nothing was done. */
export class UsageError extends SettingsError {}
