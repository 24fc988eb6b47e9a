/**
 * A contender on stage: a fresh database of its own and the processes that fill and drain it.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import type { Contender } from "./contenders.ts";
import type { Peers } from "./peers.ts";
import { BenchProcess } from "./process.ts";
import type { BenchDatabase, BenchServer } from "./server.ts";
import { countFinished, type Counts } from "./truth.ts";

const LANEWAY_CHILD = fileURLToPath(new URL("./laneway_child.ts", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));

const PEER_SCRIPTS = { graphile: "graphile.mjs", pgboss: "pg_boss.mjs", bullmq: "bullmq.mjs" } as const;

/** What all measures share. */
export interface Bench {
  readonly server: BenchServer;
  /** Null where no peer is measured. */
  readonly peers: Peers | null;
}

/** A contender with an empty store. */
export class Stage {
  readonly contender: Contender;
  readonly #bench: Bench;
  readonly #database: BenchDatabase | null;
  readonly #folder: string | null;
  readonly #processes: BenchProcess[] = [];
  readonly #settings: Readonly<Record<string, unknown>>;

  private constructor(
    contender: Contender,
    bench: Bench,
    store: { readonly database: BenchDatabase | null; readonly folder: string | null },
    extra: Readonly<Record<string, unknown>>,
  ) {
    this.contender = contender;
    this.#bench = bench;
    this.#database = store.database;
    this.#folder = store.folder;
    const flags = store.folder === null ? {} : { store: `sqlite:${store.folder}/bench.db` };
    const options = { ...contender.options, ...extra };
    this.#settings = {
      ...options,
      ...store.database?.settings,
      ...(contender.family === "laneway" ? { flags: { ...flags, ...options.flags as Record<string, string> } } : {}),
    };
  }

  /** Makes the store. @param extra Options that go before the contender's own. */
  static async open(
    contender: Contender,
    bench: Bench,
    extra: Readonly<Record<string, unknown>> = {},
  ): Promise<Stage> {
    const database = contender.engine === "postgres" ? await bench.server.createDatabase(contender) : null;
    const folder = contender.engine === "sqlite" ? await Deno.makeTempDir({ prefix: "laneway-bench-" }) : null;
    const stage = new Stage(contender, bench, { database, folder }, extra);
    await bench.server.checkpoint();
    return stage;
  }

  /** Starts one of its processes. */
  async spawn(): Promise<BenchProcess> {
    const { family, id } = this.contender;
    const process = family === "laneway"
      ? new BenchProcess(id, Deno.execPath(), ["run", "-A", "--no-check", "--config", CONFIG, LANEWAY_CHILD], "/")
      : this.#spawnPeer(family);
    this.#processes.push(process);
    await process.ask("setUp", { settings: { env: {}, ...this.#settings } });
    return process;
  }

  /** Starts the process that enqueues, and makes the schema with it. */
  async spawnProducer(): Promise<BenchProcess> {
    const process = await this.spawn();
    await process.ask("prepare");
    await process.ask("openProducer");
    return process;
  }

  /**
   * Enqueues `count` items and ends with the table vacuumed and analyzed.
   *
   * @returns A process ready to work: one that did not enqueue, unless the store lives in it.
   */
  async fill(count: number): Promise<BenchProcess> {
    const producer = await this.spawnProducer();
    await producer.ask("enqueue", { count, per: 1_000 });
    await producer.ask("closeProducer");
    await this.#database?.vacuum();
    if (this.contender.engine === "memory") return producer;
    await producer.end();
    return await this.spawn();
  }

  /** Counts in the database; a store that lives in a process is asked there. */
  async count(process: BenchProcess): Promise<Counts> {
    if (this.#database === null) return await process.ask("count") as unknown as Counts;
    return await countFinished(this.#database.query, this.contender.family);
  }

  /** Ends every process and drops the store. */
  async close(): Promise<void> {
    for (const process of this.#processes) await process.end();
    await this.#database?.drop();
    if (this.#folder !== null) await Deno.remove(this.#folder, { recursive: true });
  }

  #spawnPeer(family: keyof typeof PEER_SCRIPTS): BenchProcess {
    const { peers } = this.#bench;
    if (peers === null) throw new Error(`Cannot measure ${this.contender.id} as its packages are not installed`);
    return new BenchProcess(this.contender.id, peers.node, [PEER_SCRIPTS[family]], peers.folder);
  }
}
