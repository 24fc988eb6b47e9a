/**
 * Removing a folder that strangers filled.
 *
 * @module
 */

/**
 * Removes a folder and all below it; symbolic links are removed, never followed. Folders that may not be written to (as
 * Go's module cache) are opened first.
 *
 * @throws What the file system says when it cannot be removed even so.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    await open(path);
    await Deno.remove(path, { recursive: true }).catch((again) => {
      if (!(again instanceof Deno.errors.NotFound)) throw again;
    });
  }
}

async function open(path: string): Promise<void> {
  const info = await Deno.lstat(path).catch(() => null);
  if (info === null || !info.isDirectory) return;
  await Deno.chmod(path, 0o700).catch(() => {});
  const below = await Array.fromAsync(Deno.readDir(path)).catch(() => []);
  for (const { name, isDirectory } of below) if (isDirectory) await open(`${path}/${name}`);
}
