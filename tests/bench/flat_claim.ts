/**
 * What a claim costs: the real storage's statements, each in a transaction that is rolled back, timed and explained.
 *
 * @module
 */
import { PostgresClient } from "../../src/db/client.ts";
import type { Database, Param, Row } from "../../src/db/database.ts";
import { PostgresWorkStorage } from "../../src/work/storage/postgres.ts";
import { quantile } from "./statistics.ts";

/** What claims of one size cost. */
export interface ClaimCost {
  /** How many rows each came back with. */
  readonly rows: number;
  /** Medians. */
  readonly ms: number;
  readonly buffers: number;
  /** The plan's nodes, each once, in order. */
  readonly nodes: readonly string[];
}

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly Plan[];
}

// A statement is planned for its parameters five times before the server may settle for one plan for all.
const WARM = 7;

/** Measures claims of `limit` rows: `reps` of each kind, after a few to warm up. Nothing stays claimed. */
export async function measureClaim(
  url: string,
  options: { readonly limit: number; readonly kinds: readonly string[]; readonly reps: number },
): Promise<ClaimCost> {
  const client = await PostgresClient.open(url, { applicationName: "bench-claim", indexPlans: true });
  try {
    const timed = new Probe(client);
    let rows = 0;
    const ms: number[] = [];
    for (let rep = -WARM; rep < options.reps; rep++) {
      const taken = await timed.claim(options);
      if (rep < 0) continue;
      rows = taken.rows;
      ms.push(taken.ms);
    }
    const plans: Plan[] = [];
    for (let rep = 0; rep < Math.min(options.reps, 5); rep++) plans.push(...(await timed.explain(options)).plans);
    return {
      rows,
      ms: quantile(ms, 0.5),
      buffers: quantile(plans.map(buffersOf), 0.5),
      nodes: [...new Set(plans.flatMap(nodesOf))],
    };
  } finally {
    await client.close();
  }
}

/** A database of one connection, on which a claim is measured and then rolled back. */
class Probe {
  readonly #client: PostgresClient;
  readonly #db: Database;
  #explaining = false;
  #ms = 0;
  #plans: Plan[] = [];

  constructor(client: PostgresClient) {
    this.#client = client;
    const system: Pick<Database, "system"> = {
      // A claim asks for its rows as values.
      system: async <R extends Row>(sql: string, params: readonly Param[]) =>
        (await this.#run(sql, params)).map((row) => Object.values(row)) as unknown as R[],
    };
    this.#db = system as Database;
  }

  /** One claim: the time its statements took, the transaction around them not counted. */
  async claim(options: { limit: number; kinds: readonly string[] }): Promise<{ rows: number; ms: number }> {
    this.#explaining = false;
    this.#ms = 0;
    const rows = await this.#claim(options);
    return { rows, ms: this.#ms };
  }

  async explain(options: { limit: number; kinds: readonly string[] }): Promise<{ plans: Plan[] }> {
    this.#explaining = true;
    this.#plans = [];
    await this.#claim(options);
    return { plans: this.#plans };
  }

  async #claim({ limit, kinds }: { limit: number; kinds: readonly string[] }): Promise<number> {
    const request = {
      lane: "default",
      kinds,
      worker: "bench",
      token: crypto.randomUUID(),
      leaseMs: 30_000,
      limit,
    };
    await this.#client.query("begin", []);
    try {
      // A new one each time: one that has claimed would begin where that ended, and what it claimed is handed back.
      return (await new PostgresWorkStorage(this.#db).claim(request)).length;
    } finally {
      await this.#client.query("rollback", []);
    }
  }

  async #run(sql: string, params: readonly Param[]): Promise<Row[]> {
    if (this.#explaining) {
      const [row] = await this.#client.query(`explain (analyze, buffers, timing off, format json) ${sql}`, params);
      const explained = row?.["QUERY PLAN"] as readonly { Plan: Plan }[];
      for (const { Plan } of explained) this.#plans.push(Plan);
      return [];
    }
    const startMs = performance.now();
    const rows = await this.#client.query(sql, params);
    this.#ms += performance.now() - startMs;
    return rows;
  }
}

function buffersOf(plan: Plan): number {
  return (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0);
}

function nodesOf(plan: Plan): string[] {
  const name = plan["Index Name"] ?? plan["Relation Name"];
  const self = name === undefined ? plan["Node Type"] : `${plan["Node Type"]} ${name}`;
  return [self, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
