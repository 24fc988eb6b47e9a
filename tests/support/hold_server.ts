/**
 * A process that starts a test server as a test would, and waits to be killed.
 *
 * Usage: `deno run -A hold_server.ts shared|private`. Prints the server's URL and directory.
 *
 * @module
 */
import { processKey } from "./process_key.ts";
import { sharedServerUrl, startPrivateServer } from "./postgres.ts";

if (Deno.args[0] === "shared") {
  const url = await sharedServerUrl();
  console.log(
    JSON.stringify({
      url,
      directory: `${Deno.env.get("TMPDIR") ?? "/tmp"}/laneway-test-postgres/${processKey(Deno.pid)}`,
    }),
  );
} else {
  const server = await startPrivateServer();
  console.log(JSON.stringify({ url: server.url(), directory: server.directory }));
}
setInterval(() => {}, 60_000);
