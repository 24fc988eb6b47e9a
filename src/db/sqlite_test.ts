import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { SettingsError, UnavailableError } from "../core/errors.ts";
import { SqliteDatabase } from "./sqlite.ts";

/** A store on a file, and a second connection to it as another process has one. */
async function withFile(
  test: (store: SqliteDatabase, other: DatabaseSync) => Promise<void>,
  options: { busyMs?: number } = {},
): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-sqlite-" });
  const store = new SqliteDatabase(`${folder}/store.db`, { synchronous: "NORMAL", ...options });
  const other = new DatabaseSync(`${folder}/store.db`);
  try {
    await store.write((s) => s.script("create table t (x integer)"));
    await test(store, other);
  } finally {
    other.close();
    store.close();
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a write waits for another process's write, without blocking the event loop, and then lands", () =>
  withFile(async (store, other) => {
    other.exec("begin immediate; insert into t values (1)");
    let turns = 0;
    const write = store.write((s) => s.run("insert into t values (2)"));
    const ticking = setInterval(() => turns++, 1);
    while (turns < 5) await new Promise((resolve) => setTimeout(resolve, 5));
    clearInterval(ticking);
    other.exec("commit");
    assert.equal(await write, 1);
    assert.equal((await store.read((s) => s.get("select count(*) as n from t")))?.n, 2);
  }));

Deno.test("a write that waits too long is unavailable, not executed, and names the store", () =>
  withFile(async (store, other) => {
    other.exec("begin immediate");
    await assert.rejects(
      store.write((s) => s.run("insert into t values (2)")),
      (error: unknown) =>
        error instanceof UnavailableError && error.outcome === "not-executed" && error.message.includes("store.db"),
    );
    other.exec("rollback");
    assert.equal(await store.write((s) => s.run("insert into t values (3)")), 1, "the store is usable afterwards");
  }, { busyMs: 60 }));

/** How many writes one after the other go by before a timer fires. */
async function writesBeforeTimer(store: SqliteDatabase, limit: number): Promise<number> {
  let turned = false;
  const timer = setTimeout(() => turned = true, 0);
  let writes = 0;
  while (!turned && writes < limit) {
    await store.write((s) => s.run("insert into t values (1)"));
    writes++;
  }
  clearTimeout(timer);
  return writes;
}

Deno.test("operations one after the other let the event loop turn, on a file and in memory", async () => {
  await withFile(async (store) => assert.ok(await writesBeforeTimer(store, 20_000) < 20_000));
  const store = new SqliteDatabase(":memory:");
  await store.write((s) => s.script("create table t (x integer)"));
  assert.ok(await writesBeforeTimer(store, 100_000) < 100_000);
  store.close();
});

Deno.test("an operation that throws leaves nothing of itself", () =>
  withFile(async (store) => {
    await assert.rejects(
      store.write((s) => {
        s.run("insert into t values (1)");
        throw new Error("in the middle");
      }),
      /in the middle/,
    );
    assert.equal((await store.read((s) => s.get("select count(*) as n from t")))?.n, 0);
  }));

Deno.test("a file that is no database, and a folder that is not there, are one line each with the fix", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-sqlite-" });
  try {
    await Deno.writeTextFile(
      `${folder}/text.db`,
      "this is no database, and long enough to be told from one".repeat(100),
    );
    for (const path of [`${folder}/text.db`, `${folder}/missing/store.db`]) {
      assert.throws(
        () => new SqliteDatabase(path),
        (error: unknown) =>
          error instanceof SettingsError && error.message.includes(path) && !error.message.includes("\n"),
      );
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
