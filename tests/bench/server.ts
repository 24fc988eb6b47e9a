/**
 * The Postgres server every contender shares: the bench's own, with full durability, or it does not measure.
 *
 * @module
 */
import type { MigrationChain } from "../../src/db/chain.ts";
import { PostgresClient } from "../../src/db/client.ts";
import type { Databases } from "../../src/db/database.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createTestDatabase, loginUrl, startPrivateServer } from "../support/postgres.ts";
import type { PostgresServer } from "../support/postgres_server.ts";
import type { Contender } from "./contenders.ts";
import { cpuTicks } from "./process.ts";
import type { Query } from "./truth.ts";

const DURABILITY = ["fsync", "full_page_writes", "synchronous_commit"];

// Durability is never traded for a figure; the sizes are those of a small server that is set up with some care.
const SETTINGS = {
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  shared_buffers: "1GB",
  max_wal_size: "8GB",
  wal_buffers: "16MB",
  checkpoint_timeout: "15min",
  random_page_cost: "1.1",
  autovacuum_naptime: "10s",
};

/** What the server did so far. */
export interface ServerUse {
  /** Processor time of all its processes, milliseconds. */
  readonly cpuMs: number;
  /** Bytes of write-ahead log. */
  readonly walBytes: number;
}

/** One contender's own database. */
export interface BenchDatabase {
  /** What its processes are told: `url` for a peer, `env` for Laneway. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The superuser's URL. */
  readonly url: string;
  /** As the superuser, past every policy, over one connection. */
  readonly query: Query;
  /** Vacuums and analyzes all of it. */
  vacuum(): Promise<void>;
  drop(): Promise<void>;
}

/** The running server. */
export class BenchServer {
  readonly #server: PostgresServer;
  readonly #admin: PostgresClient;
  readonly #postmaster: number;

  private constructor(server: PostgresServer, admin: PostgresClient, postmaster: number) {
    this.#server = server;
    this.#admin = admin;
    this.#postmaster = postmaster;
  }

  /** Starts the server. */
  static async start(): Promise<BenchServer> {
    const server = await startPrivateServer({ fsync: true, settings: SETTINGS });
    const pidFile = await Deno.readTextFile(`${server.directory}/data/postmaster.pid`);
    const admin = await PostgresClient.open(server.url(), { applicationName: "laneway-bench" });
    return new BenchServer(server, admin, Number(pidFile.split("\n")[0]));
  }

  /** The superuser's URL, for calibration. */
  get url(): string {
    return this.#server.url();
  }

  /** The server's version and settings, read from it. @throws {Error} It is not fully durable. */
  async settings(): Promise<Record<string, string>> {
    const names = ["server_version", ...Object.keys(SETTINGS)];
    const found: Record<string, string> = {};
    for (const name of names) {
      const [row] = await this.#admin.query("select current_setting($1) as value", [name]);
      found[name] = String(row?.value);
    }
    refuseWithoutDurability(found);
    return found;
  }

  /** What it used so far. */
  async use(): Promise<ServerUse> {
    const [row] = await this.#admin.query("select (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as wal");
    return { cpuMs: this.#cpuMs(), walBytes: Number(row?.wal) };
  }

  /** Before a contender is filled: nobody pays for full-page images or a checkpoint of the one before. */
  async checkpoint(): Promise<void> {
    await this.#admin.script("checkpoint");
  }

  /** A fresh database; Laneway's is migrated, a peer's is empty. */
  async createDatabase(contender: Pick<Contender, "family">): Promise<BenchDatabase> {
    return contender.family === "laneway" ? await this.createOurs() : await this.#createPeers();
  }

  /** A database of Laneway's with these chains applied. */
  async createOurs(
    chains: readonly MigrationChain[] = CHAINS,
  ): Promise<BenchDatabase & { readonly databases: Databases }> {
    const database = await createTestDatabase(chains, { adminUrl: this.url });
    const env = {
      LANEWAY_DATABASE_URL: loginUrl(this.url, "runtime", database.name),
      LANEWAY_SYSTEM_DATABASE_URL: loginUrl(this.url, "system", database.name),
    };
    return {
      ...await open(database.url("admin"), { env }, () => database.drop()),
      databases: database.databases,
    };
  }

  async close(): Promise<void> {
    await this.#admin.close();
    await this.#server.remove();
  }

  #cpuMs(): number {
    let ticks = cpuTicks(this.#postmaster, { endedChildren: true });
    for (const entry of Deno.readDirSync("/proc")) {
      if (/^\d+$/.test(entry.name) && parentOf(entry.name) === this.#postmaster) ticks += cpuTicks(Number(entry.name));
    }
    return ticks * 10;
  }

  async #createPeers(): Promise<BenchDatabase> {
    const name = `bench_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
    await this.#admin.script(`create database ${name}`);
    const url = this.#server.url(name);
    return await open(url, { url }, () => this.#admin.script(`drop database ${name} with (force)`));
  }
}

/** @throws {Error} A setting that keeps what was committed is off. */
export function refuseWithoutDurability(settings: Readonly<Record<string, string>>): void {
  for (const name of DURABILITY) {
    if (settings[name] !== "on") throw new Error(`Cannot measure with ${name} ${settings[name]}: it must be on`);
  }
}

async function open(
  url: string,
  settings: BenchDatabase["settings"],
  drop: () => Promise<void>,
): Promise<BenchDatabase> {
  const client = await PostgresClient.open(url, { applicationName: "laneway-bench" });
  return {
    url,
    settings,
    query: (sql) => client.query(sql),
    vacuum: () => client.script("vacuum analyze"),
    async drop() {
      await client.close();
      await drop();
    },
  };
}

function parentOf(pid: string): number {
  try {
    const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
    return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0;
  }
}
