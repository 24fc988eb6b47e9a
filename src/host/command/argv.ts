/**
 * Argument lists: each entry becomes exactly one argument, byte for byte, or the item is refused. Nothing here is ever
 * read by a shell.
 *
 * @module
 */
import { CommandFailure, invalidItem } from "./failure.ts";
import { type FieldPath, type FieldScope, readField } from "./fields.ts";
import { fieldsOf, fill, leadOf, literalOf, parseTemplate, type Template } from "./template.ts";

/** One entry of an argument list. */
export type ArgvEntry =
  | {
    readonly type: "text";
    readonly template: Template;
    /** Whether what it becomes may begin with a dash: it cannot be taken for an option where it stands. */
    readonly dashAllowed: boolean;
  }
  /** The contents of a file, read at each run. */
  | { readonly type: "file"; readonly path: string; readonly dashAllowed: boolean }
  /** Left out when the item has no such field, or an empty one. */
  | { readonly type: "optional"; readonly when: FieldPath; readonly entries: readonly ArgvEntry[] };

/** The longest one argument or variable may be with the NUL behind it: what Linux takes (`MAX_ARG_STRLEN`). */
export const MAX_ARGUMENT_BYTES = 131_072;
/** What arguments and environment may take together; Linux takes 2 MiB at its usual stack limit, pointers counted. */
export const MAX_TOTAL_BYTES = 1_500_000;

// A value that fills in a part of program text would be read as program text.
const INTERPRETERS =
  /^(?:(?:ba|da|a|z|k|mk|c|tc|fi)?sh|busybox|python[\d.]*|node|deno|bun|perl[\d.]*|ruby[\d.]*|php[\d.]*)$/;
const TEXT_OPTIONS = /^(?:-[A-Za-z]*[cCeErp]|--(?:command|eval|exec|run|print|init-command)|eval)$/;
const GLUED_TEXT = /^--(?:command|eval|exec|run|print|init-command)=/;
// `--name={…}` or `-name={…}`: whatever comes behind the sign is a value.
const GLUED = /^--?[A-Za-z0-9][\w.-]*=/;

const encoder = new TextEncoder();

/** How many bytes a text is in UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/**
 * Reads one text of an argument list, given those before it.
 *
 * @returns The entry, or why it cannot be used, with the fix.
 */
export function parseArgument(text: string, before: readonly string[]): ArgvEntry | string {
  const template = parseTemplate(text);
  if (typeof template === "string") return template;
  const dashAllowed = before.includes("--");
  if (literalOf(template) !== null) return { type: "text", template, dashAllowed: true };
  if (before.length === 0) return "the program must be a literal: an item may not choose what is run";
  // Also behind what runs another program: env, timeout, sudo.
  const program = before.map((one) => one.split("/").at(-1) ?? "").find((name) => INTERPRETERS.test(name));
  const isText = TEXT_OPTIONS.test(before.at(-1) ?? "") || GLUED_TEXT.test(leadOf(template));
  if (program !== undefined && isText) {
    return `${program} would run the item's values as program text: keep this argument literal, read "$1" in it, and ` +
      `give the value as an argument of its own behind "--"`;
  }
  const lead = leadOf(template);
  if (lead === "") return { type: "text", template, dashAllowed };
  if (lead.startsWith("-") && !GLUED.test(lead) && !dashAllowed) {
    return `the item's value would be a part of an option's name: write "--name={…}", or put it behind "--"`;
  }
  return { type: "text", template, dashAllowed: true };
}

/**
 * What an argument list becomes for an item.
 *
 * @throws {CommandFailure} `invalid_item`, naming the argument: a field it needs is absent, it begins with a dash where
 * that would make it an option, it holds a NUL, or it is longer than one argument may be. `prompt`: the same of the
 * contents of a file, which is the host's fault.
 */
export async function buildArgv(entries: readonly ArgvEntry[], scope: FieldScope): Promise<string[]> {
  const argv: string[] = [];
  for (const entry of entries) {
    if (entry.type === "optional") {
      const value = readField(scope, entry.when);
      if (value !== null && value !== "") argv.push(...await buildArgv(entry.entries, scope));
    } else if (entry.type === "file") {
      argv.push(checkArgument(await readContents(entry.path), entry.path, { ...entry, ours: true }));
    } else {
      const ours = fieldsOf(entry.template).every(({ root }) => root === "run" || root === "host" || root === "worker");
      argv.push(checkArgument(fill(entry.template, scope), entry.template.text, { ...entry, ours }));
    }
  }
  return argv;
}

/**
 * Refuses arguments and variables that are too much for one program start.
 *
 * @throws {CommandFailure} `invalid_item`.
 */
export function checkTotal(argv: readonly string[], env: Readonly<Record<string, string>>): void {
  // Each costs a pointer and a NUL beside its bytes.
  let bytes = 0;
  for (const text of argv) bytes += byteLength(text) + 9;
  for (const [name, value] of Object.entries(env)) bytes += byteLength(name) + byteLength(value) + 10;
  if (bytes <= MAX_TOTAL_BYTES) return;
  throw invalidItem(
    `its arguments and environment take ${bytes} bytes, the limit is ${MAX_TOTAL_BYTES}: read large values from ` +
      `the file that LANEWAY_PAYLOAD_FILE names`,
  );
}

/** Refuses what no argument and no variable can carry. @throws {CommandFailure} */
export function checkCarried(value: string, label: string, ours: boolean): void {
  if (value.includes("\u0000")) throw refuse(ours, `${label} holds a NUL, which no argument can`);
  if (!value.isWellFormed()) throw refuse(ours, `${label} holds a lone surrogate, which is no text`);
  if (value.length * 3 < MAX_ARGUMENT_BYTES) return;
  const bytes = byteLength(value);
  if (bytes >= MAX_ARGUMENT_BYTES) {
    throw refuse(
      ours,
      `${label} is ${bytes} bytes long, one argument may be ${MAX_ARGUMENT_BYTES - 1}: read it from the file that ` +
        `${ours ? "LANEWAY_PROMPT_FILE" : "LANEWAY_PAYLOAD_FILE"} names`,
    );
  }
}

interface ArgumentRules {
  readonly dashAllowed: boolean;
  /** Whether it comes of the host's own files and not of the item. */
  readonly ours: boolean;
}

function checkArgument(value: string, written: string, { dashAllowed, ours }: ArgumentRules): string {
  const label = `argument "${written}"`;
  checkCarried(value, label, ours);
  if (value.startsWith("-") && !dashAllowed) {
    throw refuse(ours, `${label} begins with "-" and would be read as an option`);
  }
  return value;
}

function refuse(ours: boolean, message: string): CommandFailure {
  // The host mends its files; the item is as good as before.
  return ours ? new CommandFailure("prompt", "retry", message) : invalidItem(message);
}

async function readContents(path: string): Promise<string> {
  try {
    return await Deno.readTextFile(path);
  } catch (cause) {
    throw new CommandFailure("prompt", "retry", `cannot read ${path}, whose contents are an argument`, { cause });
  }
}
