/**
 * Runs the host runner: `deno run -A workers/host-runner/main.ts --help`.
 *
 * @module
 */
import { runWorker } from "../../mod.ts";
import { definition } from "./worker.ts";

await runWorker(definition);
