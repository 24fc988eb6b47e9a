/**
 * Where programs are.
 *
 * @module
 */

/** Where tools that the runner itself uses are looked for, whatever a config's PATH says. */
export const SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin";

/** A program's absolute path by a PATH, or null when none of its folders has it. A name with a slash is a path. */
export async function findProgram(name: string, path: string): Promise<string | null> {
  if (name.includes("/")) return name.startsWith("/") && await isProgram(name) ? name : null;
  for (const folder of path.split(":")) {
    // An empty entry is the working directory, which an item's clone fills: not looked into.
    if (folder.startsWith("/") && await isProgram(`${folder}/${name}`)) return `${folder}/${name}`;
  }
  return null;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    const { isFile, mode } = await Deno.stat(path);
    return isFile && (mode === null || (mode & 0o111) !== 0);
  } catch {
    return false;
  }
}
