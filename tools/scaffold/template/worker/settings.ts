/**
 * The settings of this worker, beside those every worker has. They come from its own environment variables.
 *
 * @module
 */
import { parseDuration, UsageError } from "laneway";

/** Variables that the compiled binary may read. */
export const ENV: readonly string[] = ["LANEWAY_HANDLE_SAMPLE_RECORD_TIMEOUT"];

/** What this worker is told. */
export interface SampleWorkerSettings {
  /** The longest one effect may take. Default 30 s, 100 ms to 9 min. */
  readonly timeoutMs: number;
}

/**
 * Reads the settings.
 *
 * @throws {UsageError} A variable is malformed or out of range.
 */
export function readSettings(env: Readonly<Record<string, string>>): SampleWorkerSettings {
  return { timeoutMs: readDuration(env, "LANEWAY_HANDLE_SAMPLE_RECORD_TIMEOUT", ["30s", "100ms", "9m"]) };
}

function readDuration(
  env: Readonly<Record<string, string>>,
  name: string,
  [standard, min, max]: readonly [string, string, string],
): number {
  const text = env[name] || standard;
  const ms = parseDuration(text, name);
  if (ms >= parseDuration(min, name) && ms <= parseDuration(max, name)) return ms;
  throw new UsageError(`Cannot use ${name} ${text}: it must be from ${min} to ${max}`);
}
