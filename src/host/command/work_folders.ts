/**
 * Work directories: one of its own for each run, below one of its own for each runner, and what becomes of those that a
 * killed runner left.
 *
 * @module
 */
import { describeError } from "../../core/describe_error.ts";
import { SettingsError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { CommandFailure } from "./failure.ts";
import { killMarked } from "./processes.ts";
import { removeTree } from "./remove_tree.ts";
import { slug } from "./safe_path.ts";

/** A run's folders. All of it is removed with it. */
export interface RunFolder {
  /** Holds the rest, mode 0700. */
  readonly path: string;
  /** Where the command runs, unless it runs in a clone below. */
  readonly work: string;
  /** Its TMPDIR, and its HOME unless the config names one. */
  readonly temporary: string;
  readonly payloadFile: string;
  readonly promptFile: string;
  /** Marks its processes: `RUNNER/RUN`. */
  readonly mark: string;
}

/** How work directories are kept. */
export interface WorkSettings {
  /** Absolute; made with mode 0700 when it is not there. */
  readonly base: string;
  /** Folders of failed runs kept at most, for kinds that keep them. */
  readonly keepFailed: number;
}

const RUNNER = /^runner-[\w-]+$/;
const NEW = ".new-";
const OWNER_FILE = "owner.pid";
// A runner that is being made has no lock for a moment; what is older than this was left.
const MAKING_MS = 60_000;

/**
 * The folder of one runner process. It holds a pid file that is locked while the process lives: the lock ends with the
 * process however it ends, and unlike a pid it never comes to name another.
 */
export class WorkFolders {
  readonly #base: string;
  readonly #keepFailed: number;
  readonly #logger: Logger;
  readonly #runner: string;
  readonly #lock: Deno.FsFile;

  private constructor(base: string, runner: string, options: WorkSettings & { logger: Logger; lock: Deno.FsFile }) {
    this.#base = base;
    this.#runner = runner;
    this.#keepFailed = options.keepFailed;
    this.#logger = options.logger;
    this.#lock = options.lock;
  }

  /**
   * Makes this process's folder, and clears what runners left that are no more.
   *
   * @throws {SettingsError} The base cannot be made or written, or others could write to it.
   */
  static async open(settings: WorkSettings, logger: Logger): Promise<WorkFolders> {
    const base = await openBase(settings.base);
    const runner = `runner-${Deno.pid}-${nonce()}`;
    const making = `${base}/${NEW}${runner}`;
    await Deno.mkdir(making, { mode: 0o700 });
    const lock = await Deno.open(`${making}/${OWNER_FILE}`, { read: true, write: true, createNew: true, mode: 0o600 });
    await lock.lock(true);
    await lock.write(new TextEncoder().encode(`${Deno.pid}\n`));
    // Whoever sees it by its name sees it locked.
    await Deno.rename(making, `${base}/${runner}`);
    const folders = new WorkFolders(base, runner, { ...settings, logger, lock });
    await folders.clearLeftovers();
    return folders;
  }

  /** Makes a run's folders. @throws {CommandFailure} `workdir`. */
  async make(name: string): Promise<RunFolder> {
    const safe = slug(name);
    const run = `${safe === "" ? "run" : safe}.${nonce()}`;
    const path = `${this.#base}/${this.#runner}/${run}`;
    try {
      await Deno.mkdir(path, { mode: 0o700 });
      await Deno.mkdir(`${path}/work`, { mode: 0o700 });
      await Deno.mkdir(`${path}/tmp`, { mode: 0o700 });
    } catch (cause) {
      throw new CommandFailure("workdir", "retry", `cannot make a work directory: ${describeError(cause)}`, { cause });
    }
    return {
      path,
      work: `${path}/work`,
      temporary: `${path}/tmp`,
      payloadFile: `${path}/payload.json`,
      promptFile: `${path}/prompt`,
      mark: `${this.#runner}/${run}`,
    };
  }

  /** Removes a run's folders, or keeps them aside for whoever looks into the failure. Never fails. */
  async end(folder: RunFolder, keep: boolean): Promise<void> {
    try {
      if (!keep || this.#keepFailed === 0) return await removeTree(folder.path);
      const kept = `${this.#base}/kept`;
      await Deno.mkdir(kept, { recursive: true, mode: 0o700 });
      const name = folder.path.split("/").at(-1) ?? "run";
      // Sorts by time.
      await Deno.rename(folder.path, `${kept}/${new Date().toISOString().replace(/[:.]/g, "")}-${name}`);
      const all = (await Array.fromAsync(Deno.readDir(kept))).map(({ name }) => name).sort();
      for (const old of all.slice(0, Math.max(all.length - this.#keepFailed, 0))) await removeTree(`${kept}/${old}`);
    } catch (error) {
      this.#logger.warn("host.work_folder_left", { path: folder.path, error: describeError(error) });
    }
  }

  /**
   * Ends the processes and removes the folders of runners that are no more. Safe at any time and beside others that do
   * the same; a runner that lives is left alone.
   *
   * @returns How many runners it cleared.
   */
  async clearLeftovers(): Promise<number> {
    let cleared = 0;
    for await (const { name, isDirectory } of Deno.readDir(this.#base)) {
      const runner = name.startsWith(NEW) ? name.slice(NEW.length) : name;
      if (!isDirectory || !RUNNER.test(runner) || runner === this.#runner) continue;
      try {
        if (await this.#clear(name, runner)) cleared++;
      } catch (error) {
        this.#logger.warn("host.leftovers_not_cleared", { path: `${this.#base}/${name}`, error: describeError(error) });
      }
    }
    return cleared;
  }

  /** Removes this process's folder and lets go of its lock. Nothing runs any more. */
  async close(): Promise<void> {
    await removeTree(`${this.#base}/${this.#runner}`).catch((error) => {
      this.#logger.warn("host.work_folder_left", { path: this.#runner, error: describeError(error) });
    });
    this.#lock.close();
  }

  async #clear(name: string, runner: string): Promise<boolean> {
    const path = `${this.#base}/${name}`;
    const lock = await openOwner(path);
    if (lock === "gone") return false;
    try {
      if (lock !== null && !await lock.tryLock(true)) return false;
      if (name !== runner && !await isOld(path)) return false;
      // First what runs there: it would go on writing.
      const ended = await killMarked(`${runner}/`);
      await removeTree(path);
      this.#logger.info("host.leftovers_cleared", { runner, processes: ended });
      return true;
    } finally {
      lock?.close();
    }
  }
}

/** The pid file of a runner's folder; null when it has none any more: somebody was removing it. */
async function openOwner(path: string): Promise<Deno.FsFile | null | "gone"> {
  try {
    return await Deno.open(`${path}/${OWNER_FILE}`, { read: true, write: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return await Deno.lstat(path).then(() => null, () => "gone" as const);
  }
}

async function isOld(path: string): Promise<boolean> {
  const { mtime } = await Deno.lstat(path);
  return mtime !== null && Date.now() - mtime.getTime() > MAKING_MS;
}

/** Why the folders of runs cannot lie in a folder, with the fix; null when they can, or when it is still to be made. */
export async function whyNoBase(base: string): Promise<string | null> {
  const info = await Deno.stat(base).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
  if (info === null) return null;
  const { mode, uid, isDirectory } = info;
  if (!isDirectory) return "it is no folder; name another";
  const ours = uid === null || Deno.build.os === "windows" || uid === Deno.uid();
  if (ours && (mode === null || (mode & 0o022) === 0)) return null;
  return "others than the runner's user could write to it; chown it to that user and chmod 700 it, or name a folder that " +
    "does not exist yet";
}

async function openBase(base: string): Promise<string> {
  try {
    await Deno.mkdir(base, { recursive: true, mode: 0o700 });
    const real = await Deno.realPath(base);
    const why = await whyNoBase(real);
    if (why !== null) throw new SettingsError(`Cannot use work.base ${base}: ${why}`);
    return real;
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    throw new SettingsError(`Cannot use work.base ${base}: ${describeError(error)}`, { cause: error });
  }
}

function nonce(): string {
  return crypto.randomUUID().slice(0, 8);
}
