/**
 * Runs the worker: `deno run -A workers/sample-worker/main.ts --help`.
 *
 * @module
 */
import { runWorker } from "laneway";
import { definition } from "./worker.ts";

await runWorker(definition);
