/**
 * `demo`: the whole worker on one machine, with shipments to notify of and a receiver to notify.
 *
 * Nothing in it is a shortcut: shipments are created as any producer creates them, and pass outbox, relay, queue, claim,
 * handler and webhook. Run again on the same file it goes on where it stopped, and notifies nobody twice.
 *
 * @module
 */
import {
  describeError,
  type Parts,
  type RunningWorker,
  SettingsError,
  systemClock,
  type WorkerCommand,
  type WorkerCommandCall,
  type WorkerParts,
} from "../../../mod.ts";
import sample from "../sample.ndjson" with { type: "text" };
import { build, shipmentManager } from "../container.ts";
import { importShipments, type LineOutcome, openInput } from "../import_shipments.ts";
import { notifyShipmentKind } from "../kind.ts";
import { newWebhookSecret } from "../settings.ts";
import type { Shipment } from "../shipments/types.ts";
import { demoContexts } from "./orgs.ts";
import { noCounts, Progress, standardOutput, summary } from "./progress.ts";
import { type Delivery, type Receiver, startReceiver } from "./receiver.ts";
import { demoSettings, demoStore, prepareFile } from "./setup.ts";
import { Tracker } from "./tracker.ts";

/** The command. */
export const demoCommand: WorkerCommand = {
  name: "demo",
  summary: "Notifies of some 220 sample shipments, on an embedded store, with a receiver of its own.",
  options: [
    { flags: "--file <path>", help: "The SQLite file to work on, as --store sqlite:PATH. Default .demo/laneway.db." },
    { flags: "--input <path>", help: "Shipments as NDJSON, - for standard input. Default the sample of this worker." },
    { flags: "--fresh", help: "Removes the file first." },
  ],
  examples: ["shipment-notifier demo", "shipment-notifier demo --fresh --input my-shipments.ndjson"],
  run: runDemo,
};

// Short, so that the retries of a demo can be waited for.
const RETRY = { baseMs: 400, capMs: 1_500 };
// Its receiver is unwell at random, never down: a run of bad luck must not make anybody wait.
const PATIENT = { downAfter: 50 };
const LOOK_MS = 50;
const LOOK_AT_ALL_MS = 1_000;
// What a program ended by SIGINT tells its shell.
const INTERRUPTED = 130;

interface Demo {
  readonly call: WorkerCommandCall;
  readonly progress: Progress;
  readonly counts: ReturnType<typeof noCounts>;
  /** Aborts at Ctrl-C, or when all is done. */
  readonly stop: AbortController;
  readonly input: AsyncIterable<Uint8Array>;
  tracker: Tracker | null;
}

async function runDemo(call: WorkerCommandCall): Promise<number> {
  const startedMs = performance.now();
  const store = demoStore(call);
  const input = await demoInput(call.options.input);
  await prepareFile(store, call.options.fresh === true);
  const counts = noCounts();
  const progress = new Progress(standardOutput(), counts);
  const demo: Demo = { call, progress, counts, stop: new AbortController(), input, tracker: null };
  const interrupt = () => demo.stop.abort();
  call.signal.addEventListener("abort", interrupt, { once: true });
  if (call.signal.aborted) interrupt();
  try {
    await workWithReceiver(demo, store);
  } finally {
    call.signal.removeEventListener("abort", interrupt);
    progress.end();
  }
  progress.line(summary(counts, performance.now() - startedMs));
  if (!call.signal.aborted) return 0;
  progress.line("interrupted: run it again to go on where it stopped");
  return INTERRUPTED;
}

async function demoInput(path: unknown): Promise<AsyncIterable<Uint8Array>> {
  if (typeof path !== "string") return new Blob([sample]).stream();
  return await openInput(path).catch((cause) => {
    const why = cause instanceof Deno.errors.NotFound ? "there is no such file" : describeError(cause);
    throw new SettingsError(`Cannot read --input ${path}: ${why}`, { cause });
  });
}

async function workWithReceiver(demo: Demo, store: ReturnType<typeof demoStore>): Promise<void> {
  const secret = newWebhookSecret();
  const receiver = startReceiver({ secret, onDelivery: (delivery) => arrived(demo, delivery) });
  try {
    await work(demo, { store, secret, receiver });
  } finally {
    await receiver.stop();
  }
}

interface Setup {
  readonly store: ReturnType<typeof demoStore>;
  readonly secret: string;
  readonly receiver: Receiver;
}

async function work(demo: Demo, { store, secret, receiver }: Setup): Promise<void> {
  const { call, stop } = demo;
  const kind = notifyShipmentKind(RETRY);
  // The receiver stands in for every host: its path begins with the host that was meant.
  const route = (url: string) => `${receiver.url}/${new URL(url).host}${new URL(url).pathname}`;
  // Closed after the drain, the store still open: what finished in the grace is counted too.
  const built = (parts: Parts): WorkerParts => ({
    ...build(parts, { route, kind, endpointPolicy: PATIENT }),
    close: async () => await demo.tracker?.look(true),
  });
  const running = Promise.withResolvers<RunningWorker>();
  const served = call.serve({
    definition: { ...call.definition, kinds: [kind], build: (parts) => built(parts) },
    settings: demoSettings(call, store),
    env: { LANEWAY_WEBHOOK_SECRET: secret, LANEWAY_WEBHOOK_SECRET_FILE: "" },
    until: stop.signal,
    onRunning: running.resolve,
  });
  try {
    const started = await Promise.race([running.promise, served]);
    if (typeof started !== "number") await feedAndFollow(demo, started);
  } finally {
    stop.abort();
    await served;
  }
}

async function feedAndFollow(demo: Demo, { parts, httpUrl }: RunningWorker): Promise<void> {
  const { progress, counts, stop } = demo;
  const { store, managers } = parts;
  progress.line(`store    ${store.engine === "sqlite" ? store.db.path : "postgres"}`);
  if (httpUrl !== null) progress.line(`metrics  ${httpUrl}/metrics\nhealth   ${httpUrl}/healthz`);
  const { rctx, contextOf } = demoContexts(demo.call.definition, managers.tenancy);
  const shipments = shipmentManager(store, managers.outbox);
  const onDeadLetter = ({ id, carrier, trackingNumber }: Shipment) =>
    progress.line(`dead-lettered  ${carrier} ${trackingNumber} shipment=${id}`);
  const tracker = new Tracker({ shipments, managers, rctx, counts, onDeadLetter });
  demo.tracker = tracker;
  const feeding = new AbortController();
  const outcomes = importShipments(demo.input, { shipments, contextOf, lane: "default", signal: stop.signal });
  const feed = feedAll(demo, tracker, outcomes).finally(() => feeding.abort());
  // Both are awaited whichever fails, so that nothing is left running.
  const ends = await Promise.allSettled([feed, follow(demo, tracker, feeding.signal)]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function feedAll(demo: Demo, tracker: Tracker, outcomes: AsyncIterable<LineOutcome>): Promise<void> {
  try {
    for await (const outcome of outcomes) {
      if (outcome.refused === null) {
        const { shipment, outcome: met } = outcome.created;
        await tracker.follow(outcome.ctx, shipment, met === "EXISTS");
      } else {
        demo.counts.skipped++;
        demo.progress.line(`line ${outcome.line} skipped: ${outcome.refused}`);
      }
      demo.progress.draw();
    }
  } catch (error) {
    demo.stop.abort();
    throw error;
  }
}

/** Looks until every shipment fed has come to its end, or the demo is told to stop. */
async function follow(demo: Demo, tracker: Tracker, fed: AbortSignal): Promise<void> {
  const { signal } = demo.stop;
  let lookedAtAllMs = performance.now();
  while (!signal.aborted && !(fed.aborted && tracker.open === 0)) {
    await systemClock.sleep(LOOK_MS, signal);
    const all = performance.now() - lookedAtAllMs >= LOOK_AT_ALL_MS;
    if (all) lookedAtAllMs = performance.now();
    await tracker.look(all);
    demo.progress.draw();
  }
}

function arrived(demo: Demo, delivery: Delivery): void {
  const { webhookId, shipmentId, label, status, tries, repeated } = delivery;
  demo.tracker?.touch(shipmentId);
  const what = repeated ? "repeated " : status < 300 ? "delivered" : "refused  ";
  demo.progress.event(
    `${what}  ${label} shipment=${shipmentId} webhook-id=${webhookId} answer=${status} try=${tries}`,
  );
}
