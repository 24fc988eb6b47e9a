/**
 * The two locks on a tenant's rows, each proven alone: the policy refuses a statement that lost its own conditions, and
 * the conditions refuse where the policy is gone. Without both, every case of the list leaks or writes: so it can fail.
 */
import assert from "node:assert/strict";
import { sqlState } from "../../src/db/sqlstate.ts";
import { CHAINS as HOUSE_CHAINS } from "../../src/migrations.ts";
import { encodeOutboxRows, outboxInsertCte } from "../../src/outbox/rows.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { production, readSources } from "../house/source_files.ts";
import { type AllStorages, allStorages, makeWorld, MARK, outboxRowOf, type World } from "../support/breach_world.ts";
import { ENGINES, openTestStore, type TestStore } from "../support/stores.ts";
import { openPolicies, ORG_TABLES, rowsOf, saidBy, tampered, withoutTenant } from "../support/tenant_breach.ts";
import { STATEMENTS, TENANT_CASES, type TenantCase, textOf } from "../support/tenant_statements.ts";

const CHAINS = [...HOUSE_CHAINS, SHIPMENTS_CHAIN];

async function withStore(engine: typeof ENGINES[number], check: (test: TestStore) => Promise<void>): Promise<void> {
  const test = await openTestStore(engine, CHAINS);
  try {
    await check(test);
  } finally {
    await test.close();
  }
}

/** How an attempt ended, for the table and for the assertion. */
interface Verdict {
  readonly safe: boolean;
  readonly told: string;
}

function isRowSecurity(error: unknown): boolean {
  const cause = (error as { cause?: unknown } | null)?.cause;
  return sqlState(cause) === "42501" && /row-level security/.test(String((cause as Error).message));
}

/** Reaches for A from inside B: through the storage's own method, with its statements rewritten. */
async function breach(test: TestStore, one: TenantCase, rewrite: (sql: string) => string): Promise<Verdict> {
  assert.ok(test.store.engine === "postgres");
  const world = await makeWorld(test, allStorages(test.store));
  const before = await rowsOf(test, world.a);
  assert.ok(before.includes(MARK), "A has something to hide");
  const { databases, attempts } = tampered(test.store.databases, { inside: world.b, rewrite, lost: one.lost });
  const storages = allStorages({ ...test.store, databases });
  // What the method makes of it is of no interest: of a statement that met nothing it may say that it is lost.
  await one.act(storages, world.a, world).catch(() => {});
  const mine = attempts.filter(({ sql }) => sql === textOf(one));
  assert.ok(mine.length > 0, `${one.name} was never sent`);
  for (const { error } of attempts) assert.equal(saidBy(error).includes(MARK), false, `${one.name}: ${saidBy(error)}`);
  const wrote = await rowsOf(test, world.a) !== before;
  const reveals = one.reveals ?? ((rows) => JSON.stringify(rows).includes(MARK));
  if (wrote) return { safe: false, told: "WROTE" };
  if (mine.some(({ rows }) => reveals(rows))) return { safe: false, told: "LEAKED" };
  const error = mine.find(({ error }) => error !== null)?.error ?? null;
  if (error === null) return { safe: true, told: "hidden" };
  assert.ok(isRowSecurity(error), `${one.name} was refused by something else: ${saidBy(error)}`);
  return { safe: true, told: "refused" };
}

function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd();
  console.log(["", line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line), ""].join("\n"));
}

Deno.test("the list of tenant statements holds every one of the source, and no other", async () => {
  const files = production([...await readSources("src"), ...await readSources("workers")]);
  const found: string[] = [];
  for (const { path, text } of files.filter(({ path }) => !path.startsWith("src/db/"))) {
    const calls = [...text.matchAll(/\.tenant\b(?:<[^(]*>)?\(/g)];
    const named = [...text.matchAll(/\.tenant\b(?:<[^(]*>)?\(\s*\w+,\s*this\.#sql\.(\w+)/g)];
    assert.equal(named.length, calls.length, `${path}: every tenant call must name its statement as this.#sql.<name>`);
    const room = path.split("/storage/")[0]?.split("/").at(-1) ?? "";
    found.push(...named.map(([, name]) => `${room}.${name}`));
  }
  assert.deepEqual([...new Set(found)].sort(), TENANT_CASES.map(({ name }) => name).sort());
});

Deno.test("every tenant statement conditions on the setting, and loses all of its conditions when they are taken out", () => {
  for (const one of TENANT_CASES) {
    const text = textOf(one);
    assert.match(text, /laneway\.org_id/, one.name);
    const left = withoutTenant(text);
    assert.doesNotMatch(left, /laneway\.org_id|org_id\s*=\s*\$/, `${one.name}: ${left}`);
  }
});

Deno.test("of every tenant statement the policy alone refuses, its conditions alone refuse, and without both A is reached", async () => {
  const bare = (sql: string) => withoutTenant(sql);
  const whole = (sql: string) => sql;
  const rows: string[][] = [];
  await withStore("postgres", (guarded) =>
    withStore("postgres", async (open) => {
      await openPolicies(open);
      for (const one of TENANT_CASES) {
        const policy = await breach(guarded, one, bare);
        const statement = await breach(open, one, whole);
        const neither = await breach(open, one, bare);
        rows.push([one.name, policy.told, statement.told, neither.told]);
      }
    }));
  printTable(["statement", "policy alone", "its conditions alone", "neither"], rows);
  const expected = TENANT_CASES.map(({ name, refusal }) => [name, refusal]);
  assert.deepEqual(rows.map(([name, policy]) => [name, policy]), expected);
  for (const [name, , statement, neither] of rows) {
    assert.equal(statement, "hidden", `${name}: its own conditions refuse`);
    assert.match(neither ?? "", /^(WROTE|LEAKED)$/, `${name}: the attempt is a real one`);
  }
});

Deno.test("of every org table the policy alone hides rows, and refuses new ones and moved ones", async () => {
  const rows: string[][] = [];
  await withStore("postgres", (guarded) =>
    withStore("postgres", async (open) => {
      await openPolicies(open);
      for (const [table, column] of ORG_TABLES) {
        const shut = await reachForTable(guarded, table, column);
        const gone = await reachForTable(open, table, column);
        rows.push([table, ...shut, ...gone]);
        const what = ["select", "update", "delete", "insert", "move"];
        shut.forEach((told, i) => assert.match(told, /^(0 rows|no grant|refused)$/, `${table} ${what[i]}`));
        // Where the login has the right at all, nothing but the policy stood in the way.
        assert.equal(gone.some((told) => told === "REACHED"), shut.some((told) => told !== "no grant"), table);
      }
    }));
  const verbs = ["select", "update", "delete", "insert", "move"];
  printTable(["table", ...verbs, ...verbs.map((verb) => `${verb}*`)], rows);
  console.log("* with the policy opened\n");
});

/** Raw statements of the runtime login inside B on A's rows, each told as the database told it. */
async function reachForTable(test: TestStore, table: string, column: string): Promise<string[]> {
  assert.ok(test.store.engine === "postgres");
  const world = await makeWorld(test, allStorages(test.store));
  const before = await rowsOf(test, world.a);
  const [row] = await test.sql(
    `select to_jsonb(t)::text as row from ${table} t where ${column} = '${world.a}' limit 1`,
  );
  assert.ok(row, `${table} has no row of A`);
  const theirs = `${column} = '${world.a}'`;
  const { core } = test.store.databases;
  const told = async (sql: string) => {
    try {
      return (await core.tenant(world.b, sql, [])).length === 0 ? "0 rows" : "REACHED";
    } catch (error) {
      assert.equal(saidBy(error).includes(MARK) && !sql.includes(MARK), false, saidBy(error));
      if (isRowSecurity(error)) return "refused";
      // It got past the policy and met A's own row there.
      if (sqlState((error as Error).cause) === "23505") return "REACHED";
      assert.match(saidBy(error), /permission denied for table/);
      return "no grant";
    }
  };
  const literal = String(row.row).replaceAll("'", "''");
  const copied = `select * from jsonb_populate_record(null::${table}, '${literal}'::jsonb)`;
  const seen = [
    await told(`select 1 from ${table} where ${theirs}`),
    await told(`update ${table} set ${column} = ${column} where ${theirs} returning 1`),
    await told(`delete from ${table} where ${theirs} returning 1`),
    await told(`insert into ${table} ${copied} returning 1`),
  ];
  // A row of B's own is handed to A.
  const own = `jsonb_set('${literal}'::jsonb, '{${column}}', '"${world.b}"')`;
  await test.sql(
    `insert into ${table} select * from jsonb_populate_record(null::${table}, ${own}) on conflict do nothing`,
  );
  seen.push(await told(`update ${table} set ${column} = '${world.a}' where ${column} = '${world.b}' returning 1`));
  if (!seen.includes("REACHED")) assert.equal(await rowsOf(test, world.a), before, `${table}: A is as it was`);
  return seen;
}

Deno.test("outbox rows of another org are refused by the policy when their CTE lost its condition", async () => {
  await withStore("postgres", (guarded) =>
    withStore("postgres", async (open) => {
      await openPolicies(open);
      const sql = withoutTenant(`with ${outboxInsertCte(1)} select 1`);
      const attempt = async (test: TestStore) => {
        assert.ok(test.store.engine === "postgres");
        const { a, b } = await makeWorld(test, allStorages(test.store));
        const before = await rowsOf(test, a);
        const sent = test.store.databases.core.tenant(b, sql, [encodeOutboxRows([outboxRowOf(a)])]);
        const error = await sent.then(() => null, (error) => error);
        return { error, wrote: await rowsOf(test, a) !== before };
      };
      const refused = await attempt(guarded);
      assert.ok(isRowSecurity(refused.error) && !refused.wrote, saidBy(refused.error));
      assert.deepEqual(await attempt(open), { error: null, wrote: true }, "without the policy it is written");
    }));
});

for (const engine of ENGINES) {
  Deno.test(`no tenant method of any storage reaches another org's rows by its ids, keys and tokens, on ${engine}`, async () => {
    await withStore(engine, async (test) => {
      const storages = allStorages(test.store);
      for (const one of TENANT_CASES) await crossesNot(test, storages, one);
    });
  });
}

async function crossesNot(test: TestStore, storages: AllStorages, one: TenantCase): Promise<void> {
  const world: World = await makeWorld(test, storages);
  const before = await rowsOf(test, world.a);
  const [answer, error] = await one.act(storages, world.b, world).then((a) => [a, null], (e) => [null, e]);
  assert.equal(JSON.stringify(answer ?? null).includes(MARK), false, `${one.name} tells of A`);
  assert.equal(saidBy(error).includes(MARK), false, `${one.name} tells of A when it fails`);
  assert.equal(await rowsOf(test, world.a), before, `${one.name} changed A`);
}

Deno.test("every statement text is one of a room's, so that none is told apart by chance", () => {
  const texts = Object.values(STATEMENTS).flatMap((room) => Object.values(room));
  assert.equal(new Set(texts).size, texts.length);
});
