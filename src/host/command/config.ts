/**
 * What a host's command config says, once it is read.
 *
 * @module
 */
import type { RetryPolicy } from "../../work/rules.ts";
import type { ArgvEntry } from "./argv.ts";
import type { ExitTable } from "./classify.ts";
import type { EnvRecipe, EnvSource } from "./environment.ts";
import type { FieldPath } from "./fields.ts";
import type { FolderConfig } from "./folders.ts";
import type { CloneConfig } from "./git.ts";
import type { LogSettings } from "./run_log.ts";
import type { Template } from "./template.ts";
import type { WorkSettings } from "./work_folders.ts";

/** A command config, checked whole. Made by `loadCommandConfig`. */
export interface CommandConfig {
  /** The file it was read from. */
  readonly path: string;
  /** Where runs work. */
  readonly work: WorkSettings;
  /** Where their full output goes. */
  readonly logs: LogSettings;
  /** Variables of every kind; a kind's own go before them. */
  readonly env: Readonly<Record<string, EnvSource>>;
  /** Folders of files that runs read, by name. */
  readonly folders: Readonly<Record<string, FolderConfig>>;
  /** By the name of the kind. */
  readonly kinds: Readonly<Record<string, KindCommand>>;
}

/** What is run for items of a kind. */
export interface KindCommand {
  /** Its name. */
  readonly kind: string;
  /** The program as the config names it: a name on PATH, or an absolute path. */
  readonly program: string;
  /** What stands behind the program. */
  readonly args: readonly ArgvEntry[];
  /** Its own variables. */
  readonly env: EnvRecipe;
  /** What its standard input holds. */
  readonly stdin: "none" | "payload" | "prompt";
  /** 0 to 19. */
  readonly nice: number;
  /** Milliseconds; 0 none. */
  readonly timeLimitMs: number;
  /** From TERM to KILL when the time limit passes, milliseconds. */
  readonly killGraceMs: number;
  /** How its retries are spaced. */
  readonly retry: RetryPolicy;
  /** Names its work directory, for people. */
  readonly workName: Template;
  /** Whether the work directory of a failed run is kept. */
  readonly keepOnFailure: boolean;
  /** The repository it works in; null: an empty folder. */
  readonly clone: CloneConfig | null;
  /** Its prompt or input file; null: none. */
  readonly prompt: PromptConfig | null;
  /** How its ends are read. */
  readonly exits: ExitTable;
  /** A command that ends with 0 when this host is logged in to what the kind needs; run by `check` alone. */
  readonly loginTest: LoginTest | null;
}

/** Which file is a run's prompt or input. */
export interface PromptConfig {
  /** Its name in `folders`. */
  readonly folder: string;
  /** Below the folder. */
  readonly file: Template;
  /** The field that names a role; null: none. */
  readonly role: FieldPath | null;
  /** Used instead of `file` when the item has a role and this file exists. */
  readonly roleFile: Template | null;
}

/** A test of a login. */
export interface LoginTest {
  /** A program and its arguments, literals alone. */
  readonly argv: readonly string[];
  /** Milliseconds. */
  readonly timeLimitMs: number;
}
