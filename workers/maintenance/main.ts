/**
 * Runs the maintenance worker: `deno run -A workers/maintenance/main.ts --help`.
 *
 * @module
 */
import { runWorker } from "../../mod.ts";
import { definition } from "./worker.ts";

await runWorker(definition);
