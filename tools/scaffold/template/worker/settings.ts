/**
 * The settings of this worker, beside those every worker has. They come from its own environment variables.
 *
 * @module
 */
import { readEnvDuration } from "laneway";

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
  const bounds = { standard: "30s", min: "100ms", max: "9m" };
  return { timeoutMs: readEnvDuration(env, "LANEWAY_HANDLE_SAMPLE_RECORD_TIMEOUT", bounds) };
}
