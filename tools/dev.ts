/**
 * `deno task dev [worker …] [--fresh]`: a real Postgres, migrated, and the workers from source, each started again when a
 * file changes. Without names, every worker that takes its items from a database. Ctrl-C drains them.
 *
 * Variables come from `.env` where there is one, as `.env.example` shows; the database's URLs are this server's.
 *
 * @module
 */
import { join } from "node:path";
import { parseArgs, parseEnv } from "node:util";
import { fileURLToPath } from "node:url";
import { type DevPostgres, startDevPostgres } from "./dev_postgres.ts";
import { readProject } from "./project.ts";

const HELP = `Runs workers from source on a Postgres of their own, and starts them again when a file changes.

  deno task dev [worker ...] [options]

  --fresh   begins with an empty database. Without it, data stay from one run to the next.
  --help    this text.`;

const root = fileURLToPath(new URL("..", import.meta.url));
/** A burst of changes, as an editor or a checkout makes them, is one. */
const QUIET_MS = 200;
const WATCHED = ["mod.ts", "src", "workers"];
const COLORS = [36, 33, 35, 32, 34];

try {
  Deno.exitCode = await main();
} catch (error) {
  console.error(`dev: ${error instanceof Error ? error.message : error}`);
  Deno.exitCode = 1;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...Deno.args],
    allowPositionals: true,
    options: { fresh: { type: "boolean" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const names = await workersOf(positionals);
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, onSignal);
  const postgres = await startDevPostgres(root, { fresh: values.fresh ?? false });
  try {
    const env = { ...await readEnvFile(), ...urlsOf(postgres) };
    console.log(`Postgres: psql ${env.LANEWAY_SYSTEM_DATABASE_URL}`);
    for (const name of names) await migrate(name, env);
    await runWorkers(names, env, stop.signal);
  } finally {
    await postgres.stop();
    for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.removeSignalListener(signal, onSignal);
  }
  return 0;
}

async function workersOf(wanted: readonly string[]): Promise<string[]> {
  const { workers } = await readProject(root);
  const possible = workers.filter(({ opens }) => !opens).map(({ name }) => name);
  const unknown = wanted.find((name) => !possible.includes(name));
  if (unknown !== undefined) throw new Error(`Cannot run ${unknown}: give one of ${possible.join(", ")}`);
  return wanted.length === 0 ? possible : [...wanted];
}

async function readEnvFile(): Promise<Record<string, string>> {
  try {
    return { ...parseEnv(await Deno.readTextFile(join(root, ".env"))) } as Record<string, string>;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return {};
    throw error;
  }
}

function urlsOf(postgres: DevPostgres): Record<string, string> {
  return {
    LANEWAY_DATABASE_URL: postgres.url("app_runtime"),
    LANEWAY_SYSTEM_DATABASE_URL: postgres.url("app_system"),
    LANEWAY_MIGRATE_DATABASE_URL: postgres.url("app_owner"),
  };
}

function workerCommand(name: string, args: readonly string[], env: Readonly<Record<string, string>>): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "-q", join(root, "workers", name, "main.ts"), ...args],
    cwd: root,
    env: { LANEWAY_LOG_FORMAT: "text", LANEWAY_HTTP_PORT: "0", ...env },
    // The terminal's Ctrl-C is this program's to pass on, once.
    detached: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

async function migrate(name: string, env: Readonly<Record<string, string>>): Promise<void> {
  const { success, stdout, stderr } = await workerCommand(name, ["migrate", "up"], env).output();
  const said = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (!success) throw new Error(`the migrations of ${name} failed:\n${said.trim()}`);
}

/** Runs all of them until `stop`, starting them again after each change. */
async function runWorkers(
  names: readonly string[],
  env: Readonly<Record<string, string>>,
  stop: AbortSignal,
): Promise<void> {
  const watcher = Deno.watchFs(WATCHED.map((path) => join(root, path)));
  stop.addEventListener("abort", () => watcher.close(), { once: true });
  let running = names.map((name, i) => startWorker(name, env, i));
  const restart = async () => {
    await Promise.all(running.map((worker) => worker.end()));
    if (stop.aborted) return;
    console.log("dev: a file changed; starting again");
    // A change may have brought a migration.
    for (const name of names) await migrate(name, env).catch((error) => console.error(`dev: ${error.message}`));
    if (!stop.aborted) running = names.map((name, i) => startWorker(name, env, i));
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  let turn: Promise<void> = Promise.resolve();
  for await (const { kind, paths } of watcher) {
    if (kind === "access" || !paths.some((path) => /\.(?:ts|sql|json)$/.test(path))) continue;
    clearTimeout(timer);
    timer = setTimeout(() => turn = turn.then(restart), QUIET_MS);
  }
  clearTimeout(timer);
  await turn;
  await Promise.all(running.map((worker) => worker.end()));
}

interface Running {
  /** Drains it, and waits for its end. */
  end(): Promise<void>;
}

function startWorker(name: string, env: Readonly<Record<string, string>>, index: number): Running {
  const child = workerCommand(name, [], env).spawn();
  const label = Deno.stdout.isTerminal() && !Deno.noColor
    ? `\u001b[${COLORS[index % COLORS.length]}m${name}\u001b[0m`
    : name;
  const ended = Promise.all([child.status, relay(child.stdout, label), relay(child.stderr, label)]).then(
    ([{ code }]) => {
      if (code !== 0) console.error(`${label} | ended with ${code}`);
    },
  );
  return {
    async end() {
      try {
        child.kill("SIGTERM");
      } catch {
        // It has ended.
      }
      await ended;
    },
  };
}

async function relay(stream: ReadableStream<Uint8Array<ArrayBuffer>>, label: string): Promise<void> {
  let rest = "";
  for await (const part of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) console.log(`${label} | ${line}`);
  }
  if (rest !== "") console.log(`${label} | ${rest}`);
}
