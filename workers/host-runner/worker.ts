/**
 * The host runner: what `main.ts` and the compiled binary run.
 *
 * @module
 */
import type { WorkerDefinition } from "../../mod.ts";
import { build, checks, configuredKinds, open } from "./container.ts";
import { ENV, readHostSettings } from "./settings.ts";

/** The worker. */
export const definition: WorkerDefinition = {
  name: "host-runner",
  release: "0.1.0",
  kinds: [],
  configuredKinds,
  env: ENV,
  // Store and retention are for workers with a database.
  sections: ["Work", "Timing", "HTTP", "Logs", "Traces"],
  // Over the Internet, for commands that run for minutes: it asks seldom, renews seldom, and lets what runs finish.
  flagDefaults: { pollMs: "30s", leaseMs: "2m", heartbeatMs: "30s", drainGraceMs: "60s", claimAheadMs: "0s" },
  runsPrograms: true,
  checkEnv: (env) => void readHostSettings(env),
  open,
  checks,
  build,
};
