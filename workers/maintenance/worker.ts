/**
 * The maintenance worker: what `main.ts` and the compiled binary run.
 *
 * @module
 */
import type { WorkerDefinition } from "../../mod.ts";
import { build } from "./container.ts";
import { NOOP } from "./kind.ts";

/** The worker. */
export const definition: WorkerDefinition = {
  name: "maintenance",
  release: "0.1.0",
  kinds: [NOOP],
  build,
};
