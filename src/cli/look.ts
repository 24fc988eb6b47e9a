/**
 * Looking at an embedded store without making it.
 *
 * @module
 */
import { dirname } from "node:path";
import { SettingsError } from "../core/errors.ts";
import { SqliteDatabase } from "../db/sqlite.ts";

/**
 * Whether the store's file is not there yet.
 *
 * @throws {SettingsError} Nor is the folder it would be made in.
 */
export async function isAbsent(path: string): Promise<boolean> {
  if (path === ":memory:" || await exists(path)) return false;
  if (await exists(dirname(path))) return true;
  throw new SettingsError(
    `Cannot open the store sqlite:${path}: there is no folder ${dirname(path)}; make it, or name another file`,
  );
}

/** Opens a store to look at it. One that is absent is played by an empty one: opening it would make the file. */
export function openToLook(path: string, absent: boolean): SqliteDatabase {
  return new SqliteDatabase(absent ? ":memory:" : path);
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    // There, or not to be told: opening it says what is wrong.
    return true;
  }
}
