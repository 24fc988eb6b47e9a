/**
 * Breaking one of the two locks on a tenant's rows on purpose, to see whether the other one holds: statements that lost
 * their own conditions, and databases that lost their policies.
 *
 * @module
 */
import { ConflictError } from "../../src/core/errors.ts";
import type { Database, Databases, Param, Row, StatementOptions } from "../../src/db/database.ts";
import { TABLE_SCOPES, type TableScope } from "../../src/scopes.ts";
import { SHIPMENTS_SCOPES } from "../../workers/shipment-notifier/shipments/chain.ts";
import type { TestStore } from "./stores.ts";

const SETTING = String
  .raw`(?:nullif\(current_setting\('laneway\.org_id', true\), ''\)::uuid|current_setting\('laneway\.org_id', true\))`;
const COLUMN = String.raw`(?:\w+\.)?(?:org_id|id)`;

/** The tables whose rows belong to an org, with the column that names it. */
export const ORG_TABLES: readonly (readonly [table: string, column: string])[] = Object.entries<TableScope>({
  ...TABLE_SCOPES,
  ...SHIPMENTS_SCOPES,
}).filter(([, { scope }]) => scope === "org").map(([table, { orgColumn }]) => [table, orgColumn ?? "org_id"]);

/**
 * Takes every condition on the tenant out of a statement: on the setting, and on the org's parameter. Joins stay: they tie
 * rows to each other, not to the tenant. What stands in their place is true and keeps each parameter's type known.
 */
export function withoutTenant(sql: string): string {
  return sql
    .replace(new RegExp(String.raw`(\$\d+)::uuid\s*=\s*${SETTING}`, "g"), "$1::uuid is not null")
    .replace(new RegExp(String.raw`${SETTING}\s*=\s*(\$\d+)::text`, "g"), "$1::text is not null")
    .replace(new RegExp(String.raw`${COLUMN}\s*=\s*${SETTING}`, "g"), "true")
    .replace(/\b(?:\w+\.)?org_id\s*=\s*(\$\d+)::uuid/g, "$1::uuid is not null")
    // The org itself: its id is the org id, and always the first parameter.
    .replace(/\b(?:o\.)?id\s*=\s*(\$1)::uuid/g, "$1::uuid is not null");
}

/** What became of one tenant statement. */
export interface Attempt {
  readonly sql: string;
  readonly rows: readonly Row[];
  readonly error: unknown;
}

/** How statements are tampered with. */
export interface Tampering {
  /** Every unit runs inside this org, whatever org the storage names. */
  readonly inside: string;
  /** What is sent in place of a statement. */
  readonly rewrite: (sql: string) => string;
  /** A statement that is not sent: its caller is told of a conflict, and so reads back. */
  readonly lost?: string;
}

/** Databases whose tenant statements are tampered with, and what became of each. */
export function tampered(real: Databases, tampering: Tampering): { databases: Databases; attempts: Attempt[] } {
  const attempts: Attempt[] = [];
  const wrap = (database: Database): Database => ({
    system: (sql, params, options) => database.system(sql, params, options),
    async tenant<R extends Row = Row>(
      _orgId: string,
      sql: string,
      params: readonly Param[],
      options?: StatementOptions,
    ): Promise<R[]> {
      if (sql === tampering.lost) throw new ConflictError("lost on purpose");
      try {
        const rows = await database.tenant<R>(tampering.inside, tampering.rewrite(sql), params, options);
        attempts.push({ sql, rows, error: null });
        return rows;
      } catch (error) {
        attempts.push({ sql, rows: [], error });
        throw error;
      }
    },
  });
  return {
    databases: { core: wrap(real.core), queue: wrap(real.queue), activity: wrap(real.activity) },
    attempts,
  };
}

/** Opens every tenant policy to all: what is left is what the statements themselves refuse. */
export async function openPolicies(test: TestStore): Promise<void> {
  const policies = await test.sql(
    "select policyname, schemaname || '.' || tablename as on_table from pg_policies where 'laneway_runtime' = any(roles)",
  );
  for (const { policyname, on_table } of policies) {
    await test.sql(`alter policy ${policyname} on ${on_table} using (true) with check (true)`);
  }
}

/** Every row of an org in every table, byte for byte; on Postgres with what shows that a row was written over. */
export async function rowsOf(test: TestStore, orgId: string): Promise<string> {
  if (test.store.engine === "postgres") {
    const all = ORG_TABLES.map(([table, column]) =>
      `select '${table} ' || t.xmin::text || ' ' || to_jsonb(t)::text as row from ${table} t where t.${column} = '${orgId}'`
    );
    return (await test.sql(`${all.join(" union all ")} order by 1`)).map(({ row }) => String(row)).join("\n");
  }
  const found: string[] = [];
  for (const [table, column] of ORG_TABLES) {
    // There completed items stay where they were, and no hosts are served.
    if (table === "queue.work_history" || table === "queue.attempts") continue;
    const rows = await test.sql(`select * from ${test.table(table)} where ${column} = '${orgId}'`);
    found.push(
      ...rows.map((row) => `${table} ${JSON.stringify(row, (_, v) => typeof v === "bigint" ? String(v) : v)}`),
    );
  }
  return found.sort().join("\n");
}

/** All that an error says, to a log or to a person: its fields, its causes and theirs. */
export function saidBy(error: unknown): string {
  if (error === null || error === undefined) return "";
  const driver = ["message", "detail", "hint", "where", "query", "parameters", "internal_query"];
  const fields = driver.map((field) => JSON.stringify((error as Record<string, unknown>)[field]) ?? "");
  return [Deno.inspect(error, { depth: 10 }), ...fields, saidBy((error as { cause?: unknown }).cause)].join("\n");
}
