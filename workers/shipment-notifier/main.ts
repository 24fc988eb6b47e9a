/**
 * Runs the shipment notifier: `deno run -A workers/shipment-notifier/main.ts --help`.
 *
 * @module
 */
import { runWorker } from "../../mod.ts";
import { definition } from "./worker.ts";

await runWorker(definition);
