/**
 * The rounds: what is measured in which order.
 *
 * @module
 */
import type { BenchArguments } from "./arguments.ts";
import { calibrate, findPgbench } from "./calibration.ts";
import { type Contender, CONTENDERS } from "./contenders.ts";
import { drainOnce, LeftOutError } from "./drain.ts";
import { enqueueOnce } from "./enqueue.ts";
import { watchIdle } from "./idle.ts";
import { latencyOnce } from "./latency.ts";
import type { Sample } from "./results.ts";
import type { Bench } from "./stage.ts";
import { staleBinary, startOnce } from "./start.ts";
import { rotated } from "./statistics.ts";

type Figures = Readonly<Record<string, number | null>>;

/** What a run found. */
export interface Measured {
  readonly samples: readonly Sample[];
  readonly leftOut: readonly string[];
}

/** One measure of a contender: its name in the results, and its figures. */
type Task = {
  readonly contender: Contender;
  run(): Promise<readonly (readonly [measure: string, figures: Figures])[]>;
};

/** Collects samples round by round. */
class Measurement {
  readonly samples: Sample[] = [];
  readonly leftOut: string[] = [];
  readonly #dropped = new Set<string>();
  readonly #bench: Bench;
  readonly #args: BenchArguments;
  readonly #log: (line: string) => void;

  constructor(bench: Bench, args: BenchArguments, log: (line: string) => void) {
    this.#bench = bench;
    this.#args = args;
    this.#log = log;
  }

  async round(round: number, pgbench: string | null): Promise<void> {
    const { parts, scale, rounds } = this.#args;
    if (pgbench !== null && parts.some((part) => part !== "start" && part !== "fleet")) {
      const seconds = scale < 1 ? 1 : 2;
      this.#add(round, "calibration", "pgbench", { ...await calibrate(pgbench, this.#bench.server, seconds) });
    }
    for (const tasks of [this.#drains(), this.#sleeps(), this.#enqueues(), this.#latencies()]) {
      for (const task of rotated(tasks, round)) await this.#run(round, task);
    }
    if (parts.includes("start")) this.#add(round, "start", "laneway", { ...await startOnce(this.#bench.server) });
    if (parts.includes("fleet") && round === rounds - 1) {
      const fleet = { workers: 5, orgs: 10_000, seconds: Math.max(Math.round(60 * Math.min(scale, 1)), 10) };
      const { cpu, statements, memory } = await watchIdle(fleet);
      this.#add(round, "fleet", "laneway", {
        ...fleet,
        cpuPercent: cpu,
        statementsPerMinute: statements,
        memoryMiB: memory,
      });
    }
  }

  async #run(round: number, { contender, run }: Task): Promise<void> {
    if (this.#dropped.has(contender.id)) return;
    try {
      for (const [measure, figures] of await run()) this.#add(round, measure, contender.id, figures);
    } catch (error) {
      if (!(error instanceof LeftOutError)) throw error;
      this.#dropped.add(contender.id);
      this.leaveOut(error.message);
    }
  }

  /** Says in the log and in the report what is not measured, or not as it should be. */
  leaveOut(line: string): void {
    this.leftOut.push(line);
    this.#log(line);
  }

  #add(round: number, measure: string, contender: string, figures: Figures): void {
    this.samples.push({ measure, contender, round, figures });
    const shown = Object.entries(figures).filter(([, value]) => value !== null).map(([name, value]) =>
      `${name} ${Number(value).toLocaleString("en", { maximumSignificantDigits: 4 })}`
    );
    this.#log(`round ${round + 1}/${this.#args.rounds} ${measure} ${contender}: ${shown.join(", ")}`);
  }

  #chosen(): Contender[] {
    return CONTENDERS.filter(({ id }) => this.#args.contenders.includes(id));
  }

  #drains(): Task[] {
    if (!this.#args.parts.includes("drain")) return [];
    return this.#chosen().map((contender) => this.#drain(contender, "drain"));
  }

  #sleeps(): Task[] {
    if (!this.#args.parts.includes("sleep")) return [];
    return this.#chosen().filter(({ sleepItems }) => sleepItems > 0).map((contender) =>
      this.#drain(contender, "sleep")
    );
  }

  #drain(contender: Contender, measure: "drain" | "sleep"): Task {
    const full = measure === "drain" ? contender.drainItems : contender.sleepItems;
    const options = {
      items: Math.max(Math.round(full * this.#args.scale), 100),
      handlerMs: measure === "drain" ? 0 : 1,
    };
    return { contender, run: async () => [[measure, { ...await drainOnce(contender, this.#bench, options) }]] };
  }

  #enqueues(): Task[] {
    if (!this.#args.parts.includes("enqueue")) return [];
    return this.#chosen().filter(({ enqueues }) => enqueues === true).map((contender) => ({
      contender,
      run: async () => [["enqueue", await enqueueOnce(contender, this.#bench, this.#args.scale)]],
    }));
  }

  #latencies(): Task[] {
    if (!this.#args.parts.includes("latency")) return [];
    return this.#chosen().filter(({ latency }) => latency !== undefined).map((contender) => ({
      contender,
      run: async () => {
        const { idle, loaded } = await latencyOnce(contender, this.#bench, this.#args.scale);
        return [["idle", { ...idle }], ["loaded", { ...loaded }]];
      },
    }));
  }
}

/**
 * Measures round by round: every contender once in each, the order rotated.
 *
 * @throws {MismatchError} A figure does not agree with the database.
 */
export async function measureRounds(
  bench: Bench,
  args: BenchArguments,
  log: (line: string) => void,
): Promise<Measured> {
  const pgbench = await findPgbench();
  const measurement = new Measurement(bench, args, log);
  if (pgbench === null) measurement.leaveOut("calibration is left out: there is no pgbench on this machine");
  const stale = args.parts.includes("start") || args.parts.includes("fleet") ? await staleBinary() : null;
  if (stale !== null) measurement.leaveOut(stale);
  for (let round = 0; round < args.rounds; round++) await measurement.round(round, pgbench);
  return measurement;
}
