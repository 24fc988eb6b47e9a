/**
 * `deno task dev`, as its user meets it: workers from source on a Postgres of its own, started again when a file changes.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { PostgresClient } from "../../src/db/client.ts";
import { newId } from "../../src/core/ids.ts";
import { ROOT } from "../house/source_files.ts";
import { waitFor } from "../support/wait_for.ts";

const WAIT = { timeoutMs: 60_000 };

Deno.test("dev serves an item on a Postgres of its own, restarts on a change, drains at the signal, and keeps its data", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-dev-test-" });
  const marker = join(ROOT, "workers", `.dev-test-${Deno.pid}.ts`);
  const start = (args: readonly string[]) => {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", join(ROOT, "tools/dev.ts"), "maintenance", ...args],
      env: { TMPDIR: folder, NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    let out = "";
    const reading = (async () => {
      for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) out += part;
    })();
    return {
      out: () => out,
      async end() {
        child.kill("SIGINT");
        const [{ code }] = await Promise.all([child.status, reading]);
        return code;
      },
    };
  };
  const starts = (out: string) => out.split("worker.started").length - 1;
  const org = newId();
  await Deno.chmod(folder, 0o755);
  try {
    const first = start(["--fresh"]);
    try {
      await waitFor("the worker", () => starts(first.out()) === 1, WAIT);
      const client = await PostgresClient.open(/Postgres: psql (\S+)/.exec(first.out())?.[1] ?? "");
      await client.query("insert into core.orgs (id, name, created_at) values ($1::uuid, 'Łódź', now())", [org]);
      await client.close();
      await Deno.writeTextFile(marker, "export {};\n");
      await waitFor("it to start again", () => starts(first.out()) === 2, WAIT);
    } finally {
      assert.equal(await first.end(), 0, first.out());
    }
    assert.match(first.out(), /worker\.drained/);
    assert.doesNotMatch(first.out(), /skip the grace/);
    const second = start([]);
    try {
      await waitFor("the worker", () => starts(second.out()) === 1, WAIT);
      const client = await PostgresClient.open(/Postgres: psql (\S+)/.exec(second.out())?.[1] ?? "");
      const rows = await client.query("select name from core.orgs where id = $1::uuid", [org]);
      await client.close();
      assert.deepEqual(rows, [{ name: "Łódź" }]);
    } finally {
      assert.equal(await second.end(), 0, second.out());
    }
  } finally {
    await Deno.remove(marker).catch(() => {});
    await Deno.remove(folder, { recursive: true });
  }
});
