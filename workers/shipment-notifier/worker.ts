/**
 * The shipment notifier: what `main.ts` and the compiled binary run.
 *
 * @module
 */
import type { WorkerDefinition } from "../../mod.ts";
import { createShipmentsCommand } from "./create_shipments.ts";
import { build } from "./container.ts";
import { demoCommand } from "./demo/command.ts";
import { NOTIFY_SHIPMENT } from "./kind.ts";
import { ENV, readNotifierSettings } from "./settings.ts";
import { SHIPMENTS_CHAIN } from "./shipments/chain.ts";

/** The worker. */
export const definition: WorkerDefinition = {
  name: "shipment-notifier",
  release: "0.1.0",
  kinds: [NOTIFY_SHIPMENT],
  chains: [SHIPMENTS_CHAIN],
  env: ENV,
  checkEnv: (env) => void readNotifierSettings(env),
  build: (parts) => build(parts),
  commands: [demoCommand, createShipmentsCommand],
};
