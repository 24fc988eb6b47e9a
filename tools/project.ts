/**
 * The project that tools work on: this repository, or one that imports Laneway.
 *
 * @module
 */
import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL as toFileUrl } from "node:url";
import { parse } from "jsonc-parser";

/** Laneway's own folder. */
export const LANEWAY = new URL("../", import.meta.url);

/** Where a file of Laneway's own stands: a path, or its URL where it is run over the network. */
export function ownFile(file: string): string {
  const url = new URL(file, LANEWAY);
  return url.protocol === "file:" ? fileURLToPath(url) : url.href;
}

/** A project. */
export interface Project {
  readonly root: string;
  /** What its workers import Laneway as; null in Laneway's own repository, where it is `mod.ts`. */
  readonly laneway: string | null;
  /** Its `deno.json`; null when it is to be made. */
  readonly manifest: string | null;
  /** Its workers. */
  readonly workers: readonly ExistingWorker[];
}

/** A worker that stands. */
export interface ExistingWorker {
  readonly name: string;
  readonly kinds: readonly string[];
  /** Names of its own migration chains. */
  readonly chains: readonly string[];
  /** Its release, as its definition says. */
  readonly release: string;
  /** Its own environment variables. */
  readonly env: readonly string[];
  /** Whether it starts other programs. */
  readonly runsPrograms: boolean;
  /** Whether it takes its items from elsewhere than a store of ours. */
  readonly opens: boolean;
  /** The lane it serves unless it is told another one. */
  readonly lane: string;
}

/** Run by a process of the project's own, under its own import map: a worker is what its module says, not its text. */
function lookScript(root: string, names: readonly string[]): string {
  const modules = names.map((name) => [name, toFileUrl(join(root, "workers", name, "worker.ts")).href]);
  return `
    for (const [name, url] of ${JSON.stringify(modules)}) {
      const { definition } = await import(url);
      const { kinds = [], chains = [], env = [], release, flagDefaults: { lane = "default" } = {} } = definition;
      const names = (all) => all.map((one) => one.name);
      const flags = { runsPrograms: definition.runsPrograms ?? false, opens: definition.open !== undefined };
      console.log(JSON.stringify({ name, kinds: names(kinds), chains: names(chains), env, release, lane, ...flags }));
    }
    Deno.exit(0);`;
}

/**
 * Reads the project in a folder.
 *
 * @param only Of its workers this one alone. Default all.
 * @throws {Error} One of its workers, or its `deno.json`, cannot be read.
 */
export async function readProject(folder: string, only?: string): Promise<Project> {
  const root = resolve(folder);
  const manifest = read(join(root, "deno.json"));
  const house = LANEWAY.protocol === "file:" ? resolve(fileURLToPath(LANEWAY)) : null;
  const inside = root === house;
  if (!inside && house !== null && root.startsWith(`${house}/`)) {
    throw new Error(
      `Cannot work in ${root}: it is a folder of Laneway's own; go to ${house}, or to a project of yours`,
    );
  }
  if (manifest === null && read(join(root, "deno.jsonc")) !== null) {
    throw new Error(`Cannot work in ${root}: its settings are in deno.jsonc; name that file deno.json`);
  }
  if (manifest !== null && (parse(manifest) === null || typeof parse(manifest) !== "object")) {
    throw new Error(`Cannot read ${join(root, "deno.json")}: it is no JSON object`);
  }
  return { root, laneway: inside ? null : "laneway", manifest, workers: await readWorkers(root, only) };
}

async function readWorkers(root: string, only?: string): Promise<ExistingWorker[]> {
  const names: string[] = [];
  try {
    for await (const { name, isDirectory } of Deno.readDir(join(root, "workers"))) {
      if (name !== (only ?? name)) continue;
      if (isDirectory && read(join(root, "workers", name, "worker.ts")) !== null) names.push(name);
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  if (names.length === 0) return [];
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "-q", "--no-lock", "--config", join(root, "deno.json"), lookScript(root, names.sort())],
    cwd: root,
    stdin: "null",
  }).output();
  const [said, trouble] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
  if (!success) throw new Error(`Cannot read the project's workers: ${trouble}`);
  return (said ?? "").split("\n").map((line) => JSON.parse(line) as ExistingWorker);
}

/** Where Laneway stands, as a project's `deno.json` names it: by a relative path, or by its URL. */
export function lanewayFrom(root: string, file: string): string {
  const url = new URL(file, LANEWAY);
  if (url.protocol !== "file:") return url.href;
  const path = relative(root, fileURLToPath(url));
  return path.startsWith(".") ? path : `./${path}`;
}

/** A file's text; null when it is not there. */
export function read(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
