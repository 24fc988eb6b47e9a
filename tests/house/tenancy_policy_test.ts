/**
 * Holds the scope map to the database that the migrations make.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { TENANT_SQL } from "../../src/db/tenant_sql.ts";
import { CHAINS as HOUSE_CHAINS, OPTIONAL_CHAINS } from "../../src/migrations.ts";
import { TABLE_SCOPES, type TableScope } from "../../src/scopes.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { readWorkerChains } from "../support/worker_chains.ts";

// The house's, and those of the workers that keep records of their own.
const WORKERS = await readWorkerChains();
const CHAINS = [...HOUSE_CHAINS, ...OPTIONAL_CHAINS, ...WORKERS.map(({ chain }) => chain)];
const SCHEMAS = `{${CHAINS.map((chain) => chain.name).join(",")}}`;
// A chain not wired yet has no tables; its entries are checked from the moment it is.
const SCOPES = [TABLE_SCOPES, ...WORKERS.map(({ scopes }) => scopes)]
  .flatMap((scopes): [string, TableScope][] => Object.entries(scopes))
  .filter(([table]) => CHAINS.some((chain) => table.startsWith(`${chain.name}.`)));
/** What the host login reaches by policies of its own; `row_security_host_test.ts` holds those to what they are for. */
const HOST_TABLES = new Set(SCOPES.filter(([, { hosts }]) => hosts === true).map(([table]) => table));
/** What it may read beside them: whether somebody sweeps, which is no tenant's. */
const HOST_READS = new Set(["queue.sweep_steps"]);
const ORG_TABLES = SCOPES.filter(([, scope]) => scope.scope === "org");

async function withDatabase(check: (db: TestDatabase) => Promise<void>): Promise<void> {
  const db = await createTestDatabase(CHAINS);
  try {
    await check(db);
  } finally {
    await db.drop();
  }
}

interface Policy extends Record<string, unknown> {
  readonly table: string;
  readonly role: string;
  readonly cmd: string;
  readonly permissive: string;
  readonly qual: string | null;
  readonly with_check: string | null;
}

function orgColumn(scope: TableScope): string {
  return scope.orgColumn ?? "org_id";
}

/** Policies come back as Postgres writes them: casts spelled out, parentheses added. */
function plain(expression: string | null): string {
  return (expression ?? "").toLowerCase().replaceAll("::text", "").replace(/[()\s]/g, "");
}

Deno.test("every table is in the scope map, and the map names no other", async () => {
  await withDatabase(async (db) => {
    const rows = await db.adminSql<{ table: string }>(
      `select n.nspname || '.' || c.relname as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = any($1::text[]) and c.relkind in ('r', 'p', 'v', 'm', 'f') and c.relname <> 'schema_migrations'`,
      [SCHEMAS],
    );
    assert.deepEqual(rows.map((row) => row.table).sort(), SCOPES.map(([table]) => table).sort());
    for (const [table, { area }] of SCOPES) {
      assert.equal(
        CHAINS.find((chain) => table.startsWith(`${chain.name}.`))?.area,
        area,
        `${table} is in another area`,
      );
    }
  });
});

Deno.test("every org table forces row security under exactly the tenant's and the system's policy", async () => {
  await withDatabase(async (db) => {
    const forced = await db.adminSql<{ table: string }>(
      `select n.nspname || '.' || c.relname as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relrowsecurity and c.relforcerowsecurity and n.nspname = any($1::text[])`,
      [SCHEMAS],
    );
    assert.deepEqual(forced.map((row) => row.table).sort(), ORG_TABLES.map(([table]) => table).sort());
    const policies = await db.adminSql<Policy>(
      `select schemaname || '.' || tablename as table, array_to_string(roles, ',') as role, cmd, permissive, qual, with_check
       from pg_policies where schemaname = any($1::text[])`,
      [SCHEMAS],
    );
    for (const [table, scope] of ORG_TABLES) {
      const found = policies.filter((policy) => policy.table === table && policy.role !== "laneway_host");
      const byRole = new Map(found.map((policy) => [policy.role, policy]));
      assert.deepEqual([...byRole.keys()].sort(), ["laneway_runtime", "laneway_system"], `policies of ${table}`);
      assert.equal(found.length, 2, `${table} has one policy a role`);
      const tenant = plain(`${orgColumn(scope)} = ${TENANT_SQL}`);
      for (const [role, expected] of [["laneway_runtime", tenant], ["laneway_system", "true"]] as const) {
        const policy = byRole.get(role);
        assert.equal(policy?.cmd, "ALL", `${table} ${role}`);
        assert.equal(policy?.permissive, "PERMISSIVE", `${table} ${role}`);
        assert.equal(plain(policy?.qual ?? null), expected, `${table} ${role} using`);
        assert.equal(plain(policy?.with_check ?? null), expected, `${table} ${role} with check`);
      }
    }
  });
});

Deno.test("what the host login reaches has row security and policies for it, and nothing else has any", async () => {
  await withDatabase(async (db) => {
    const rows = await db.adminSql<{ table: string }>(
      `select distinct schemaname || '.' || tablename as table from pg_policies
       join pg_class c on c.oid = (schemaname || '.' || tablename)::regclass and c.relrowsecurity
       where 'laneway_host' = any(roles)`,
    );
    assert.deepEqual(rows.map((row) => row.table).sort(), [...HOST_TABLES].sort());
  });
});

Deno.test("every index of an org table leads with the org, but for the named ones of tenant-less statements", async () => {
  await withDatabase(async (db) => {
    const indexes = await db.adminSql<{ table: string; index: string; lead: string }>(
      `select n.nspname || '.' || c.relname as table, i.relname as index, a.attname as lead
       from pg_index x
       join pg_class c on c.oid = x.indrelid join pg_namespace n on n.oid = c.relnamespace
       join pg_class i on i.oid = x.indexrelid
       left join pg_attribute a on a.attrelid = c.oid and a.attnum = x.indkey[0]
       where n.nspname = any($1::text[])`,
      [SCHEMAS],
    );
    for (const [table, scope] of ORG_TABLES) {
      const others = indexes.filter((index) => index.table === table && index.lead !== orgColumn(scope));
      assert.deepEqual(
        others.map((index) => index.index).sort(),
        [...scope.tenantlessIndexes ?? []].sort(),
        `indexes of ${table} that do not lead with ${orgColumn(scope)}`,
      );
    }
  });
});

Deno.test("system tables are closed to every login but the system's, and nobody may truncate", async () => {
  await withDatabase(async (db) => {
    const grants = await db.adminSql<{ table: string; grantee: string; right: string }>(
      `select table_schema || '.' || table_name as table, grantee, privilege_type as right
       from information_schema.role_table_grants
       where table_schema = any($1::text[]) and table_name <> 'schema_migrations' and grantee <> 'laneway_test_owner'`,
      [SCHEMAS],
    );
    const system = new Set(SCOPES.filter(([, scope]) => scope.scope === "system").map(([table]) => table));
    const hosts = grants.filter((g) => g.grantee === "laneway_host");
    const beyond = hosts.filter((g) => !HOST_TABLES.has(g.table));
    assert.deepEqual(beyond.filter((g) => g.right !== "SELECT" || !HOST_READS.has(g.table)), []);
    const others = grants.filter((g) => !hosts.includes(g));
    assert.deepEqual(others.filter((g) => system.has(g.table) && g.grantee !== "laneway_system"), []);
    assert.deepEqual(grants.filter((g) => ["TRUNCATE", "TRIGGER", "REFERENCES"].includes(g.right)), []);
    assert.ok(grants.every((g) => g.grantee.startsWith("laneway_")), "PUBLIC has rights on a table");
  });
});

Deno.test("no function, trigger, cascade, or foreign key between areas", async () => {
  await withDatabase(async (db) => {
    const functions = await db.adminSql(
      `select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = any($1::text[])`,
      [SCHEMAS],
    );
    assert.deepEqual(functions, []);
    const triggers = await db.adminSql(
      `select t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
       where not t.tgisinternal and n.nspname = any($1::text[])`,
      [SCHEMAS],
    );
    assert.deepEqual(triggers, []);
    const keys = await db.adminSql(
      `select k.conname from pg_constraint k
       join pg_class c on c.oid = k.conrelid join pg_class r on r.oid = k.confrelid
       join pg_namespace n on n.oid = c.relnamespace
       where k.contype = 'f' and n.nspname = any($1::text[])
         and (c.relnamespace <> r.relnamespace or k.confdeltype <> 'a' or k.confupdtype <> 'a')`,
      [SCHEMAS],
    );
    assert.deepEqual(keys, []);
  });
});

Deno.test("the runtime login sees and writes rows of its own org alone, and none without one", async () => {
  await withDatabase(async (db) => {
    const { core } = db.databases;
    const [mine, other] = [newId(), newId()];
    for (const id of [mine, other]) {
      await core.system("insert into core.orgs (id, name, created_at) values ($1::uuid, 'x', now()) returning id", [
        id,
      ]);
    }
    const seen = await core.tenant<{ id: string }>(mine, "select id from core.orgs", []);
    assert.deepEqual(seen.map((row) => row.id), [mine]);
    const insert = `insert into core.outbox (org_id, id, kind, payload, actor_id, created_at)
      values ($1::uuid, $2::uuid, 'a.b.c', '{}', $2::uuid, now())`;
    await core.tenant(mine, insert, [mine, newId()]);
    await assert.rejects(core.tenant(mine, insert, [other, newId()]));
    assert.deepEqual(await core.system<{ org_id: string }>("select org_id from core.outbox", []), [{ org_id: mine }]);
    const [bare] = await db.open.pools.filter(({ name }) => name.endsWith("runtime"));
    assert.deepEqual(await bare?.pool.run("select id from core.orgs", []), []);
  });
});
