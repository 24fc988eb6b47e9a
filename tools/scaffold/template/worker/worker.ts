/**
 * The worker: what `main.ts` and the compiled binary run.
 *
 * @module
 */
import type { WorkerDefinition } from "laneway";
import { build } from "./container.ts";
import { createSampleRecordsCommand } from "./create_sample_records.ts";
import { HANDLE_SAMPLE_RECORD } from "./kind.ts";
import { SAMPLE_RECORDS_CHAIN } from "./sample_records/chain.ts";
import { ENV, readSettings } from "./settings.ts";

/** The worker. */
export const definition: WorkerDefinition = {
  name: "sample-worker",
  release: "0.1.0",
  kinds: [HANDLE_SAMPLE_RECORD],
  chains: [SAMPLE_RECORDS_CHAIN],
  env: ENV,
  flagDefaults: { lane: "sample-lane" },
  checkEnv: (env) => void readSettings(env),
  build: (parts) => build(parts),
  commands: [createSampleRecordsCommand],
};
