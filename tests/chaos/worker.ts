/**
 * The worker of the chaos: each run is a line of an append-only log when it begins and when it ends, written at once, so that
 * what happened is known whatever dies. An item that is poisoned ends its process.
 *
 * @module
 */
import * as z from "zod";
import { defineKind, type WorkerCommand, type WorkerDefinition, type WorkHandler, type WorkKind } from "../../mod.ts";

/** What an item carries. */
export interface ChaosPayload {
  readonly [key: string]: unknown;
  /** How long its run takes, milliseconds. */
  readonly ms: number;
  /** Whether it ends its process, each time it runs. */
  readonly poison: boolean;
}

/** The kind. Its retries are soon, as the run is to end soon. */
export const CHAOS: WorkKind<ChaosPayload> = defineKind("CHAOS", {
  schema: z.object({ ms: z.number(), poison: z.boolean() }),
  retry: { baseMs: 50, capMs: 500 },
});

function appender(path: string): (line: string) => void {
  const file = Deno.openSync(path, { append: true, create: true, write: true });
  const encoder = new TextEncoder();
  return (line) => void file.writeSync(encoder.encode(line));
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done, { once: true });
  });
}

/** The org of the embedded store's items. */
export const ORG = "5e716f96-2f9b-45d0-a368-7c34e80565e3";

const makeOrg: WorkerCommand = {
  name: "make-org",
  summary: "Makes the org of the embedded store's items.",
  async run(call) {
    const open = await call.open();
    try {
      const { tenancy } = open.parts.managers;
      const rctx = tenancy.requestContext({ type: "CLI", version: "chaos-worker@1.0.0" });
      await tenancy.createOrg(rctx, { id: ORG, name: "Chaos" });
    } finally {
      await open.close();
    }
    return 0;
  },
};

/** The worker. */
export const definition: WorkerDefinition = {
  name: "chaos-worker",
  release: "1.0.0",
  kinds: [CHAOS],
  env: ["CHAOS_LOG"],
  commands: [makeOrg],
  build(parts) {
    const append = appender(parts.env.CHAOS_LOG ?? "/dev/null");
    const handler: WorkHandler<ChaosPayload> = {
      kind: CHAOS,
      async handle(_ctx, { id, payload }, run) {
        const note = (what: string) => append(`${id} ${run.fence} ${Deno.pid} ${what}\n`);
        note("start");
        if (payload.poison) Deno.exit(137);
        if (payload.ms > 0) await pause(payload.ms, run.signal);
        run.signal.throwIfAborted();
        note("end");
      },
    };
    return { handlers: [handler] };
  },
};
