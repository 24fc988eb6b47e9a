/**
 * Writes a plan: all of it or nothing.
 *
 * @module
 */
import { dirname, join } from "node:path";
import { read } from "../project.ts";

/** One file of a plan. */
export interface Change {
  /** Relative to the project. */
  readonly path: string;
  /** What stands there; null when the file is to be made. */
  readonly before: string | null;
  readonly after: string;
  /** What is done, for people. */
  readonly what: string;
}

/**
 * Writes every change: first beside its place, then, in one go that no signal interrupts, into it. What fails takes back
 * what was done, new folders too. A machine that stops halfway leaves whole files only, and the next run makes the rest.
 *
 * @throws {Error} A file changed since the plan was made, or cannot be written; nothing is changed then.
 */
export function applyChanges(root: string, changes: readonly Change[]): void {
  const undo: (() => void)[] = [];
  try {
    const staged = changes.map((change) => stage(root, change, undo));
    for (const [i, change] of changes.entries()) {
      const path = join(root, change.path);
      if (read(path) !== change.before) {
        throw new Error(`Cannot write ${change.path}: it changed while this ran; run it again`);
      }
      Deno.renameSync(staged[i] as string, path);
      undo.push(() => change.before === null ? Deno.removeSync(path) : Deno.writeTextFileSync(path, change.before));
    }
  } catch (error) {
    for (const step of undo.reverse()) tryTo(step);
    throw error;
  }
}

/** Writes a change beside its place. Returns where. */
function stage(root: string, { path, after }: Change, undo: (() => void)[]): string {
  const target = join(root, path);
  makeFolder(dirname(target), undo);
  const beside = `${target}.new-${crypto.randomUUID().slice(0, 8)}`;
  undo.push(() => Deno.removeSync(beside));
  Deno.writeTextFileSync(beside, after, { createNew: true });
  return beside;
}

function makeFolder(folder: string, undo: (() => void)[]): void {
  if (isFolder(folder)) return;
  makeFolder(dirname(folder), undo);
  Deno.mkdirSync(folder);
  undo.push(() => Deno.removeSync(folder));
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

function tryTo(step: () => void): void {
  try {
    step();
  } catch {
    // What cannot be taken back is left: the error that is thrown says what went wrong.
  }
}
