/**
 * The command line around a worker: `runWorker(definition)` is a worker program's whole `main.ts`.
 *
 * @module
 */
import { Command, CommanderError } from "commander";
import { suggest } from "../core/suggest.ts";
import { URL_VARIABLES } from "../runtime/database_urls.ts";
import type { WorkerCommand, WorkerDefinition } from "../runtime/definition.ts";
import { type FlagSection, SECTIONS } from "../runtime/flags.ts";
import { readSettings, type Settings } from "../runtime/settings.ts";
import { checkCommand, enqueueCommand, migrateCommand, serveCommand, workerCommand } from "./commands.ts";
import { completionScript, type Shell, SHELLS } from "./completions.ts";
import { describeFailure } from "./exit.ts";
import { addFlags, readFlags } from "./flag_options.ts";
import type { CommandContext } from "./command_context.ts";
import type { CliIo } from "./io.ts";
import { systemIo } from "./io.ts";
import { addEnqueueOptions } from "./enqueue_options.ts";
import { UsageError } from "../runtime/usage_error.ts";

/**
 * Runs a worker program: reads the command line, does what it says and exits. Never returns.
 *
 * @param args Default the program's own.
 */
export async function runWorker(definition: WorkerDefinition, args: readonly string[] = Deno.args): Promise<never> {
  Deno.exit(await runProgram(definition, args, systemIo(definition)));
}

/** `runWorker` without the exit: resolves to the exit code. Failures are one line on standard error. */
export async function runProgram(definition: WorkerDefinition, args: readonly string[], io: CliIo): Promise<number> {
  let code: number = 0;
  const program = buildProgram(definition, io, (exit) => code = exit);
  try {
    refuseUrlFlags(args);
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    const failure = describeFailure(error);
    if (failure.line !== "") io.printError(`${definition.name}: ${failure.line}`);
    return failure.code;
  }
}

/** The program's commands as commander sees them; also the source of completions. */
export function buildProgram(definition: WorkerDefinition, io: CliIo, exit: (code: number) => void): Command {
  const program = new Command(definition.name);
  quiet(program, io);
  program.version(
    `${definition.name} ${definition.release} (${definition.commit ?? "unknown commit"})`,
    "-V, --version",
    "Shows release and commit.",
  ).usage("[serve] [flags] | COMMAND [flags]").helpOption("-h, --help", "Shows this help.").helpCommand(false)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .description(`A Laneway worker: runs work items of ${kindList(definition)}.`);
  const add: AddCommand = (name, summary, sections, own = () => {}) => {
    const command = quiet(program.command(name, { isDefault: name === "serve" }), io);
    command.summary(summary).description(summary).helpOption("-h, --help", "Shows this help.");
    // A command's own options come first in its help, and keep their names from the table's flags.
    own(command);
    addFlags(command, {
      sections: sections.filter((section) => definition.sections?.includes(section) ?? true),
      except: command.options.map((option) => option.long?.slice(2) ?? ""),
      ...(definition.flagDefaults === undefined ? {} : { defaults: definition.flagDefaults }),
    });
    return command;
  };
  const settingsOf = (command: Command): Settings =>
    readSettings({
      flags: readFlags(command),
      env: io.env,
      ...(definition.env === undefined ? {} : { ownVariables: definition.env }),
      ...(definition.flagDefaults === undefined ? {} : { defaults: definition.flagDefaults }),
    });
  const context = { definition, io, settingsOf, exit };

  const serve = add("serve", "Runs the worker until it is told to stop. The default command.", SECTIONS);
  serve.argument("[words...]").usage("[options]").action(async (words: string[]) => {
    refuseUnknownCommand(words[0], program);
    exit(await serveCommand(context, settingsOf(serve)));
  });
  // They write into a store of ours.
  if (definition.open === undefined) {
    addEnqueue(context, add);
    addMigrate(context, add);
  }
  const check = add(
    "check",
    definition.open === undefined
      ? "Checks database, schema, logins and pools, and says what to mend."
      : "Checks what the worker depends on, and says what to mend.",
    SECTIONS,
    (command) =>
      command.option("--health", "Asks the running worker's /healthz instead, for a container's health check.")
        .option("--live", "Asks its /livez instead: for who restarts what does not answer."),
  );
  check.action(async () => exit(await checkCommand(context, settingsOf(check), check.opts())));
  for (const command of definition.commands ?? []) addWorkerCommand(command, context, add);
  addCompletions(program, io);
  program.addHelpText("after", () => helpAfter(definition, serve));
  return program;
}

type AddCommand = (
  name: string,
  summary: string,
  sections: readonly FlagSection[],
  own?: (command: Command) => void,
) => Command;

function addEnqueue(context: CommandContext, add: AddCommand): void {
  const enqueue = add(
    "enqueue",
    "Creates items, from flags or from NDJSON.",
    ["Store", "Retention", "Logs"],
    addEnqueueOptions,
  );
  enqueue.action(async () => context.exit(await enqueueCommand(context, context.settingsOf(enqueue), enqueue.opts())));
}

function addMigrate(context: CommandContext, add: AddCommand): void {
  const migrate = add(
    "migrate",
    "Brings the schema up, takes it down, or tells its state.",
    ["Store", "Logs"],
    (command) =>
      command.usage("<up|down|status> [flags]")
        .argument("[direction]", "up applies what is missing; down takes back the last step; status only reads")
        .option("--chain <name>", "Only this chain. down needs it.")
        .option("--steps <number>", "How many steps down takes back.", "1"),
  );
  migrate.action(async (direction: string | undefined) => {
    context.exit(await migrateCommand(context, context.settingsOf(migrate), { ...migrate.opts(), direction }));
  });
}

function addWorkerCommand(command: WorkerCommand, context: CommandContext, add: AddCommand): void {
  const added = add(command.name, command.summary, SECTIONS, (own) => {
    for (const option of command.options ?? []) own.option(option.flags, option.help, option.default);
  });
  if (command.examples !== undefined) {
    added.addHelpText("after", `\nExamples:\n${command.examples.map((line) => `  ${line}`).join("\n")}`);
  }
  added.action(async () => {
    context.exit(await workerCommand(context, command, context.settingsOf(added), added.opts()));
  });
}

function addCompletions(program: Command, io: CliIo): void {
  quiet(program.command("completions"), io).summary("Prints completions for a shell.")
    .description("Prints completions for a shell; load them with: source <(PROGRAM completions bash)")
    .argument("<shell>", SHELLS.join(", ")).action((shell: string) => {
      if (!(SHELLS as readonly string[]).includes(shell)) {
        throw new UsageError(`Cannot write completions for ${JSON.stringify(shell)}: use one of ${SHELLS.join(", ")}`);
      }
      io.print(completionScript(program, shell as Shell).trimEnd());
    });
}

function quiet(command: Command, io: CliIo): Command {
  return command.exitOverride().showSuggestionAfterError(true).configureOutput({
    writeOut: (text) => io.print(text.replace(/\n$/, "")),
    // Errors are thrown and written once, as one line, by `runProgram`.
    writeErr: () => {},
    getOutHelpWidth: () => 110,
    // Refused by `refuseExcess`: commander says how many they are, not which.
  }).allowExcessArguments(true).hook("preAction", (_, acting) => refuseExcess(acting));
}

function refuseExcess(command: Command): void {
  const taken = command.registeredArguments;
  const extra = command.args[taken.length];
  if (extra === undefined || taken.at(-1)?.variadic) return;
  const path = [command.parent?.name(), command.name()].join(" ");
  const dashed = extra.startsWith("-") ? "flags are not read after --" : "it takes no such word";
  throw new UsageError(`Cannot use ${JSON.stringify(extra)} with ${command.name()}: ${dashed}; see ${path} --help`);
}

function refuseUnknownCommand(word: string | undefined, program: Command): void {
  if (word === undefined) return;
  const names = program.commands.map((command) => command.name());
  // Flags went before it, so that what was read is `serve` with one word too many.
  if (names.includes(word)) {
    throw new UsageError(
      `Cannot use ${word} behind flags: the command comes first, as in ${program.name()} ${word} [flags]`,
    );
  }
  const near = word === "help" ? "--help" : word === "version" ? "--version" : suggest(word, names);
  throw new CommanderError(
    2,
    "laneway.unknownCommand",
    `Unknown command ${JSON.stringify(word)}${near === null ? "" : `, did you mean ${near}?`}; ` +
      `commands are ${names.join(", ")}`,
  );
}

// A URL holds a password, and every process of the machine can read a command line.
function refuseUrlFlags(args: readonly string[]): void {
  for (const arg of args) {
    const match = /^--((?:[a-z]+-)*database-url)(?:=|$)/.exec(arg);
    if (match?.[1] === undefined) continue;
    const wanted = `LANEWAY_${match[1].toUpperCase().replaceAll("-", "_")}`;
    const name = URL_VARIABLES.some(({ env }) => env === wanted) ? wanted : "LANEWAY_DATABASE_URL";
    throw new UsageError(
      `Cannot take a database URL from --${match[1]}: others could read it there; set ${name} or ${name}_FILE`,
    );
  }
}

function kindList(definition: WorkerDefinition): string {
  const configured = definition.configuredKinds === undefined ? [] : ["the kinds its configuration names"];
  return [...definition.kinds.map((kind) => kind.name), ...configured].join(", ") || "no kind";
}

function helpAfter(definition: WorkerDefinition, serve: Command): string {
  const flags = serve.helpInformation().split("\n");
  const from = flags.findIndex((line) => line.startsWith(`${SECTIONS[0]}:`));
  const to = flags.findIndex((line, i) => i > from && line.startsWith("Options:"));
  return `
Flags of serve (a flag goes before its variable):

${flags.slice(from, to).join("\n").trimEnd()}

${definition.open === undefined ? urlHelp() : variableHelp(definition)}

Signals: SIGTERM, SIGINT or SIGHUP drains; a second one skips the grace. Exit codes: 0 done, 1 failed, 2 wrong usage.

Examples:
${examples(definition).map((line) => `  ${definition.name} ${line}`).join("\n")}`;
}

function urlHelp(): string {
  const urls = URL_VARIABLES.slice(0, 4).map(({ env, help }) => `  ${env.padEnd(30)} ${help}`);
  return `Database URLs come from the environment, or from a file named by NAME_FILE, never from a flag:\n${
    urls.join("\n")
  }`;
}

function variableHelp({ env = [] }: WorkerDefinition): string {
  const own = env.filter((name) => name.startsWith("LANEWAY_")).map((name) => `  ${name}`);
  return `Variables of its own, explained in its README:\n${own.join("\n")}`;
}

function examples(definition: WorkerDefinition): string[] {
  if (definition.open !== undefined) return ["check", "--capacity 4"];
  return [
    "--store sqlite:./work.db",
    `--lane express --capacity 40${definition.kinds[0] ? ` --kind ${definition.kinds[0].name}` : ""}`,
    "migrate up",
    "check",
    "enqueue --file items.ndjson",
  ];
}
