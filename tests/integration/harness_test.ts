/** The test servers themselves: none outlives the process that asked for it, however that process ends. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { PostgresClient } from "../../src/db/client.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

async function canConnect(url: string): Promise<boolean> {
  try {
    const client = await PostgresClient.open(url, { connectTimeoutMs: 1_000 });
    await client.close();
    return true;
  } catch {
    return false;
  }
}

for (const kind of ["shared", "private"]) {
  Deno.test(`a ${kind} test server and its files are gone after its test process was killed`, async () => {
    const script = fileURLToPath(new URL("../support/hold_server.ts", import.meta.url));
    const config = fileURLToPath(new URL("../../deno.json", import.meta.url));
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "-q", "--no-check", "--config", config, script, kind],
      // A server of the child's own, whatever this run uses.
      env: { LANEWAY_TEST_DATABASE_URL: "" },
      stdin: "null",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const reader = child.stdout.getReader();
    let said = "";
    while (!said.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) break;
      said += new TextDecoder().decode(value);
    }
    const { url, directory } = JSON.parse(said) as { url: string; directory: string };
    assert.equal(await canConnect(url), true);
    child.kill("SIGKILL");
    await reader.cancel();
    await child.status;
    await waitFor("the server to end", async () => !(await canConnect(url)), { timeoutMs: 20_000 });
    await waitFor("its files to go", () => Deno.stat(directory).then(() => false, () => true), { timeoutMs: 20_000 });
  });
}

Deno.test("databases are made by many test files at once", async () => {
  const made = await Promise.all(Array.from({ length: 6 }, () => createEmptyDatabase()));
  assert.equal(new Set(made.map((db) => db.name)).size, 6);
  await Promise.all(made.map((db) => db.drop()));
});
