/**
 * Shell completions, generated from the commands as they are: nothing to keep up to date.
 *
 * @module
 */
import type { Command, Option } from "commander";
import { FLAG_ENTRIES } from "../runtime/flags.ts";

/** The shells completions exist for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** A shell completions exist for. */
export type Shell = (typeof SHELLS)[number];

/** The completion script of `program` for `shell`. */
export function completionScript(program: Command, shell: Shell): string {
  if (shell === "fish") return fishScript(program);
  const bash = bashScript(program);
  return shell === "bash" ? bash : `#compdef ${program.name()}\nautoload -U +X bashcompinit && bashcompinit\n${bash}`;
}

function valuesOf(option: Option): readonly string[] {
  const spec = FLAG_ENTRIES.find(([, entry]) => `--${entry.flag}` === option.long)?.[1];
  if (spec === undefined) return [];
  return spec.type === "enum" ? spec.values : spec.hints ?? [];
}

function longFlags(command: Command): Option[] {
  return command.options.filter((option) => option.long !== undefined && !option.hidden);
}

function bashScript(program: Command): string {
  const name = program.name();
  const fn = `_${name.replaceAll(/\W/g, "_")}`;
  const commands = program.commands.map((command) => command.name());
  const flags = program.commands.map((command) => {
    const words = longFlags(command).map((option) => option.long).join(" ");
    const subs = command.commands.map((sub) => sub.name()).join(" ");
    return `    ${command.name()}) words="${`${subs} ${words}`.trim()} --help" ;;`;
  });
  const serve = program.commands.find((command) => command.name() === "serve");
  const seen = new Map<string, readonly string[]>();
  for (const option of serve === undefined ? [] : longFlags(serve)) seen.set(option.long ?? "", valuesOf(option));
  const values = [...seen].filter(([, words]) => words.length > 0)
    .map(([flag, words]) => `    ${flag}) COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$cur")); return ;;`);
  return `${fn}() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" words
  COMPREPLY=()
  case "$prev" in
${values.join("\n")}
    --file) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${flags.join("\n")}
    *) words="${[...commands, ...seen.keys()].join(" ")} --help --version" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F ${fn} ${name}
`;
}

function fishScript(program: Command): string {
  const name = program.name();
  const commands = program.commands.map((command) => command.name());
  const lines = [`complete -c ${name} -f`];
  for (const command of program.commands) {
    lines.push(
      `complete -c ${name} -n "not __fish_seen_subcommand_from ${commands.join(" ")}" -a ${command.name()} ` +
        `-d ${fishQuote(command.summary() || command.description())}`,
    );
    const condition = command.name() === "serve"
      ? `not __fish_seen_subcommand_from ${commands.filter((other) => other !== "serve").join(" ")}`
      : `__fish_seen_subcommand_from ${command.name()}`;
    for (const option of longFlags(command)) {
      const words = valuesOf(option);
      const takes = option.required ? ` -r${words.length > 0 ? ` -a ${fishQuote(words.join(" "))}` : ""}` : "";
      lines.push(
        `complete -c ${name} -n "${condition}" -l ${option.long?.slice(2)}${takes} -d ${fishQuote(option.description)}`,
      );
    }
    if (command.commands.length > 0) {
      const subs = command.commands.map((sub) => sub.name()).join(" ");
      lines.push(`complete -c ${name} -n "__fish_seen_subcommand_from ${command.name()}" -a ${fishQuote(subs)}`);
    }
  }
  return lines.join("\n") + "\n";
}

function fishQuote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
