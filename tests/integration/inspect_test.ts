import assert from "node:assert/strict";
import { inspectDatabase, loginFault, loginWarnings } from "../../src/db/inspect.ts";
import { EXAMPLE_CHAIN } from "../support/example_chain.ts";
import { createEmptyDatabase, createTestDatabase, loginUrl } from "../support/postgres.ts";

Deno.test("inspectDatabase() tells each login by its rights, and loginWarnings() what is wrong with them", async (t) => {
  const db = await createTestDatabase([EXAMPLE_CHAIN]);
  const look = async (url: string) => {
    const found = await inspectDatabase(url, { chains: [EXAMPLE_CHAIN] });
    return found.ok ? found : assert.fail(found.problem);
  };
  await t.step("the runtime login is as it should be", async () => {
    const { login, server, schemas } = await look(db.url("runtime"));
    assert.deepEqual(login, {
      login: "laneway_test_runtime",
      superuser: false,
      bypassRls: false,
      groups: ["laneway_runtime"],
      ownedTables: [],
    });
    assert.deepEqual(loginWarnings(login, "runtime"), []);
    assert.equal(loginFault(login, "runtime"), null);
    assert.match(loginFault(login, "system") ?? "", /grant laneway_system to laneway_test_runtime/);
    assert.equal(schemas?.[0]?.state, "current");
    assert.equal(server.database, db.name);
    assert.ok(server.versionNumber >= 150_000, server.version);
    assert.ok(server.connectionsInUse >= 1 && server.connectionsInUse <= server.maxConnections);
    assert.ok(Math.abs(server.clockOffsetMs) < 5_000, `one machine, one clock, but ${server.clockOffsetMs} ms`);
    assert.equal(server.readOnly, false);
  });
  await t.step("the owner is warned about", async () => {
    const { login } = await look(db.url("owner"));
    assert.deepEqual(login.ownedTables, ["example.notes", "example.schema_migrations"]);
    assert.match(loginWarnings(login, "runtime").join(), /owns tables \(example.notes/);
  });
  await t.step("a superuser is warned about", async () => {
    const { login } = await look(db.url("admin"));
    assert.match(loginWarnings(login, "runtime").join(), /is a superuser/);
  });
  await t.step("a database that is not there is a finding", async () => {
    const found = await inspectDatabase(loginUrl(db.url("admin"), "system", "no_such_thing"), { chains: [] });
    assert.match(found.ok ? "" : found.problem, /"no_such_thing" does not exist/);
  });
  await t.step("a database without migrations is not migrated", async () => {
    const empty = await createEmptyDatabase();
    const { schemas } = await look(empty.url("system"));
    assert.equal(schemas?.[0]?.state, "not-migrated");
    await empty.drop();
  });
  await db.drop();
});
