/**
 * Where libfaketime is, which makes a process's clock wrong.
 *
 * @module
 */

const PLACES = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/faketime/libfaketime.so.1",
];

/** The library's path: as `FAKETIME_LIBRARY` says, or where Debian puts it. Null where it is not. */
export async function findFakeTime(): Promise<string | null> {
  for (const path of [Deno.env.get("FAKETIME_LIBRARY"), ...PLACES]) {
    if (path !== undefined && await Deno.stat(path).then(() => true, () => false)) return path;
  }
  return null;
}
