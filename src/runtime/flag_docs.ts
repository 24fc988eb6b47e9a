/**
 * Documents made from the table of flags: README's tables and a sample environment file.
 *
 * @module
 */
import { URL_VARIABLES } from "./database_urls.ts";
import { envName, FLAG_ENTRIES, type FlagSpec, SECTIONS } from "./flags.ts";
import { describeDefault } from "./settings.ts";

/** Every flag as a Markdown table. */
export function flagTable(): string {
  const rows = FLAG_ENTRIES.map(([, spec]) =>
    `| \`--${spec.flag}\` | \`${envName(spec)}\` | ${code(describeDefault(spec))} | ${rangeOf(spec)} | ${
      cell(spec.help)
    } |`
  );
  return ["| flag | variable | default | accepts | what it does |", "|---|---|---|---|---|", ...rows].join("\n");
}

/** Every variable that holds a database URL, as a Markdown table. */
export function urlTable(): string {
  const rows = URL_VARIABLES.map(({ env, help }) => `| \`${env}\` or \`${env}_FILE\` | ${cell(help)} |`);
  return ["| variable | what it is |", "|---|---|", ...rows].join("\n");
}

/** A sample environment file: every flag's variable with its default, commented out. */
export function sampleEnv(): string {
  const lines = ["# Settings of a Laneway worker. A flag on the command line goes before the variable."];
  lines.push("", "# Database URLs (never flags). NAME_FILE names a file instead; its mode must be 0600.");
  for (const { env, help } of URL_VARIABLES.slice(0, 4)) lines.push(`# ${help}`, `#${env}=`);
  for (const section of SECTIONS) {
    lines.push("", `# ${section}`);
    for (const [, spec] of FLAG_ENTRIES) {
      if (spec.section === section) lines.push(`# ${spec.help}`, `#${envName(spec)}=${describeDefault(spec)}`);
    }
  }
  return lines.join("\n") + "\n";
}

function rangeOf(spec: FlagSpec): string {
  if ("min" in spec) return `${spec.min} to ${spec.max}`;
  if (spec.type === "enum") return spec.values.map(code).join(", ");
  return cell(spec.form);
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
