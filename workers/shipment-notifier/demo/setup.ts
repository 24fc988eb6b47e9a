/**
 * Where the demo works, and by which settings.
 *
 * @module
 */
import {
  describeError,
  type Settings,
  SettingsError,
  type StoreChoice,
  UsageError,
  type WorkerCommandCall,
} from "../../../mod.ts";

const DEFAULT_FILE = ".demo/laneway.db";
const SQLITE_MAGIC = "SQLite format 3\0";

/**
 * The store: `--file`, else `--store`, else a file of the demo's own. A Postgres that only the environment names is left
 * alone: nobody asked for sample shipments there.
 *
 * @throws {UsageError} Both options, or `--fresh` without a file.
 */
export function demoStore(call: WorkerCommandCall): StoreChoice {
  const { options, settings } = call;
  if (typeof options.file === "string" && options.store !== undefined) {
    throw new UsageError("Cannot use --file with --store: both name the store, leave one out");
  }
  const asked = options.store !== undefined || settings.store?.engine === "sqlite" ? settings.store : null;
  const store: StoreChoice = typeof options.file === "string"
    ? { engine: "sqlite", path: options.file }
    : asked ?? { engine: "sqlite", path: DEFAULT_FILE };
  if (options.fresh === true && (store.engine !== "sqlite" || store.path === ":memory:")) {
    throw new UsageError("Cannot use --fresh as it removes a SQLite file: name one with --file, or leave it out");
  }
  return store;
}

/**
 * Makes the folder of the demo's own file, and removes a file that is to be fresh.
 *
 * @throws {SettingsError} What is there is no SQLite file, or cannot be removed.
 */
export async function prepareFile(store: StoreChoice, fresh: boolean): Promise<void> {
  if (store.engine !== "sqlite") return;
  try {
    if (store.path === DEFAULT_FILE) await Deno.mkdir(".demo", { recursive: true });
    if (fresh && await isSqliteFile(store.path)) {
      for (const part of ["-wal", "-shm", ""]) await Deno.remove(store.path + part).catch(ignoreAbsent);
    }
  } catch (cause) {
    if (cause instanceof SettingsError) throw cause;
    throw new SettingsError(
      `Cannot prepare the file ${store.path}: ${describeError(cause)}; run it in a folder that can be written, ` +
        "or name a file with --file",
      { cause },
    );
  }
}

async function isSqliteFile(path: string): Promise<boolean> {
  const head = new Uint8Array(SQLITE_MAGIC.length);
  let read: number | null;
  try {
    using file = await Deno.open(path);
    read = await file.read(head);
  } catch (error) {
    ignoreAbsent(error);
    return false;
  }
  // An empty file is what SQLite leaves where it was killed before its first write.
  if (read === null || new TextDecoder().decode(head) === SQLITE_MAGIC) return true;
  throw new SettingsError(`Cannot remove ${path} for --fresh: it is no SQLite file; name another with --file`);
}

function ignoreAbsent(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** The settings: the flags that were given, and timings short enough for somebody who looks on. */
export function demoSettings(call: WorkerCommandCall, store: StoreChoice): Settings {
  const { options, settings } = call;
  const unless = <T>(flag: string, given: T, own: T): T => options[flag] === undefined ? own : given;
  return {
    ...settings,
    store,
    lane: "default",
    kinds: null,
    httpPort: unless("httpPort", settings.httpPort, 0),
    leaseMs: unless("lease", settings.leaseMs, 5_000),
    pollMs: unless("poll", settings.pollMs, 200),
    heartbeatMs: unless("heartbeat", settings.heartbeatMs, 1_000),
    sweepMs: unless("sweep", settings.sweepMs, 1_000),
    drainGraceMs: unless("drainGrace", settings.drainGraceMs, 5_000),
    // Refusals are part of the show, and told by the demo itself.
    logLevel: unless("logLevel", settings.logLevel, "error"),
  };
}
