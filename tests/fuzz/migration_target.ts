/**
 * Chains of migrations that a store's history does not fit: a changed step, a gap, a newer version, a step that fails. Such a
 * store is refused before anything of it is written, by whichever chain and in whichever direction.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { LanewayError } from "../../src/core/errors.ts";
import type { Migration, MigrationChain } from "../../src/db/chain.ts";
import { migrateDown, migrateUp, openMigrationConnection } from "../../src/db/migrator.ts";
import { migrateSqliteDown, migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import type { Session, Target } from "./target.ts";

interface Input {
  readonly engine: "sqlite" | "postgres";
  readonly chains: readonly Chain[];
  readonly direction: "up" | "down";
}

interface Chain {
  /** Steps there are, and how many of them the store has had. */
  readonly steps: number;
  readonly had: number;
  /** What does not fit. */
  readonly wrong: "nothing" | "changed" | "gap" | "newer" | "checksum" | "fails" | "first lost";
  /** In which step. */
  readonly at: number;
}

const chain: fc.Arbitrary<Chain> = fc.record({
  steps: fc.integer({ min: 1, max: 4 }),
  had: fc.nat({ max: 4 }),
  wrong: fc.constantFrom(
    ...["nothing", "nothing", "changed", "gap", "newer", "checksum", "fails", "first lost"] as const,
  ),
  at: fc.nat({ max: 3 }),
});

/** The target. */
export const migrationTarget: Target<Input> = {
  name: "migrations",
  behaviour: "a store whose history does not fit its migrations is refused before anything is written",
  inputs: fc.record({
    engine: fc.constantFrom("sqlite" as const, "sqlite" as const, "sqlite" as const, "postgres" as const),
    chains: fc.array(chain, { minLength: 1, maxLength: 3 }),
    direction: fc.constantFrom("up" as const, "down" as const),
  }),
  open,
};

/** A store of either engine. */
interface Store {
  up(chains: readonly MigrationChain[]): Promise<unknown>;
  down(chains: readonly MigrationChain[]): Promise<unknown>;
  /** SQL past every rule. */
  script(text: string): Promise<unknown>;
  /** The version table of a chain, with a condition on it. */
  history(chain: string): string;
  /** Everything there is, as text. */
  dump(chains: readonly MigrationChain[]): Promise<string>;
  close(): Promise<void> | void;
}

async function open(): Promise<Session<Input>> {
  const postgres = await openPostgres();
  let runs = 0;
  return {
    async run(input) {
      const store = input.engine === "sqlite" ? openSqlite() : postgres;
      try {
        await judge(input, { store, prefix: `f${runs++}` });
      } finally {
        if (store !== postgres) await store.close();
      }
    },
    close: () => postgres.close(),
  };
}

async function judge(
  { chains, direction }: Input,
  { store, prefix }: { readonly store: Store; readonly prefix: string },
): Promise<void> {
  const had = chains.map((one, n) => chainOf(`${prefix}_${n}`, Math.min(one.had, one.steps)));
  await store.up(had);
  for (const [n, one] of chains.entries()) await disturb(one, { store, chain: `${prefix}_${n}` });
  const now = chains.map((one, n) => chainOf(`${prefix}_${n}`, one.steps, one));
  const before = await store.dump(now);
  const misfit = chains.some(isMisfit);
  const fails = chains.some((one) =>
    direction === "up" && one.wrong === "fails" && failsAt(one) > Math.min(one.had, one.steps)
  );
  try {
    await (direction === "up" ? store.up(now) : store.down(now));
    assert.ok(!misfit, "a history that does not fit was taken");
    assert.ok(!fails, "a step that fails was taken");
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    assert.ok(error instanceof LanewayError, `a ${(error as Error)?.name}: ${(error as Error)?.message}`);
    assert.match(error.message, /^Cannot (?:migrate|apply)/);
    assert.ok(misfit || fails, `what fits was refused: ${error.message}`);
    assert.ok(error.message.includes(prefix), `it names no chain: ${error.message}`);
    if (misfit) assert.equal(await store.dump(now), before, "something was written before it was refused");
  }
}

/** Whether what the store has had can be seen not to be the chain's. */
function isMisfit(one: Chain): boolean {
  const had = Math.min(one.had, one.steps);
  switch (one.wrong) {
    case "changed":
    case "fails":
      // Another text of a step that the store has had is a changed one.
      return failsAt(one) <= had;
    case "gap":
      return had >= 3;
    case "newer":
      return true;
    case "checksum":
      return had >= 1;
    case "first lost":
      return had >= 2;
    default:
      return false;
  }
}

async function disturb({ wrong, had, steps }: Chain, { store, chain }: { store: Store; chain: string }): Promise<void> {
  const history = store.history(chain);
  const applied = Math.min(had, steps);
  if (wrong === "gap" && applied >= 3) await store.script(`delete from ${history} and version = 2`);
  if (wrong === "first lost" && applied >= 2) await store.script(`delete from ${history} and version = 1`);
  if (wrong === "checksum" && applied >= 1) {
    const [table = "", where = ""] = history.split(" where ");
    await store.script(`update ${table} set checksum = 'x' where ${where} and version = ${applied}`);
  }
  if (wrong === "newer") {
    // As a newer build leaves it: every step of its own applied.
    const more = Array.from({ length: steps - applied + 1 }, (_, n) => stepOf(chain, applied + n + 1));
    await store.up([chainFrom(chain, [...stepsOf(chain, applied), ...more])]);
  }
}

function chainOf(name: string, steps: number, { wrong, at }: Partial<Chain> = {}): MigrationChain {
  return chainFrom(
    name,
    stepsOf(name, steps, wrong === "changed" ? at : wrong === "fails" ? (at ?? 0) + 100 : undefined),
  );
}

function failsAt({ at, steps }: Chain): number {
  return at % steps + 1;
}

function stepsOf(name: string, steps: number, at?: number): Migration[] {
  return Array.from({ length: steps }, (_, n) => {
    const step = stepOf(name, n + 1);
    if (at === undefined || at % 100 % steps !== n) return step;
    // Nothing changes of a step that was applied but its text, unless it is the one that fails.
    if (at < 100) return { ...step, up: `${step.up}\n-- changed` };
    return { ...step, up: `create table ${name}.half_${n} (x integer); select no_such_column from ${name}.half_${n}` };
  });
}

function stepOf(name: string, version: number): Migration {
  const table = `${name}.t${version}`;
  return { version, name: `step_${version}`, up: `create table ${table} (x integer)`, down: `drop table ${table}` };
}

function chainFrom(name: string, steps: readonly Migration[]): MigrationChain {
  const sqlite = steps.map((step) => ({ ...step, up: flat(step.up, name), down: flat(step.down, name) }));
  return { name, area: "queue", postgres: steps, sqlite };
}

/** SQLite has no schemas. */
function flat(text: string, name: string): string {
  return text.replaceAll(`${name}.`, `${name}_`);
}

function openSqlite(): Store {
  const db = new SqliteDatabase(":memory:");
  return {
    up: (chains) => migrateSqliteUp(db, chains),
    down: (chains) => migrateSqliteDown(db, chains, { steps: 2 }),
    script: (text) => db.write((session) => session.script(text)),
    history: (chain) => `schema_migrations where chain = '${chain}'`,
    dump: (_chains) =>
      db.read((session) => {
        const tables = session.all("select name, sql from sqlite_master order by name");
        const rows = session.all("select chain, version, name, checksum from schema_migrations order by 1, 2");
        return JSON.stringify([tables, rows]);
      }),
    close: () => db.close(),
  };
}

async function openPostgres(): Promise<Store> {
  const database = await createEmptyDatabase();
  const client = await openMigrationConnection(database.url("owner"));
  const historyOf = async ({ name }: MigrationChain) => {
    const found = await client.query("select to_regclass($1) is not null as found", [`${name}.schema_migrations`]);
    if (found[0]?.found !== true) return [];
    return await client.query(`select version, name, checksum from ${name}.schema_migrations order by 1`);
  };
  return {
    up: (chains) => migrateUp(client, chains),
    down: (chains) => migrateDown(client, chains, { steps: 2 }),
    script: (text) => client.script(text),
    history: (chain) => `${chain}.schema_migrations where true`,
    async dump(chains) {
      const names = chains.map(({ name }) => name);
      const tables = await client.query(
        "select schemaname, tablename from pg_tables where schemaname = any($1::text[]) order by 1, 2",
        [`{${names.join(",")}}`],
      );
      const rows = [];
      for (const chain of chains) rows.push(await historyOf(chain));
      return JSON.stringify([tables, rows]);
    },
    async close() {
      await client.close();
      await database.drop();
    },
  };
}
