/**
 * `deno task new-worker <worker-name> <WORK_KIND> [--lane NAME] [--container]`: makes a worker, here or in a project that
 * imports Laneway (`deno run -A <laneway>/tools/new_worker.ts …`, in that project's folder).
 *
 * All of it is written or nothing. Run again it says what stands, and changes nothing. Exit codes: 0 made or standing, 1 it
 * could not be, 2 a wrong argument.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { applyChanges } from "./scaffold/apply.ts";
import { BadName, checkKind, checkLane, checkRecord, checkWorker, type NewWorker, TEMPLATE } from "./scaffold/names.ts";
import { type Plan, planWorker } from "./scaffold/plan.ts";
import { type Project, readProject } from "./project.ts";

const HELP = `Makes a worker: its folder, its kind of work, its tests, and its entries in what is deployed.

  deno task new-worker <worker-name> <WORK_KIND> [options]

  <worker-name>   lower case with dashes, such as invoice-mailer
  <WORK_KIND>     upper case with underscores, a verb first, such as MAIL_INVOICE. When a worker serves it already, the new
                  one is another process for the same work.

  --lane NAME     the lane it serves. Default: default.
  --record NAME   what an item is about, one of it in snake case, such as invoice. Default: the kind without its verb.
  --container     a service in deploy/compose/docker-compose.yml too.
  --dry-run       shows what would be made, and makes nothing.
  --yes           asks nothing.
  --help          this text.

On a terminal it asks for what is missing, and before it writes.

  deno task new-worker invoice-mailer MAIL_INVOICE --lane mail --container`;

interface Arguments {
  readonly worker: string;
  readonly kind: string;
  /** Null where none was given: a worker that stands has one. */
  readonly lane: string | null;
  readonly record: string | undefined;
  readonly container: boolean;
  readonly dryRun: boolean;
  readonly asks: boolean;
}

try {
  Deno.exitCode = await main();
} catch (error) {
  console.error(`new-worker: ${error instanceof Error ? error.message : error}`);
  Deno.exitCode = error instanceof BadName ? 2 : 1;
}

async function main(): Promise<number> {
  const args = readArgs(Deno.args);
  if (args === null) {
    console.log(HELP);
    return 0;
  }
  const project = await readProject(Deno.cwd());
  if (args.container && project.laneway !== null) {
    throw new BadName("Cannot use --container here: the compose file and the image are Laneway's own repository's");
  }
  const to = whole(args, project);
  const plan = await planWorker(project, to, args);
  show(plan, to);
  if (plan.changes.length === 0 || args.dryRun) return 0;
  if (args.asks && !/^y?$/i.test(prompt("Go ahead? [Y/n]")?.trim() ?? "n")) {
    console.log("Nothing was written.");
    return 1;
  }
  applyChanges(project.root, plan.changes);
  console.log(next(to, plan));
  return 0;
}

function readArgs(args: readonly string[]): Arguments | null {
  const { values, positionals } = parsed(args);
  if (values.help) return null;
  const [worker, kind, ...more] = positionals;
  if (more.length > 0) throw new BadName(`Cannot use ${more.join(" ")}: give one worker name and one work kind`);
  const asks = Deno.stdin.isTerminal() && !values.yes;
  const name = ask(worker, {
    what: "Worker name, such as invoice-mailer:",
    missing: "<worker-name>",
    check: checkWorker,
    asks,
  });
  const checkedKind = ask(kind, {
    what: "Work kind, such as MAIL_INVOICE:",
    missing: "<WORK_KIND>",
    check: checkKind,
    asks,
  });
  return {
    worker: name,
    kind: checkedKind,
    lane: values.lane === undefined ? null : checkLane(values.lane),
    record: values.record,
    container: values.container ?? false,
    dryRun: values["dry-run"] ?? false,
    asks,
  };
}

/** What is asked for, with what the project says of it: the lane of a worker that stands; of a kind that stands, no record. */
function whole({ worker, kind, lane, record }: Arguments, { workers }: Project): NewWorker {
  const standing = workers.find(({ name }) => name === worker);
  const isKnown = workers.some(({ name, kinds }) => name !== worker && kinds.includes(kind));
  return {
    worker,
    kind,
    lane: lane ?? standing?.lane ?? "default",
    record: isKnown ? TEMPLATE.record : checkRecord(kind, record),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        lane: { type: "string" },
        record: { type: "string" },
        container: { type: "boolean" },
        "dry-run": { type: "boolean" },
        yes: { type: "boolean", short: "y" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new BadName(`${error instanceof Error ? error.message : error}. See --help.`);
  }
}

/** The argument, checked; asked for on a terminal until it fits. */
function ask(
  given: string | undefined,
  { what, missing, check, asks }: {
    readonly what: string;
    readonly missing: string;
    readonly check: (text: string) => string;
    readonly asks: boolean;
  },
): string {
  if (given !== undefined) return check(given);
  if (!asks) throw new BadName(`Cannot make a worker without ${missing}: give it as an argument. See --help.`);
  for (;;) {
    const answer = prompt(what);
    if (answer === null) {
      throw new BadName(`Cannot make a worker without ${missing}: give it as an argument. See --help.`);
    }
    try {
      return check(answer.trim());
    } catch (error) {
      if (!(error instanceof BadName)) throw error;
      console.error(error.message);
    }
  }
}

function show({ changes, stands, kindOf }: Plan, { worker, kind, lane }: NewWorker): void {
  const by = kindOf === null ? "a kind of its own" : `the kind of the ${kindOf}`;
  console.log(`${worker}: serves ${kind} on lane ${lane}, ${by}.`);
  for (const path of stands) console.log(`  stands   ${path}`);
  for (const { path, before, what } of changes) {
    console.log(before === null ? `  creates  ${path}` : `  changes  ${path}: ${what}`);
  }
  if (changes.length === 0) console.log("All of it stands; nothing was changed.");
}

function next({ worker }: NewWorker, { kindOf }: Plan): string {
  return [
    "",
    `Made. Next:`,
    ...(kindOf === null ? [`  write workers/${worker}/effect.ts: what is done to the world`] : []),
    `  deno test -A workers/${worker}`,
    `  deno task compile:${worker} && ./dist/${worker} --help`,
    `  workers/${worker}/README.md says how to run it.`,
  ].join("\n");
}
