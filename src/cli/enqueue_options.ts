/**
 * The options of `enqueue`.
 *
 * @module
 */
import type { Command } from "commander";
import { parseDuration } from "../core/duration.ts";
import { ValidationError } from "../core/errors.ts";
import { UsageError } from "../runtime/usage_error.ts";
import type { LineDefaults } from "./enqueue_request.ts";

/** The options as commander hands them over. */
export type EnqueueFlags = Readonly<
  Partial<
    Record<
      | "org"
      | "user"
      | "kind"
      | "key"
      | "id"
      | "payload"
      | "lane"
      | "priority"
      | "target"
      | "maxAttempts"
      | "delay"
      | "notBefore"
      | "file",
      string
    >
  >
>;

/** Adds the options of `enqueue` to its command. */
export function addEnqueueOptions(command: Command): void {
  command.optionsGroup("Item:")
    .option("--file <path>", "NDJSON, one item a line; - is standard input, and so is leaving out --file and --key.")
    .option("--org <uuid>", "The org. With a file: of lines that name none; so for user, kind, lane and priority.")
    .option("--user <uuid>", "The user the item is created by. Default: the org itself.")
    .option("--kind <KIND>", "The kind.")
    .option("--key <text>", "The idempotency key: the same key again creates nothing.")
    .option("--payload <json>", "The payload, a JSON object. Default {}.")
    .option("--id <uuid>", "The item's id. Default: minted.")
    .option("--target <uuid>", "The record the item advances.")
    .option("--lane <lane>", "The lane. Default: default.")
    .option("--priority <number>", "Lower runs first: 1-4 emergency, 5-9 high, 10 normal, 50 low.")
    .option("--max-attempts <number>", "Runs before it is a dead letter. Default 3.")
    .option("--delay <duration>", "Starts no sooner than this from now, on database time.")
    .option("--not-before <time>", "Starts no sooner than this, as 2026-12-24T18:00:00Z.")
    .addHelpText(
      "after",
      `
A line: {"org": "…", "kind": "…", "key": "…", "payload": {…}, "lane"?, "priority"?, "maxAttempts"?, "target"?, "user"?,
"id"?, "delayMs"? or "notBefore"?}. Each line is reported as inserted, already there, or refused with the reason; the
exit code is 1 when one was refused. Running the same file again creates nothing twice.`,
    );
}

/** Whether the flags describe one item, as against naming a file. */
export function isSingle(flags: EnqueueFlags): boolean {
  return flags.key !== undefined;
}

/**
 * One item's fields, as a line would give them.
 *
 * @throws {UsageError} A flag is malformed, or belongs to a file.
 */
export function fieldsOf(flags: EnqueueFlags): Record<string, unknown> {
  if (flags.file !== undefined) throw new UsageError("Cannot use --file with --key: a file's lines carry their keys");
  const fields: Record<string, unknown> = { ...defaultsOf(flags), key: flags.key, payload: payloadOf(flags.payload) };
  if (flags.id !== undefined) fields.id = flags.id;
  if (flags.target !== undefined) fields.target = flags.target;
  if (flags.maxAttempts !== undefined) fields.maxAttempts = wholeNumber("--max-attempts", flags.maxAttempts);
  if (flags.delay !== undefined) fields.delayMs = delayOf(flags.delay);
  if (flags.notBefore !== undefined) fields.notBefore = flags.notBefore;
  return fields;
}

/**
 * What lines without these fields get.
 *
 * @throws {UsageError} A flag is malformed, or would be the same for every line.
 */
export function defaultsOf(flags: EnqueueFlags): LineDefaults {
  if (!isSingle(flags)) {
    for (const name of ["payload", "id", "target", "maxAttempts", "delay", "notBefore"] as const) {
      if (flags[name] === undefined) continue;
      const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new UsageError(`Cannot use --${flag} without --key: with a file each line says it`);
    }
  }
  const { org, user, kind, lane } = flags;
  const defaults = { org, user, kind, lane };
  const given = Object.fromEntries(Object.entries(defaults).filter(([, value]) => value !== undefined));
  return flags.priority === undefined ? given : { ...given, priority: wholeNumber("--priority", flags.priority) };
}

function payloadOf(text: string | undefined): unknown {
  if (text === undefined) return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot use --payload: it is no JSON (${error instanceof Error ? error.message : error})`);
  }
}

function delayOf(text: string): number {
  try {
    return parseDuration(text, "--delay");
  } catch (error) {
    throw error instanceof ValidationError ? new UsageError(error.message) : error;
  }
}

function wholeNumber(flag: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) {
    throw new UsageError(`Cannot use ${flag} ${JSON.stringify(text)}: it must be a whole number`);
  }
  return Number(text);
}
