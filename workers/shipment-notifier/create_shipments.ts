/**
 * `create-shipments`: creates shipments from NDJSON, each with the work item that notifies of it.
 *
 * @module
 */
import {
  describeError,
  type Parts,
  SettingsError,
  UsageError,
  versionOf,
  type WorkerCommand,
  type WorkerCommandCall,
} from "../../mod.ts";
import { shipmentManager } from "./container.ts";
import { importShipments, openInput, type ShipmentLine } from "./import_shipments.ts";

/** The command. */
export const createShipmentsCommand: WorkerCommand = {
  name: "create-shipments",
  summary: "Creates shipments from NDJSON, each with the item that notifies of it.",
  options: [
    { flags: "--file <path>", help: "The lines to read; - is standard input.", default: "-" },
    { flags: "--create-orgs", help: "Creates orgs that do not exist yet, named by their lines' orgName." },
  ],
  examples: [
    "shipment-notifier create-shipments --file shipments.ndjson --store sqlite:./work.db",
    `echo '{"orgId":"…","id":"…","carrier":"DHL","trackingNumber":"…","recipientName":"Ada","destination":"Łódź, PL",` +
    `"webhookUrl":"https://…"}' | shipment-notifier create-shipments`,
  ],
  run: createShipments,
};

async function createShipments(call: WorkerCommandCall): Promise<number> {
  const { settings, options } = call;
  if (settings.store?.engine === "sqlite" && settings.store.path === ":memory:") {
    throw new UsageError("Cannot create into --store memory: it ends with this command; use sqlite:PATH or Postgres");
  }
  const file = String(options.file ?? "-");
  const bytes = await openInput(file).catch((cause) => {
    const why = cause instanceof Deno.errors.NotFound ? "there is no such file" : describeError(cause);
    throw new SettingsError(`Cannot read --file ${file}: ${why}`, { cause });
  });
  // What it does is told on standard output; its log is for what goes wrong.
  const open = await call.open(options.logLevel === undefined ? { logLevel: "warn" } : {});
  try {
    return await importAll(call, open.parts, bytes);
  } finally {
    await open.close();
  }
}

async function importAll(call: WorkerCommandCall, parts: Parts, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  const counts = { created: 0, existing: 0, refused: 0 };
  const outcomes = importShipments(bytes, {
    shipments: shipmentManager(parts.store, parts.managers.outbox),
    contextOf: contexts(call, parts),
    signal: call.signal,
  });
  for await (const outcome of outcomes) {
    if (outcome.refused !== null) {
      counts.refused++;
      call.print(`line ${outcome.line}: refused: ${outcome.refused}`);
    } else if (outcome.created.outcome === "INSERTED") counts.created++;
    else counts.existing++;
  }
  call.print(`${counts.created} created, ${counts.existing} already there, ${counts.refused} refused`);
  return counts.refused > 0 || call.signal.aborted ? 1 : 0;
}

function contexts(call: WorkerCommandCall, { managers: { tenancy } }: Parts) {
  const rctx = tenancy.requestContext({ type: "CLI", version: versionOf(call.definition) });
  return async ({ orgId, orgName }: ShipmentLine) => {
    if (call.options.createOrgs === true) await tenancy.createOrg(rctx, { id: orgId, name: orgName ?? orgId });
    return await tenancy.serviceContext(rctx, orgId);
  };
}
