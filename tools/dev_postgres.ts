/**
 * The Postgres of `deno task dev`: a real server out of an npm package, with the logins of `deploy/compose/logins.sql`, which
 * keeps its data from one run to the next.
 *
 * @module
 */
import { join } from "node:path";
import { PostgresClient } from "../src/db/client.ts";
import { PostgresServer, SUPERUSER } from "../tests/support/postgres_server.ts";

/** A running server. */
export interface DevPostgres {
  /** The URL of a login of `logins.sql` on the database `work`. */
  url(login: "app_owner" | "app_runtime" | "app_system"): string;
  stop(): Promise<void>;
}

/**
 * Starts the server over a project's own data.
 *
 * @param options.fresh Begins without what earlier runs left.
 */
export async function startDevPostgres(root: string, options: { readonly fresh: boolean }): Promise<DevPostgres> {
  const folder = await folderOf(root);
  if (options.fresh) await Deno.remove(folder, { recursive: true }).catch(ignoreMissing);
  const isNew = !await Deno.stat(join(folder, "data/PG_VERSION")).then(() => true, () => false);
  if (isNew) await Deno.remove(folder, { recursive: true }).catch(ignoreMissing);
  const server = isNew
    ? await PostgresServer.prepare(folder, { detached: true })
    : PostgresServer.reopen(folder, { detached: true });
  await server.start();
  if (isNew) await createLogins(server, root);
  return {
    url: (login) => `postgres://${login}:local@127.0.0.1:${server.port}/work`,
    stop: () => server.stop(),
  };
}

/** One folder a project. In the temporary folder, as the server may run as another user, who need not reach a home. */
async function folderOf(root: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(root)));
  const id = [...digest.slice(0, 6)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return join(Deno.env.get("TMPDIR") ?? "/tmp", `laneway-dev-${Deno.uid() ?? 0}-${id}`);
}

async function createLogins(server: PostgresServer, root: string): Promise<void> {
  const sql = await Deno.readTextFile(join(root, "deploy/compose/logins.sql"));
  const admin = await PostgresClient.open(server.url(), { applicationName: "laneway-dev" });
  try {
    await admin.script(`create database work owner ${SUPERUSER}`);
    await admin.script(sql);
  } finally {
    await admin.close();
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
