/**
 * The flags of the table as commander options, and back.
 *
 * @module
 */
import { type Command, Option } from "commander";
import { describeDefault } from "../runtime/settings.ts";
import { envName, FLAG_ENTRIES, type FlagKey, type FlagSection, type FlagSpec, placeholder } from "../runtime/flags.ts";

/** Which flags a command has, and how they are shown. */
export interface FlagChoice {
  readonly sections: readonly FlagSection[];
  /** Flags left out, as the command has an option of that name. */
  readonly except?: readonly string[];
  /** The worker's own defaults, which go before the table's. */
  readonly defaults?: Readonly<Partial<Record<FlagKey, string>>>;
}

/** Adds the flags of the given sections to a command, under a heading a section. */
export function addFlags(command: Command, { sections, except = [], defaults = {} }: FlagChoice): void {
  for (const section of sections) {
    command.optionsGroup(`${section}:`);
    for (const [key, spec] of FLAG_ENTRIES) {
      if (spec.section !== section || except.includes(spec.flag)) continue;
      const option = new Option(`--${spec.flag} ${placeholder(spec)}`, describeFlag(spec, defaults[key]));
      if (spec.type === "list") option.argParser((value, before?: string) => before ? `${before},${value}` : value);
      command.addOption(option);
    }
  }
}

/** A flag's line in help: what it is, its default and range, its variable. */
export function describeFlag(spec: FlagSpec, ownDefault?: string): string {
  const standard = ownDefault ?? describeDefault(spec);
  const facts = [
    standard === "" ? "" : `default ${standard}`,
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
