/**
 * The template worker's files, under a worker's own names.
 *
 * @module
 */
import { dirname, join, relative } from "node:path/posix";
import { type NewWorker, rename } from "./names.ts";

/** A file to be made. */
export interface NewFile {
  /** Relative to the project. */
  readonly path: string;
  readonly text: string;
}

/** Where the template's files stand. Listed, as a folder cannot be when this module is run over the network. */
const WORKER_FILES = [
  "README.md",
  "container.ts",
  "create_sample_records.ts",
  "effect.ts",
  "handler.ts",
  "kind.ts",
  "main.ts",
  "migrations/postgres/0001_sample_records.down.sql",
  "migrations/postgres/0001_sample_records.up.sql",
  "migrations/sqlite/0001_sample_records.down.sql",
  "migrations/sqlite/0001_sample_records.up.sql",
  "sample_records/chain.ts",
  "sample_records/manager.ts",
  "sample_records/storage/postgres.ts",
  "sample_records/storage/sqlite.ts",
  "sample_records/types.ts",
  "settings.ts",
  "tests/contract.ts",
  "tests/handler_test.ts",
  "tests/loop_test.ts",
  "tests/storage_test.ts",
  "tests/world.ts",
  "worker.ts",
] as const;

/** A second worker of a kind: another name, maybe another lane, for what another worker defines. */
const ROLE_FILES = ["README.md", "main.ts", "tests/worker_test.ts", "worker.ts"] as const;

/** The files of a worker with a kind of its own. @param laneway What it imports Laneway as; null is `mod.ts` by path. */
export function workerFiles(to: NewWorker, laneway: string | null): Promise<NewFile[]> {
  return Promise.all(WORKER_FILES.map((path) => fileOf(`worker/${path}`, path, { to, laneway, of: null })));
}

/** The files of a worker for the kind of the worker `of`. */
export function roleFiles(to: NewWorker, of: string, laneway: string | null): Promise<NewFile[]> {
  return Promise.all(ROLE_FILES.map((path) => fileOf(`role/${path}`, path, { to, laneway, of })));
}

async function fileOf(
  template: string,
  path: string,
  { to, laneway, of }: { readonly to: NewWorker; readonly laneway: string | null; readonly of: string | null },
): Promise<NewFile> {
  const target = join("workers", to.worker, rename(path, to));
  const text = rename(await read(template), to)
    .replaceAll("defining-worker", of ?? "")
    .replaceAll('"../worker/worker.ts"', `"../${of}/worker.ts"`);
  const specifier = laneway ?? relative(dirname(target), "mod.ts");
  return { path: target, text: target.endsWith(".ts") ? text.replaceAll('"laneway"', `"${specifier}"`) : text };
}

async function read(path: string): Promise<string> {
  const url = new URL(`./template/${path}`, import.meta.url);
  if (url.protocol === "file:") return await Deno.readTextFile(url);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`Cannot read the template ${url}: ${response.status}`);
  return await response.text();
}
