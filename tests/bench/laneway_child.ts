/**
 * Laneway's own measured process: the worker a binary serves (settings, store, managers, metrics, sweep), driven like the
 * peers' processes.
 *
 * @module
 */
import { z } from "zod";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext } from "../../src/core/context.ts";
import { createLogger } from "../../src/core/logtape.ts";
import { createMetrics } from "../../src/core/prom_metrics.ts";
import type { Parts, WorkerDefinition } from "../../src/runtime/definition.ts";
import type { FlagKey } from "../../src/runtime/flags.ts";
import { openParts } from "../../src/runtime/open_parts.ts";
import { serve } from "../../src/runtime/serve.ts";
import { readSettings } from "../../src/runtime/settings.ts";
import { defineKind } from "../../src/work/kinds.ts";
import type { NewWorkItem, WorkHandler } from "../../src/work/types.ts";
import { serveCommands } from "./peers/child.mjs";
import { countInStore } from "./truth.ts";

/** What `setUp` brings. */
interface ChildSettings {
  /** Flags as written on a command line, by their name in code. */
  readonly flags: Partial<Record<FlagKey, string>>;
  /** Database URLs by their variable. */
  readonly env: Readonly<Record<string, string>>;
}

type OnItem = (n: number) => void | Promise<void>;

const KIND = defineKind("BENCH_NOOP", { schema: z.object({ n: z.number() }) });
const ORGS = 50;

const base = { name: "bench", release: "0", kinds: [KIND] };
const logger = createLogger({ level: "warn", format: "text" });
const metrics = createMetrics();
const settingsOf = ({ flags, env }: ChildSettings) => readSettings({ flags: { http: "off", ...flags }, env });

/** A worker in memory holds the store that is enqueued into: it waits in its build, its loop not started. */
let waiting: { readonly parts: Parts; readonly go: (onItem: OnItem) => void } | null = null;
let opened: Parts | null = null;

function serveWorker(
  settings: ChildSettings,
  build: (parts: Parts) => Promise<OnItem>,
): Promise<{ stop(): Promise<unknown> }> {
  const stopping = new AbortController();
  const definition: WorkerDefinition = {
    ...base,
    async build(parts) {
      opened = parts;
      const onItem = await build(parts);
      const handler: WorkHandler<{ n: number }> = { kind: KIND, handle: (_ctx, item) => onItem(item.payload.n) };
      return { handlers: [handler] };
    },
  };
  return new Promise((running, failed) => {
    const served = serve({
      definition,
      settings: settingsOf(settings),
      env: {},
      clock: systemClock,
      logger,
      metrics,
      stop: { stopping: stopping.signal, hurrying: new AbortController().signal },
      onRunning: () =>
        running({
          stop: () => {
            stopping.abort();
            return served;
          },
        }),
    });
    served.catch(failed);
  });
}

let running: Promise<{ stop(): Promise<unknown> }> | null = null;

async function openInMemory(settings: ChildSettings): Promise<Parts> {
  waiting = await new Promise((built, failed) => {
    running = serveWorker(settings, (parts) => new Promise((go) => built({ parts, go })));
    running.catch(failed);
  });
  if (waiting === null) throw new Error("Cannot open the store in memory");
  return waiting.parts;
}

const isInMemory = (settings: ChildSettings) => settings.flags.store === "memory";

async function openProducer(settings: ChildSettings) {
  const open = isInMemory(settings) ? null : await openParts({
    definition: { ...base, build: () => ({ handlers: [] }) },
    settings: settingsOf(settings),
    env: {},
    clock: systemClock,
    logger,
    metrics,
  });
  opened = open?.parts ?? await openInMemory(settings);
  const { managers } = opened;
  const rctx = managers.tenancy.requestContext({ type: "WORKER", version: "bench@0" });
  const contexts: OpContext[] = [];
  for (let i = 0; i < ORGS; i++) {
    const org = await managers.tenancy.createOrg(rctx, { name: `bench ${i}` });
    contexts.push(await managers.tenancy.serviceContext(rctx, org.id));
  }
  const newItem = (n: number): NewWorkItem => ({
    kind: KIND.name,
    idempotencyKey: crypto.randomUUID(),
    payload: { n },
  });
  let calls = 0;
  const nextContext = () => contexts[calls++ % contexts.length] as OpContext;
  return {
    enqueue: (n: number) => managers.work.enqueue(nextContext(), newItem(n)),
    async enqueueMany(ns: readonly number[]) {
      const results = await managers.work.enqueueMany(nextContext(), ns.map(newItem));
      const failed = results.find((result) => result instanceof Error);
      if (failed !== undefined) throw failed;
    },
    close: async () => await open?.close(),
  };
}

if (import.meta.main) {
  await serveCommands({
    prepare: () => Promise.resolve(),
    openProducer: (settings) => openProducer(settings as ChildSettings),
    startWorker(settings, onItem) {
      if (waiting === null || running === null) {
        return serveWorker(settings as ChildSettings, () => Promise.resolve(onItem));
      }
      waiting.go(onItem);
      return running;
    },
    count() {
      if (opened === null) throw new Error("Cannot count as no store is open");
      return countInStore(opened.store);
    },
  });
}
