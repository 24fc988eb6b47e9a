/**
 * Owns the test server of one test process. `deno test` runs each file in an isolate of its own, so no file can own what
 * all share: this process does, and outlives them just long enough to clean up, also after a SIGKILL.
 *
 * Usage: `deno run -A postgres_supervisor.ts DIRECTORY PROCESS` where PROCESS is `<pid>-<start time>`. Writes the server's
 * URL to `DIRECTORY/url`, or what went wrong to `DIRECTORY/error`.
 *
 * @module
 */
import { PostgresServer } from "./postgres_server.ts";
import { processKey } from "./process_key.ts";

const [directory, owner] = Deno.args;
if (directory === undefined || owner === undefined) throw new Error("usage: postgres_supervisor.ts DIRECTORY PROCESS");

let ending = false;
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) Deno.addSignalListener(name, () => ending = true);

let server: PostgresServer | undefined;
try {
  server = await PostgresServer.prepare(directory, {
    fsync: Deno.env.get("LANEWAY_TEST_FSYNC") === "on",
  });
  await server.start();
  await publish("url", server.url());
} catch (error) {
  await publish("error", String(error));
  // Left for the waiting tests to read.
  for (let i = 0; i < 100 && isAlive(); i++) await pause(100);
}
while (server !== undefined && !ending && isAlive()) await pause(200);
await server?.remove();
await Deno.remove(directory, { recursive: true }).catch(() => {});

async function publish(name: string, text: string): Promise<void> {
  // Renamed into place, so that nobody reads half of it.
  await Deno.writeTextFile(`${directory}/${name}.new`, text);
  await Deno.rename(`${directory}/${name}.new`, `${directory}/${name}`);
}

function isAlive(): boolean {
  return processKey(Number(owner?.split("-")[0])) === owner;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
