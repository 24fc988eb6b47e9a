/**
 * Paths that stay where they belong, whatever an item names.
 *
 * @module
 */
import { invalidItem } from "./failure.ts";

/** A file under one of the config's folders. */
export interface PathUnder {
  /** The folder's name in the config. */
  readonly folder: string;
  /** Below it, `/` between segments. */
  readonly file: string;
}

const LONGEST_SLUG = 80;
const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._][A-Za-z0-9._-]*$/;

/** A name safe as one path segment: letters, digits, dot, dash, underscore, at most 80, not beginning with dot or dash. */
export function slug(text: string): string {
  const kept = text.normalize("NFKD").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/\.{2,}/g, ".").replace(/^[.-]+/, "")
    .slice(0, LONGEST_SLUG);
  return kept.replace(/[.-]+$/, "");
}

/** Whether a value is a plain relative path, `org/name`: no empty segment, none of dots alone, none with a leading dash. */
export function isPlainPath(value: string): boolean {
  return value.length <= 500 && value.split("/").every((segment) => SEGMENT.test(segment));
}

/** A value that may be part of a path below a folder. @throws {CommandFailure} `invalid_item`. */
export function plainPath(value: string, label: string): string {
  if (isPlainPath(value)) return value;
  throw invalidItem(`${label} ${JSON.stringify(value.slice(0, 100))} is no plain path below its folder`);
}

/**
 * The real path of `file` under `base`; null when there is no such file.
 *
 * @throws {CommandFailure} `invalid_item`: it leads out of the folder, by its name or by a symbolic link.
 */
export async function realPathUnder(base: string, file: string): Promise<string | null> {
  const label = `path ${JSON.stringify(file.slice(0, 200))}`;
  if (file.includes("\u0000") || file.startsWith("/") || file.split("/").includes("..")) {
    throw invalidItem(`${label} leads out of its folder`);
  }
  try {
    const root = await Deno.realPath(base);
    const real = await Deno.realPath(`${root}/${file}`);
    if (real !== root && !real.startsWith(root.endsWith("/") ? root : `${root}/`)) {
      throw invalidItem(`${label} leads out of its folder by a symbolic link`);
    }
    return (await Deno.stat(real)).isFile ? real : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
    throw error;
  }
}
