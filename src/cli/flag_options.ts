/**
 * The flags of the table as commander options, and back.
 *
 * @module
 */
import { type Command, Option } from "commander";
import { describeDefault } from "../runtime/settings.ts";
import { envName, FLAG_ENTRIES, type FlagKey, type FlagSection, type FlagSpec, placeholder } from "../runtime/flags.ts";

/** Adds the flags of the given sections to a command, under a heading a section. */
export function addFlags(command: Command, sections: readonly FlagSection[], except: readonly string[] = []): void {
  for (const section of sections) {
    command.optionsGroup(`${section}:`);
    for (const [, spec] of FLAG_ENTRIES) {
      if (spec.section !== section || except.includes(spec.flag)) continue;
      const option = new Option(`--${spec.flag} ${placeholder(spec)}`, describeFlag(spec));
      if (spec.type === "list") option.argParser((value, before?: string) => before ? `${before},${value}` : value);
      command.addOption(option);
    }
  }
}

/** A flag's line in help: what it is, its default and range, its variable. */
export function describeFlag(spec: FlagSpec): string {
  const facts = [
    spec.default === null ? "" : `default ${describeDefault(spec)}`,
    "min" in spec ? `${spec.min} to ${spec.max}` : "",
    envName(spec),
  ];
  return `${spec.help} [${facts.filter((fact) => fact !== "").join("; ")}]`;
}

/** The flags a command was given, as written. */
export function readFlags(command: Command): Partial<Record<FlagKey, string>> {
  const written: Partial<Record<FlagKey, string>> = {};
  const values = command.opts<Record<string, unknown>>();
  for (const [key, spec] of FLAG_ENTRIES) {
    const value = values[camelCase(spec.flag)];
    if (typeof value === "string") written[key] = value;
  }
  return written;
}

function camelCase(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
