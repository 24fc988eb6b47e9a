/**
 * What makes a program a worker: its name, its kinds, and how its handlers are built over open parts.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import type { RequestContext } from "../core/context.ts";
import { SettingsError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { MigrationChain } from "../db/chain.ts";
import type { Cache } from "../infra/cache.ts";
import type { Topics } from "../infra/topics.ts";
import type { Managers } from "../managers.ts";
import type { Storages, Store } from "../storages.ts";
import type { WorkHandler, WorkKind } from "../work/types.ts";
import type { FlagKey, FlagSection } from "./flags.ts";
import type { Settings } from "./settings.ts";
import type { SweepStep, WorkerRuntime } from "./types.ts";

/** Open parts that a container builds its handlers over. */
export interface Parts {
  /** What the process was told. */
  readonly settings: Settings;
  /** The worker's own environment variables (`WorkerDefinition.env`), as far as they are set. */
  readonly env: Readonly<Record<string, string>>;
  /** The open store, for storages of the container's own. */
  readonly store: Store;
  /** The house's storages. */
  readonly storages: Storages;
  /** The house's managers. */
  readonly managers: Managers;
  /** Where hints are published and heard. */
  readonly topics: Topics;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** Counts and gauges. */
  readonly metrics: Metrics;
}

/**
 * Parts of a worker that takes its items from elsewhere: whoever asks them for a store is told that there is none.
 *
 * @throws {SettingsError} Nothing here; `store` and `storages`, when they are read.
 */
export function partsWithoutStore(parts: Omit<Parts, "store" | "storages">): Parts {
  const { settings, env, managers, topics, clock, logger, metrics } = parts;
  return {
    ...{ settings, env, managers, topics, clock, logger, metrics },
    get store(): Store {
      throw noStore("store");
    },
    get storages(): Storages {
      throw noStore("storages");
    },
  };
}

function noStore(what: string): SettingsError {
  return new SettingsError(`Cannot use parts.${what}: this worker takes its items from elsewhere; use its managers`);
}

/** What a container builds. */
export interface WorkerParts {
  /** One for each kind; `--kind` picks among them. */
  readonly handlers: readonly WorkHandler[];
  /** Steps of its own, each run before the built-in step it names or behind all of them. */
  readonly sweepSteps?: readonly SweepStep[];
  /** Counts parked records, for the gauge. */
  readonly countParked?: (rctx: RequestContext) => Promise<number>;
  /** Releases what `build` opened; called once, after the drain. */
  close?(): void | Promise<void>;
}

/** Open parts, and how to close them. */
export interface OpenParts {
  /** What a container builds over. */
  readonly parts: Parts;
  /** Where liveness is published. */
  readonly cache: Cache;
  /** For people: which store it is. */
  readonly name: string;
  /** Whether a worker over it keeps house: `WorkerRuntimeOptions.upkeep`. Default true. */
  readonly upkeep?: boolean;
  /** Rejects when the storage does not answer. */
  ping(): Promise<void>;
  /** Closes the store and its topics. Bounded. */
  close(): Promise<void>;
}

/** A worker whose loop runs, as `onRunning` sees it. */
export interface RunningWorker {
  /** What its handlers were built over. */
  readonly parts: Parts;
  /** The loop and what runs beside it. */
  readonly runtime: WorkerRuntime;
  /** Where probes and metrics are served, for people; null when they are not. */
  readonly httpUrl: string | null;
}

/** A worker-specific subcommand. */
export interface WorkerCommand {
  /** Kebab case; must not be the name of a built-in command. */
  readonly name: string;
  /** One line for `--help`. */
  readonly summary: string;
  /** Options of its own, beside the flags every command has. */
  readonly options?: readonly WorkerCommandOption[];
  /** Lines shown at the end of the command's help. */
  readonly examples?: readonly string[];
  /**
   * Runs the command.
   *
   * @returns The exit code. A `UsageError` thrown ends with 2, anything else with 1, each as one line.
   */
  run(call: WorkerCommandCall): Promise<number>;
}

/** One option of a worker-specific command; its value is handed over as text. */
export interface WorkerCommandOption {
  /** As commander takes it, `--file <path>` or `--once`. */
  readonly flags: string;
  /** One line for `--help`. */
  readonly help: string;
  /** Its value when it is not given. */
  readonly default?: string;
}

/** What a worker-specific command may use. Nothing is open until it asks. */
export interface WorkerCommandCall {
  /** The worker this command belongs to. */
  readonly definition: WorkerDefinition;
  /** What flags and environment say. */
  readonly settings: Settings;
  /** The values of the command's own options, by their name in camel case. */
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  /** The worker's own environment variables, as far as they are set. */
  readonly env: Readonly<Record<string, string>>;
  /** Aborts at SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** Prints a line on standard output. */
  print(line: string): void;
  /**
   * Opens the store the settings name, without waiting for it; the caller closes it.
   *
   * @throws As `openStore`: no store named, out of reach, not migrated.
   */
  open(overrides?: Partial<Settings>): Promise<OpenParts>;
  /** Serves as the worker does, until `until` aborts or a stop signal comes. Resolves to the exit code. */
  serve(options: CommandServeOptions): Promise<number>;
}

/** How a command serves. */
export interface CommandServeOptions {
  /** Ends the serving, with a drain. */
  readonly until: AbortSignal;
  /** Called once the loop runs. */
  readonly onRunning?: (running: RunningWorker) => void;
  /** Settings that go before those of flags and environment. */
  readonly settings?: Partial<Settings>;
  /** What is served instead of the worker's own definition, for example with another `build`. */
  readonly definition?: WorkerDefinition;
  /** Variables that go before the process's own; an empty one is unset. */
  readonly env?: Readonly<Record<string, string>>;
}

/** What a worker that opens its items' source itself is given. */
export interface OpenOptions {
  /** What the process was told. */
  readonly settings: Settings;
  /** The worker's own environment variables (`WorkerDefinition.env`), as far as they are set. */
  readonly env: Readonly<Record<string, string>>;
  /** Time. */
  readonly clock: Clock;
  /** Logs. */
  readonly logger: Logger;
  /** Counts and gauges. */
  readonly metrics: Metrics;
  /** Aborts when the process is told to stop while it opens. */
  readonly signal?: AbortSignal;
}

/** One finding of `check`. `ok` and `warn` leave the exit code at 0. */
export interface Check {
  /** What was looked at, one or two words. */
  readonly name: string;
  /** How it stands. */
  readonly state: "ok" | "warn" | "fail";
  /** What was found, and for a trouble what mends it. */
  readonly said: string;
}

/** A worker program. */
export interface WorkerDefinition {
  /** Kebab case, the binary's name: `shipment-notifier`. */
  readonly name: string;
  /** The release, for example `0.1.0`. */
  readonly release: string;
  /** The commit it was built from, when it is known. */
  readonly commit?: string;
  /** Every kind that is enqueued or handled here, whether or not `--kind` takes it. */
  readonly kinds: readonly WorkKind[];
  /** Migration chains of its own, beside the built-in ones. */
  readonly chains?: readonly MigrationChain[];
  /** Environment variables of its own that the compiled binary may read. */
  readonly env?: readonly string[];
  /**
   * Checks the worker's own variables before anything is opened, so that a wrong one is told at once.
   *
   * @throws {UsageError} Naming the variable and the fix.
   */
  checkEnv?(env: Readonly<Record<string, string>>): void;
  /**
   * Kinds that are known only once a file is read that the worker's own variables name, beside `kinds`.
   *
   * @throws {UsageError} The file does not serve. @throws {SettingsError} It cannot be read.
   */
  configuredKinds?(env: Readonly<Record<string, string>>): readonly WorkKind[] | Promise<readonly WorkKind[]>;
  /** The flags it has, by their section. Default all. */
  readonly sections?: readonly FlagSection[];
  /** Defaults of its own for flags, as people write them; they go before those of the table. */
  readonly flagDefaults?: Readonly<Partial<Record<FlagKey, string>>>;
  /**
   * Opens what it takes its items from, in place of a store of ours. Such a worker is told no store and no database URL,
   * and has neither `enqueue` nor `migrate`.
   *
   * @returns Null when `signal` ended a wait.
   */
  open?(options: OpenOptions): Promise<OpenParts | null>;
  /** What `check` looks at in place of a store of ours; changes nothing that matters, and tells trouble as findings. */
  checks?(options: OpenOptions): Promise<readonly Check[]>;
  /** Whether its handlers start other programs; the compiled binary then may. Default false. */
  readonly runsPrograms?: boolean;
  /** Builds the handlers; called once, after the store is open. */
  build(parts: Parts): WorkerParts | Promise<WorkerParts>;
  /** Subcommands of its own. */
  readonly commands?: readonly WorkerCommand[];
}

/** Every kind of a worker: those it is made with, and those its configuration names. @throws As `configuredKinds`. */
export async function kindsOfWorker(
  definition: Pick<WorkerDefinition, "kinds" | "configuredKinds">,
  env: Readonly<Record<string, string>>,
): Promise<readonly WorkKind[]> {
  return [...definition.kinds, ...await definition.configuredKinds?.(env) ?? []];
}

/** Of the environment, what the worker declared as its own. */
export function ownEnv(
  definition: Pick<WorkerDefinition, "env">,
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    (definition.env ?? []).flatMap((name) => env[name] === undefined ? [] : [[name, env[name]]]),
  );
}

/** `<name>@<release>`, as contexts and spans carry it. */
export function versionOf(definition: Pick<WorkerDefinition, "name" | "release">): string {
  return `${definition.name}@${definition.release}`;
}
