/**
 * The worker program of the trials: `runWorker` over handlers that behave in every way handlers do. Each writes a line to
 * the file `TRIAL_SEEN` names when it begins and when it ends, by a synchronous append, so that the count of runs survives
 * a killed process.
 *
 * @module
 */
import { runWorker } from "../../src/cli/program.ts";
import type { Parts, WorkerDefinition } from "../../src/runtime/definition.ts";
import type { Payload, WorkHandler, WorkItem, WorkKind, WorkRun } from "../../src/work/types.ts";
import { DEAF, ECHO, ENQUEUE, OK, SLEEP, SPIN, SUICIDE, THROW, TRIAL_KINDS } from "./kinds.ts";
import { oddValue } from "./odd_values.ts";

type Note = (item: WorkItem<unknown>, what: string) => void;

function openSeen(path: string | undefined): Note {
  if (path === undefined) return () => {};
  const file = Deno.openSync(path, { append: true, create: true, write: true });
  return (item, what) => {
    const line = `${item.id} ${item.attempts} ${Deno.pid} ${what} ${Date.now()}\n`;
    file.writeSync(new TextEncoder().encode(line));
  };
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}

function spin(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;) {
    // Never yields: that is the point.
  }
}

/** Wraps what a handler does in its two lines. */
function handler<P extends Payload>(
  kind: WorkKind<P>,
  note: Note,
  act: (item: WorkItem<P>, run: WorkRun) => Promise<void> | void,
): WorkHandler {
  const made: WorkHandler<P> = {
    kind,
    async handle(_ctx, item, run) {
      note(item, "start");
      try {
        await act(item, run);
      } finally {
        note(item, run.signal.aborted ? "aborted" : "end");
      }
    },
  };
  return made as unknown as WorkHandler;
}

/** What is in use once the garbage is gone: resident memory tells more of the collector's mood than of a leak. */
function liveMiB(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = Deno.memoryUsage();
  return (heapUsed + external) / 1_048_576;
}

/** Enqueues what `TRIAL_ITEMS` holds: the only way into a store that lives in this process's memory. */
async function fill(parts: Parts): Promise<void> {
  const { tenancy, work } = parts.managers;
  const text = parts.env.TRIAL_ITEMS;
  if (text === undefined) return;
  const rctx = tenancy.requestContext({ type: "SERVICE", version: "trial@1" });
  const org = await tenancy.createOrg(rctx, { name: "trial" });
  const ctx = await tenancy.serviceContext(rctx, org.id);
  for (const { kind, payload } of JSON.parse(text) as { kind: string; payload: Payload }[]) {
    await work.enqueue(ctx, { kind, payload, idempotencyKey: crypto.randomUUID() });
  }
}

function handlers(parts: Parts): WorkHandler[] {
  const note = openSeen(parts.env.TRIAL_SEEN);
  const { work } = parts.managers;
  return [
    handler(OK, note, () => {}),
    handler(ECHO, note, (item) => {
      parts.logger.info("trial.echo", { payload: JSON.stringify(item.payload), liveMiB: liveMiB() });
    }),
    handler(SLEEP, note, ({ payload: { ms, againMs } }, run) => {
      return pause(run.attempt > 1 ? againMs ?? ms : ms, run.signal);
    }),
    handler(DEAF, note, (item) => pause(item.payload.ms)),
    handler(SPIN, note, (item, run) => spin(run.attempt > 1 ? 0 : item.payload.ms)),
    handler(SUICIDE, note, () => Deno.kill(Deno.pid, "SIGKILL")),
    handler(THROW, note, (item) => {
      // Odd values are the point here.
      throw oddValue(item.payload.code);
    }),
    {
      kind: ENQUEUE as unknown as WorkKind,
      async handle(ctx, item) {
        note(item, "start");
        await pause(Number(item.payload.ms));
        await work.enqueue(ctx, { kind: OK.name, idempotencyKey: String(item.payload.key), payload: {} });
        note(item, "end");
      },
    },
  ];
}

const definition: WorkerDefinition = {
  name: "trial-worker",
  release: "1.0.0",
  kinds: TRIAL_KINDS,
  env: ["TRIAL_SEEN", "TRIAL_ITEMS"],
  async build(parts) {
    await fill(parts);
    return { handlers: handlers(parts) };
  },
};

if (import.meta.main) await runWorker(definition);
