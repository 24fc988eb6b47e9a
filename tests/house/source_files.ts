/**
 * The tree's own source files, for the house tests.
 *
 * @module
 */
import { fileURLToPath } from "node:url";

/** The repository's folder, with a trailing slash. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** The same as modules are named by. */
export const ROOT_URL: string = new URL("../../", import.meta.url).href;

/** One source file. */
export interface SourceFile {
  /** Relative to the repository: `src/work/rules.ts`. */
  readonly path: string;
  readonly text: string;
}

const SKIPPED = new Set([".git", "dist", "node_modules", ".demo"]);

/** Every file under `folder` whose name ends in one of `endings`, sorted; none where the folder is not there. */
export async function readSources(folder: string, endings: readonly string[] = [".ts"]): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  let entries: Deno.DirEntry[];
  try {
    entries = await Array.fromAsync(Deno.readDir(ROOT + folder));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
  for (const entry of entries) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory && !SKIPPED.has(entry.name)) files.push(...await readSources(path, endings));
    else if (entry.isFile && endings.some((ending) => entry.name.endsWith(ending))) {
      files.push({ path, text: await Deno.readTextFile(ROOT + path) });
    }
  }
  return files.sort((a, b) => a.path < b.path ? -1 : 1);
}

/** Source files that are no tests. */
export function production(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(({ path }) => !path.endsWith("_test.ts"));
}
