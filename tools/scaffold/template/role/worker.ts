/**
 * The worker: what `main.ts` and the compiled binary run. Its kind, handler and record are the defining-worker's.
 *
 * @module
 */
import type { WorkerDefinition } from "laneway";
import { definition as base } from "../worker/worker.ts";

/** The worker. */
export const definition: WorkerDefinition = {
  ...base,
  name: "sample-worker",
  flagDefaults: { ...base.flagDefaults, lane: "sample-lane", kinds: "HANDLE_SAMPLE_RECORD" },
};
