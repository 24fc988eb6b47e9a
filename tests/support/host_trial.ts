/**
 * The rig of a host runner's trials: the database of a trial, a real PostgREST over it, hosts, their runners as processes of
 * their own, and scripts as their commands. A script writes the lines of SEEN, and notes its run's mark, so that it can be
 * told what ran, and whether anything of it is left.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { findMarked } from "../../src/host/command/processes.ts";
import type { HostRow, HostWindow } from "../../src/host/types.ts";
import { definition } from "../../workers/host-runner/worker.ts";
import { Trial } from "../trials/trial.ts";
import { WorkerProcess } from "../trials/worker_process.ts";
import { type CliResult, runCli } from "./cli.ts";
import { hostRowSql, rowOf } from "./host_world.ts";
import { type Postgrest, startPostgrest } from "./postgrest.ts";
import { waitFor } from "./wait_for.ts";

const PROGRAM = fileURLToPath(new URL("../../workers/host-runner/main.ts", import.meta.url));

/** A window that always holds. */
export const ALWAYS: HostWindow = {
  name: "always",
  timeZone: "UTC",
  days: [],
  from: "00:00",
  to: "00:00",
  maxInFlight: 50,
  weights: null,
};

/** What every script begins with: `say WHAT` writes a line of SEEN. Asked to end it says so and obeys. */
const PRELUDE = `say() { echo "$LANEWAY_ITEM_ID $LANEWAY_ATTEMPT $$ $1 $(date +%s%3N)" >>"$SEEN"; }
echo "$LANEWAY_RUN" >>"$MARKS"
trap 'say aborted; exit 143' TERM
say start
`;

/** Waits $1 ms, at a further attempt `$2` ms: the trials' SLEEP as a command. */
export const SLEEP_SCRIPT = `ms=$1
if [ "$LANEWAY_ATTEMPT" -gt 1 ] && [ -n "$2" ]; then ms=$2; fi
sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
say end
`;

/** The trials' OK as a command. */
export const OK_SCRIPT = "say end\n";

/** A kind's command: a script, or the kind as a config has it. */
export type TrialCommand = string | Readonly<Record<string, unknown>>;

/** How a host differs from one that may take every kind it has a command for, at any time. */
export interface HostOptions {
  readonly kinds: Readonly<Record<string, TrialCommand>>;
  readonly row?: Partial<HostRow>;
  /** Where its runner reaches PostgREST; default directly. */
  readonly url?: string;
  /** Variables of its commands. */
  readonly commandEnv?: Readonly<Record<string, unknown>>;
}

/** One trial's world. */
export class HostTrial {
  readonly trial: Trial;
  readonly rest: Postgrest;
  readonly #machines: Machine[] = [];

  private constructor(trial: Trial, rest: Postgrest) {
    this.trial = trial;
    this.rest = rest;
  }

  /** Runs `test` in a world of its own; whatever happens, nothing of it is left afterwards. */
  static async with(test: (world: HostTrial) => Promise<void>): Promise<void> {
    await Trial.with(async (trial) => {
      const rest = await startPostgrest(trial.db);
      const world = new HostTrial(trial, rest);
      try {
        await test(world);
        await world.killAll();
        // The kernel and the guards end what a killed runner had begun, in a moment of their own.
        await waitFor("every command's end", async () => (await world.leftovers()).length === 0, { timeoutMs: 3_000 });
      } finally {
        await world.killAll();
        await rest.stop();
        await Promise.all(
          world.#machines.map(({ folder }) => Deno.remove(folder, { recursive: true }).catch(() => {})),
        );
      }
    });
  }

  /** A machine with a row, a key and a config. */
  async host(name: string, options: HostOptions): Promise<Machine> {
    const row = { kinds: Object.keys(options.kinds), windows: [ALWAYS], ...options.row };
    await this.trial.db.adminSql(...hostRowSql(rowOf(name, await this.trial.orgId(), row)));
    const machine = await Machine.make(this, name, options);
    this.#machines.push(machine);
    return machine;
  }

  /** A worker with a database that takes nothing, and sweeps. */
  async sweeper(everyMs = 300): Promise<WorkerProcess> {
    return await this.trial.worker(["--lane", "nobody-enqueues-here", "--sweep", `${everyMs}ms`]);
  }

  /** A host's row as it is now. */
  async row(name: string): Promise<Record<string, unknown>> {
    const [row] = await this.trial.db.adminSql(
      "select *, last_heartbeat_at::text as beat from queue.hosts where name = $1",
      [name],
    );
    assert.ok(row, `there is no host ${name}`);
    return row;
  }

  /** Changes a host's row. */
  async setRow(name: string, set: string): Promise<void> {
    await this.trial.db.adminSql(`update queue.hosts set ${set} where name = $1`, [name]);
  }

  /** Kills every runner. */
  async killAll(): Promise<void> {
    await Promise.all(this.#machines.map((machine) => machine.killAll()));
  }

  /** Processes of every command that ever ran here. */
  async leftovers(): Promise<number[]> {
    const marks = (await Deno.readTextFile(`${this.trial.folder}/marks`).catch(() => "")).split("\n");
    const runners = new Set(marks.filter((mark) => mark !== "").map((mark) => `${mark.split("/")[0]}/`));
    return (await Promise.all([...runners].map(findMarked))).flat();
  }
}

/** One host's machine: a folder with its config, its key, its work folder and its logs. */
export class Machine {
  readonly name: string;
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #runners: WorkerProcess[] = [];

  private constructor(name: string, made: { readonly folder: string; readonly url: string }) {
    this.name = name;
    this.folder = made.folder;
    this.env = {
      LANEWAY_REST_URL: made.url,
      LANEWAY_REST_KEY_FILE: `${made.folder}/key`,
      LANEWAY_HOST_CONFIG: `${made.folder}/commands.json`,
    };
  }

  /** Writes its files. */
  static async make(world: HostTrial, name: string, { kinds, url, commandEnv }: HostOptions): Promise<Machine> {
    const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-host-" }));
    const machine = new Machine(name, { folder, url: url ?? world.rest.url });
    await machine.writeKey(await world.rest.key(name));
    const commands: Record<string, unknown> = {};
    for (const [kind, command] of Object.entries(kinds)) {
      if (typeof command === "string") await Deno.writeTextFile(`${folder}/${kind}.sh`, PRELUDE + command);
      commands[kind] = typeof command === "string" ? scripted(`${folder}/${kind}.sh`) : command;
    }
    const config = {
      work: { base: `${folder}/work` },
      logs: { folder: `${folder}/logs` },
      env: {
        SEEN: `${world.trial.folder}/seen`,
        MARKS: `${world.trial.folder}/marks`,
        GATE: `${folder}/gate`,
        ...commandEnv,
      },
      kinds: commands,
    };
    await Deno.writeTextFile(`${folder}/commands.json`, JSON.stringify(config), { mode: 0o600 });
    return machine;
  }

  /** Puts a key in place, as a refresh does. */
  async writeKey(key: string): Promise<void> {
    await Deno.writeTextFile(`${this.folder}/key.new`, key, { mode: 0o600 });
    await Deno.rename(`${this.folder}/key.new`, `${this.folder}/key`);
  }

  /** Lets commands that wait for it go on: `while [ ! -e "$GATE" ]; do sleep 0.05; done`. */
  async openGate(): Promise<void> {
    await Deno.writeTextFile(`${this.folder}/gate`, "");
  }

  /** Starts a runner, and waits until its loop runs. */
  async runner(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const runner = await WorkerProcess.start(args, { ...this.env, ...env }, PROGRAM);
    this.#runners.push(runner);
    return runner;
  }

  /** Spawns a runner without waiting for anything. */
  async spawn(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const runner = await WorkerProcess.spawn(args, { ...this.env, ...env }, PROGRAM);
    this.#runners.push(runner);
    return runner;
  }

  /** Runs `check`. */
  check(): Promise<CliResult> {
    return runCli(["check"], { env: { ...this.env }, definition });
  }

  /** What is left in its work folder. */
  async workFolders(): Promise<string[]> {
    const entries = await Array.fromAsync(Deno.readDir(`${this.folder}/work`)).catch(() => []);
    return entries.map(({ name }) => name);
  }

  /** Kills its runners. */
  async killAll(): Promise<void> {
    await Promise.all(this.#runners.map((runner) => runner.kill()));
  }
}

function scripted(path: string): Record<string, unknown> {
  const optional = (field: string) => ({ if: field, args: [`{${field}}`] });
  return { argv: ["sh", path, optional("payload.ms"), optional("payload.againMs")], loginTest: { argv: ["true"] } };
}
