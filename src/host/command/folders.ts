/**
 * The config's folders: files that runs read, maybe refreshed from git before.
 *
 * @module
 */
import { CommandFailure } from "./failure.ts";
import { type GitRun, refresh } from "./git.ts";
import { realPathUnder } from "./safe_path.ts";

/** A folder of files on the host. */
export interface FolderConfig {
  /** Absolute. */
  readonly path: string;
  /** Brought up to date before each run that reads a prompt from it; null: taken as it is. */
  readonly refresh: { readonly ref: string } | null;
}

/** A prompt that was found. */
export interface PromptFile {
  readonly path: string;
  readonly text: string;
}

const LOCK_POLL_MS = 50;

/** Reads files of the folders; of one folder one refresh at a time, and nothing is read while it lasts. */
export class Folders {
  readonly #configs: Readonly<Record<string, FolderConfig>>;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(configs: Readonly<Record<string, FolderConfig>>) {
    this.#configs = configs;
  }

  /** The real path of a file, or null when there is none. @throws {CommandFailure} `invalid_item`: it leads out. */
  async existing(folder: string, file: string): Promise<string | null> {
    return await realPathUnder(this.#config(folder).path, file);
  }

  /**
   * The first of `files` that exists, read after a refresh.
   *
   * @throws {CommandFailure} `prompt`: the refresh failed, or there is none of them. `invalid_item`: one leads out.
   */
  async read(folder: string, files: readonly string[], git: GitRun): Promise<PromptFile> {
    const before = this.#turns.get(folder) ?? Promise.resolve();
    const mine = atLatest(before, git.stop.soft).then(() => this.#read(folder, files, git));
    // A run that was ended while it waited leaves the turn to those it waited for.
    const turn = Promise.all([before, mine.catch(() => {})]);
    this.#turns.set(folder, turn);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(folder) === turn) this.#turns.delete(folder);
    }
  }

  async #read(folder: string, files: readonly string[], git: GitRun): Promise<PromptFile> {
    const config = this.#config(folder);
    if (git.stop.soft.aborted) throw new CommandFailure("prompt", "retry", `was ended: ${git.stop.reason}`);
    const lock = config.refresh === null ? null : await lockFolder(config.path, git);
    try {
      if (config.refresh !== null) await refresh(config.path, config.refresh.ref, git);
      for (const file of files) {
        const path = await realPathUnder(config.path, file);
        if (path !== null) return { path, text: await Deno.readTextFile(path) };
      }
    } finally {
      lock?.close();
    }
    throw new CommandFailure("prompt", "retry", `folder ${folder} (${config.path}) has no ${files.join(" and no ")}`);
  }

  #config(folder: string): FolderConfig {
    const config = this.#configs[folder];
    if (config === undefined) throw new CommandFailure("prompt", "retry", `the config has no folder ${folder}`);
    return config;
  }
}

/** Resolves when `wait` has, or when `stop` aborts: another run's fetch may hang for as long as that one may run. */
async function atLatest(wait: Promise<unknown>, stop: AbortSignal): Promise<void> {
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  const onAbort = () => resolve();
  stop.addEventListener("abort", onAbort, { once: true });
  if (stop.aborted) resolve();
  await Promise.race([wait, stopped]);
  stop.removeEventListener("abort", onAbort);
}

/** Another runner of this host may refresh the same checkout: git itself would fail on its own lock. */
async function lockFolder(path: string, { stop, clock }: GitRun): Promise<Deno.FsFile> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(`${path}/.git/laneway-refresh.lock`, { write: true, create: true, mode: 0o600 });
  } catch (cause) {
    throw new CommandFailure("prompt", "retry", `cannot refresh ${path}: it is no git checkout of the runner's user`, {
      cause,
    });
  }
  while (!await file.tryLock(true)) {
    if (stop.soft.aborted) {
      file.close();
      throw new CommandFailure("prompt", "retry", `was ended while another runner refreshed ${path}`);
    }
    await clock.sleep(LOCK_POLL_MS, stop.soft);
  }
  return file;
}
