/**
 * What each login can reach at all, exactly, and that a session of the runtime login has no way around its tenant.
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { CHAINS } from "../../src/migrations.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { allStorages, makeWorld, MARK, type World } from "../support/breach_world.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { ORG_TABLES, saidBy } from "../support/tenant_breach.ts";

/** Every right of every login. A change of rights changes this table, on purpose and in sight. */
const REACH = `
host    *.schema_migrations       select
host    queue.attempts            select insert(attempt) insert(claim_token) insert(duration_ms) insert(exit_code) insert(finished_at) insert(host) insert(item_id) insert(org_id) insert(outcome) insert(reason) insert(signal) insert(started_at) insert(stderr_cut_bytes) insert(stderr_tail) insert(stdout_cut_bytes) insert(stdout_tail) insert(worker)
host    queue.hosts               select update(current_workers) update(last_heartbeat_at) update(updated_at)
host    queue.sweep_steps         select
host    queue.work_items          select update(attempts) update(audit_id) update(available_at) update(claim_token) update(claimed_by) update(claims) update(expiries) update(host) update(last_error) update(lease_expires_at) update(note) update(ready) update(status) update(updated_at) update(updated_by)

runtime *.schema_migrations       select
runtime activity.audit_entries    select
runtime activity.event_cursors    select insert update
runtime activity.events           select insert
runtime core.idempotency_markers  select insert update
runtime core.memberships          select insert update
runtime core.orgs                 select
runtime core.outbox               insert
runtime core.sessions             select insert update
runtime core.socket_tickets       select insert update
runtime queue.attempts            select
runtime queue.work_history        select
runtime queue.work_items          select insert update
runtime queue.work_keys           select insert
runtime shipments.endpoints       select insert update delete
runtime shipments.shipments       select insert update delete

system  *.schema_migrations       select
system  activity.audit_entries    select insert
system  core.cache_entries        select insert update delete
system  core.idempotency_markers  select update delete
system  core.memberships          select
system  core.orgs                 select insert update
system  core.outbox               select delete update(done_at)
system  core.sessions             select update delete
system  core.socket_tickets       select update delete
system  core.users                select insert
system  queue.attempts            select delete update(created_at)
system  queue.hosts               select update(org_ids) update(updated_at)
system  queue.sweep_steps         select insert update
system  queue.work_history        select insert update delete
system  queue.work_items          select insert update delete
system  queue.work_keys           select insert update delete
system  shipments.shipments       select
`;

async function withDatabase(check: (db: TestDatabase) => Promise<void>): Promise<void> {
  const db = await createTestDatabase([...CHAINS, SHIPMENTS_CHAIN]);
  try {
    await check(db);
  } finally {
    await db.drop();
  }
}

/** Two orgs, and a session of the runtime login as anybody with its password could open it. */
async function withSession(
  check: (at: {
    readonly db: TestDatabase;
    readonly world: World;
    readonly session: PostgresClient;
  }) => Promise<void>,
): Promise<void> {
  await withDatabase(async (db) => {
    const store = { engine: "postgres", databases: db.databases, nowSql: db.clock.nowSql } as const;
    const world = await makeWorld({
      store,
      advance: (ms) => db.clock.advance(ms),
      sql: (text) => db.adminSql(text),
      table: (name) => name,
      close: () => Promise.resolve(),
    }, allStorages(store));
    const session = await PostgresClient.open(db.url("runtime"));
    try {
      await check({ db, world, session });
    } finally {
      await session.close();
    }
  });
}

/** Rights of tables, those of the login itself and those it has by its roles and as anybody; columns where not all. */
const RIGHTS_SQL = `
  with logins as (select unnest(array['runtime', 'system', 'host']) as login),
  relations as (
    select c.oid, n.nspname || '.' || c.relname as relation from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^(pg_|information_schema$)'
      and n.nspname || '.' || c.relname <> 'public.test_clock'
  ), rights as (
    select login, relation, place, r from logins, relations,
      unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'] ||
        case when current_setting('server_version_num')::int >= 170000 then array['MAINTAIN'] end)
        with ordinality as r(r, place)
    where has_table_privilege('laneway_test_' || login, oid, r)
    union all
    select login, relation, 9, r || '(' || attname || ')'
    from logins, relations join pg_attribute a on a.attrelid = oid,
      unnest(array['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) as r
    where attnum > 0 and not attisdropped and has_column_privilege('laneway_test_' || login, oid, attnum, r)
      and not has_table_privilege('laneway_test_' || login, oid, r)
  )
  select login, relation, string_agg(lower(r), ' ' order by place, r) as rights from rights group by 1, 2`;

Deno.test("each login has exactly the rights of the table, on every table there is", async () => {
  await withDatabase(async (db) => {
    const rows = await db.adminSql<{ login: string; relation: string; rights: string }>(RIGHTS_SQL);
    const lines = rows.map(({ login, relation, rights }) =>
      `${login} ${relation.replace(/^\w+\.schema_migrations$/, "*.schema_migrations")} ${rights}`
    );
    const expected = REACH.trim().split("\n").filter((line) => line !== "").map((line) => line.replace(/ +/g, " "));
    assert.deepEqual([...new Set(lines)].sort(), expected.sort());
  });
});

Deno.test("no login may create anything in a schema or a database, owns a thing, or stands above the policies", async () => {
  await withDatabase(async (db) => {
    const logins = "unnest(array['runtime', 'system', 'host']) as l";
    const created = await db.adminSql(
      `select l, nspname from ${logins}, pg_namespace
       where nspname !~ '^pg_' and has_schema_privilege('laneway_test_' || l, oid, 'CREATE')
       union all select l, 'the database' from ${logins}
       where has_database_privilege('laneway_test_' || l, current_database(), 'CREATE')`,
    );
    assert.deepEqual(created, []);
    const owned = await db.adminSql(
      `select relname from pg_class where pg_get_userbyid(relowner) ~ '^laneway_(test_)?(runtime|system|host)$'`,
    );
    assert.deepEqual(owned, []);
    const above = await db.adminSql(
      `select rolname from pg_roles where rolname ~ '^laneway_(test_)?(runtime|system|host)$'
         and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)`,
    );
    assert.deepEqual(above, []);
    const members = await db.adminSql<{ member: string; of: string }>(
      `select member::regrole::text as member, roleid::regrole::text as of from pg_auth_members
       where member::regrole::text ~ '^laneway_(test_)?(runtime|system|host)$' order by 1`,
    );
    assert.deepEqual(members.map(({ member, of }) => `${member} in ${of}`), [
      "laneway_test_host in laneway_host",
      "laneway_test_runtime in laneway_runtime",
      "laneway_test_system in laneway_system",
    ]);
  });
});

Deno.test("a session of the runtime login cannot become another role, nor change or leave its policies", async () => {
  await withSession(async ({ session, world: { a, b } }) => {
    await session.query("select set_config('laneway.org_id', $1, false)", [b]);
    const denied = [
      ..."laneway_system laneway_host laneway_test_system laneway_test_owner".split(" ").flatMap((role) => [
        `set role ${role}`,
        `set session authorization ${role}`,
      ]),
      "set row_security = off; select * from queue.work_items",
      "alter table queue.work_items disable row level security",
      "alter table queue.work_items no force row level security",
      "alter policy work_items_tenant on queue.work_items using (true)",
      "drop policy work_items_tenant on queue.work_items",
      "create policy mine on queue.work_items to laneway_runtime using (true)",
      "grant laneway_system to laneway_test_runtime",
      "alter role laneway_test_runtime bypassrls",
      "truncate queue.work_items",
      "create function queue.peek() returns void language sql as 'select 1'",
      "create view queue.peek as select * from queue.work_items",
    ];
    for (const sql of denied) {
      const error = await session.script(sql).then(() => null, (error) => error);
      assert.ok(error !== null, `${sql} was allowed`);
      assert.match(saidBy(error), /permission denied|must be (owner|able)|row-level security|Only roles/i, sql);
      assert.equal(saidBy(error).includes(MARK), false, saidBy(error));
      await session.script("rollback; set row_security = on");
    }
    // Its own group is all it may step into, and that is no way out of the org.
    await session.script("set role laneway_runtime");
    const seen = await session.query("select id from core.orgs");
    assert.deepEqual(seen, [{ id: b }]);
    assert.notEqual(a, b);
  });
});

Deno.test("a setting that is no org shows no rows and writes none, whatever it is set to", async () => {
  await withSession(async ({ session, world: { a } }) => {
    const odd = [
      "",
      " ",
      "null",
      "%",
      "*",
      "' or true --",
      a.slice(0, -1),
      `${a},${a}`,
      `{${a},${a}}`,
      "\\000",
      newId(),
    ];
    for (const value of [null, ...odd]) {
      if (value !== null) await session.query("select set_config('laneway.org_id', $1, false)", [value]);
      for (const [table] of ORG_TABLES.filter(([table]) => table !== "core.outbox")) {
        const [rows, error] = await session.query(`select * from ${table}`).then((r) => [r, null], (e) => [[], e]);
        assert.deepEqual(rows, [], `${table} under ${value}`);
        if (error !== null) assert.match(saidBy(error), /invalid input syntax for type uuid/);
        assert.equal(saidBy(error).includes(MARK), false, saidBy(error));
      }
      const insert = `insert into queue.work_keys values ('${a}', 'k', '${a}', now())`;
      await assert.rejects(session.query(insert), /row-level security|invalid input syntax for type uuid/);
    }
  });
});

Deno.test("a condition that throws at what a row holds is never asked of another org's rows", async () => {
  await withSession(async ({ session, world: { a, b } }) => {
    const throwing = "select id from queue.work_items where (payload->>'mark')::int = 1";
    await session.query("select set_config('laneway.org_id', $1, false)", [b]);
    assert.deepEqual(await session.query(throwing), []);
    await session.query("select set_config('laneway.org_id', $1, false)", [a]);
    await assert.rejects(session.query(throwing), (error) => saidBy(error).includes(MARK), "asked of A's it tells");
  });
});

Deno.test("the planner's statistics, which hold samples of every org's values, are closed to the runtime login", async () => {
  await withSession(async ({ db, session, world: { b } }) => {
    for (const [table] of ORG_TABLES) await db.adminSql(`analyze ${table}`);
    const samples = `select most_common_vals::text as vals, histogram_bounds::text as bounds from pg_stats
      where schemaname in ('core', 'queue', 'activity', 'shipments')`;
    assert.ok(JSON.stringify(await db.adminSql(samples)).includes(MARK), "there are samples of A's");
    await session.query("select set_config('laneway.org_id', $1, false)", [b]);
    assert.deepEqual(
      (await session.query(samples)).filter(({ vals, bounds }) => `${vals}${bounds}`.includes(MARK)),
      [],
    );
    await assert.rejects(session.query("select * from pg_statistic"), /permission denied/);
  });
});
