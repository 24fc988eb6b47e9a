/**
 * Files that hold a secret: a database URL, a key. Only their owner may read them.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import { SettingsError } from "../core/errors.ts";
import { UsageError } from "./usage_error.ts";

/** A file that holds a secret. */
export interface SecretFile {
  /** The permission bits, null where the platform has none. */
  readonly mode: number | null;
  /** What it holds. */
  readonly text: string;
}

// An orchestrator mounts secrets here and sets their modes itself; only the container sees them.
const MOUNTED_SECRETS = "/run/secrets/";

/**
 * Reads the secret in the file that a `…_FILE` variable names, without the white space around it. No message holds it.
 *
 * @param label The variable, as errors name it.
 * @param readFile Default the real file system.
 * @throws {UsageError} The file is empty, or its mode lets others than its owner at it and it is not under `/run/secrets/`.
 * @throws {SettingsError} It cannot be read.
 */
export function readSecretFile(path: string, label: string, readFile: (path: string) => SecretFile = fromDisk): string {
  let file: SecretFile;
  try {
    file = readFile(path);
  } catch (cause) {
    throw new SettingsError(`Cannot read ${path} named by ${label}: ${whyUnreadable(cause)}`, { cause });
  }
  const mounted = path.startsWith(MOUNTED_SECRETS) && !path.includes("..");
  if (file.mode !== null && (file.mode & 0o077) !== 0 && !mounted) {
    const mode = (file.mode & 0o777).toString(8).padStart(4, "0");
    throw new UsageError(
      `Cannot use ${path} named by ${label}: its mode ${mode} lets others than its owner at it; run chmod 600 ${path}`,
    );
  }
  const text = file.text.trim();
  if (text === "") throw new UsageError(`Cannot use ${path} named by ${label}: it is empty; write the value into it`);
  return text;
}

function whyUnreadable(cause: unknown): string {
  if (cause instanceof Deno.errors.NotFound) return "there is no such file";
  if (cause instanceof Deno.errors.IsADirectory) return "it is a folder; name the file in it";
  if (cause instanceof Deno.errors.PermissionDenied) {
    return "this process's user may not read it; make that user its owner, with mode 0600";
  }
  if (cause instanceof Deno.errors.NotCapable) return `this build may not read it: put it under ${MOUNTED_SECRETS}`;
  return describeError(cause);
}

function fromDisk(path: string): SecretFile {
  return { mode: Deno.statSync(path).mode, text: Deno.readTextFileSync(path) };
}
