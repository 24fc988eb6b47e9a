/**
 * A worker's life: start, wait for the database, work, drain, end.
 *
 * @module
 */
import type { Clock } from "../core/clock.ts";
import { describeError } from "../core/describe_error.ts";
import type { ProcessLogger } from "../core/logtape.ts";
import type { ScrapableMetrics } from "../core/prom_metrics.ts";
import {
  kindsOfWorker,
  type OpenParts,
  ownEnv,
  type RunningWorker,
  versionOf,
  type WorkerDefinition,
  type WorkerParts,
} from "./definition.ts";
import { type HttpServer, startHttp } from "./http.ts";
import { checkKinds, chooseHandlers } from "./kinds.ts";
import { openParts, servedChainsOf } from "./open_parts.ts";
import { requireStore, type Settings } from "./settings.ts";
import type { StopRequest } from "./signals.ts";
import { isRecording } from "./tracing.ts";
import type { Probe, WorkerRuntime, WorkerRuntimeOptions } from "./types.ts";
import { createWorkerRuntime } from "./worker.ts";

/** What a served worker lives in. */
export interface ServeOptions {
  readonly definition: WorkerDefinition;
  readonly settings: Settings;
  /** The worker's own environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly logger: ProcessLogger;
  readonly metrics: ScrapableMetrics;
  readonly stop: Pick<StopRequest, "stopping" | "hurrying">;
  /** Called once the loop runs, with where HTTP listens (null when it is off). */
  readonly onRunning?: (running: RunningWorker) => void;
}

/** What the probes answer from while the worker starts, runs and ends. */
interface Phase {
  runtime: WorkerRuntime | null;
  reason: string;
}

// Nothing at the end may hang: whatever takes longer is left behind, the process exits.
const CLOSE_MS = 3_000;
// A signal while starting ends the process within two seconds, the log's flush included.
const STOP_STARTING_MS = 1_000;

/**
 * Serves until it is told to stop.
 *
 * A database that is down is waited for; a wrong password, an unmigrated or a newer schema, or a taken port ends at
 * once. The order at the end: stop claiming, drain, close what the container opened, flush the log, HTTP last.
 *
 * @returns The exit code: 0 after a clean drain, also when items were handed back; 1 when items were left to expire.
 * @throws {UsageError} The settings do not serve.
 * @throws {SettingsError} The world does not: see above.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const { definition, settings, logger } = options;
  const kinds = await kindsOfWorker(definition, ownEnv(definition, options.env));
  checkKinds(settings.kinds, kinds.map((kind) => kind.name));
  if (definition.open === undefined) requireStore(settings, "work");
  definition.checkEnv?.(options.env);
  for (const warning of settings.warnings) logger.warn("settings.warning", { warning });
  if (settings.traces === "on" && !isRecording()) {
    logger.warn("settings.warning", {
      warning: "--traces on has no effect in a process started without OTEL_DENO=true",
    });
  }
  const phase: Phase = { runtime: null, reason: "starting" };
  const http = settings.http === "on" ? startProbes(options, phase) : null;
  try {
    return await serveBehindProbes(options, phase, http);
  } finally {
    await logger.flush();
    await http?.stop();
  }
}

async function serveBehindProbes(options: ServeOptions, phase: Phase, http: HttpServer | null): Promise<number> {
  const { logger, stop } = options;
  let said = false;
  // Not at once: a start that fails is told in one line, the error's.
  const sayListening = () => {
    if (http !== null && !said) logger.info("http.listening", { address: http.address, url: http.url });
    said = true;
  };
  const chains = servedChainsOf(options.definition, options.settings);
  const opening = openParts({ ...options, chains }, (reason) => {
    phase.reason = reason === null ? "starting" : `waiting: ${reason}`;
    if (reason !== null) sayListening();
  });
  // A signal while starting ends the wait, whatever the database does.
  const open = await Promise.race([opening, aborted(stop.stopping)]);
  if (open === null) {
    logger.info("process.stopped", { while: phase.reason });
    await bounded("store.close", async () => void await (await opening)?.close(), options, STOP_STARTING_MS);
    return 0;
  }
  try {
    const built = await options.definition.build(open.parts);
    sayListening();
    try {
      return await run({ options, phase, open, built, http });
    } finally {
      await bounded("worker.close", async () => await built.close?.(), options);
    }
  } finally {
    await bounded("store.close", () => open.close(), options);
  }
}

interface Run {
  readonly options: ServeOptions;
  readonly phase: Phase;
  readonly open: OpenParts;
  readonly built: WorkerParts;
  readonly http: HttpServer | null;
}

async function run({ options, phase, open, built, http }: Run): Promise<number> {
  const { definition, logger, stop, metrics } = options;
  const runtime = createWorkerRuntime(runtimeOptions(options, open, built));
  phase.runtime = runtime;
  metrics.set("laneway_build_info", 1, { version: definition.release, commit: definition.commit ?? "unknown" });
  runtime.start();
  logger.info("process.started", {
    version: versionOf(definition),
    commit: definition.commit,
    store: open.name,
    http: http?.address,
  });
  options.onRunning?.({ parts: open.parts, runtime, httpUrl: http?.url ?? null });
  await aborted(stop.stopping);
  stop.hurrying.addEventListener("abort", () => runtime.skipGrace(), { once: true });
  if (stop.hurrying.aborted) runtime.skipGrace();
  const report = await runtime.drain();
  return report.left > 0 ? 1 : 0;
}

function runtimeOptions(options: ServeOptions, open: OpenParts, built: WorkerParts): WorkerRuntimeOptions {
  const { settings, definition } = options;
  const handlers = chooseHandlers(settings.kinds, built.handlers);
  return {
    worker: `${definition.name}@${hostName()}/${Deno.pid}`,
    app: { type: "WORKER", version: versionOf(definition) },
    lane: settings.lane,
    kinds: handlers.map((handler) => handler.kind.name),
    handlers,
    managers: open.parts.managers,
    ping: () => open.ping(),
    topics: open.parts.topics,
    cache: open.cache,
    clock: options.clock,
    // What was opened may have put something between the worker and its log.
    logger: open.parts.logger,
    metrics: options.metrics,
    ...(open.upkeep === undefined ? {} : { upkeep: open.upkeep }),
    traces: settings.traces === "on",
    claimOrder: settings.claimOrder,
    capacity: settings.capacity,
    claimAheadMs: settings.claimAheadMs,
    leaseMs: settings.leaseMs,
    pollMs: settings.pollMs,
    idlePollMs: settings.idlePollMs,
    heartbeatMs: settings.heartbeatMs,
    sweepMs: settings.sweepMs,
    drainGraceMs: settings.drainGraceMs,
    sweepSteps: built.sweepSteps,
    countParked: built.countParked,
  };
}

function startProbes(options: ServeOptions, phase: Phase): HttpServer {
  const starting = (): Probe => ({ ok: false, reasons: [phase.reason] });
  const http = startHttp({
    host: options.settings.httpHost,
    port: options.settings.httpPort,
    version: versionOf(options.definition),
    logger: options.logger,
    metrics: options.metrics,
    health: () => phase.runtime?.health() ?? starting(),
    ready: () => phase.runtime?.ready() ?? Promise.resolve(starting()),
  });
  return http;
}

function hostName(): string {
  try {
    return Deno.hostname();
  } catch {
    // Not permitted in this build; the process id and the start time still tell workers apart in the log.
    return "unknown-host";
  }
}

function aborted(signal: AbortSignal): Promise<null> {
  if (signal.aborted) return Promise.resolve(null);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(null), { once: true }));
}

async function bounded(
  what: string,
  close: () => Promise<void>,
  options: ServeOptions,
  limitMs: number = CLOSE_MS,
): Promise<void> {
  const done = new AbortController();
  const late = options.clock.sleep(limitMs, done.signal).then(() => done.signal.aborted ? "closed" : "late");
  try {
    const closing = close().then(() => "closed");
    if (await Promise.race([closing, late]) === "late") options.logger.warn(`${what}_timed_out`, { limitMs });
    closing.catch(() => {});
  } catch (error) {
    options.logger.warn(`${what}_failed`, { error: describeError(error) });
  } finally {
    done.abort();
  }
}
