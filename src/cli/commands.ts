/**
 * What each subcommand does, once its flags are read.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import { eitherOf } from "../core/either.ts";
import { SettingsError } from "../core/errors.ts";
import { createLogger, type ProcessLogger } from "../core/logtape.ts";
import { limitRepeats } from "../core/log_limit.ts";
import { createMetrics, type ScrapableMetrics } from "../core/prom_metrics.ts";
import { guardStrayErrors } from "../db/stray_errors.ts";
import { type OpenParts, ownEnv, versionOf, type WorkerCommand } from "../runtime/definition.ts";
import { checkKinds } from "../runtime/kinds.ts";
import { openParts } from "../runtime/open_parts.ts";
import { serve } from "../runtime/serve.ts";
import { requireStore, type Settings } from "../runtime/settings.ts";
import { UsageError } from "../runtime/usage_error.ts";
import { askHealth } from "./health.ts";
import { runChecks } from "./check.ts";
import { enqueueLines, enqueueOne, type EnqueueSummary } from "./enqueue.ts";
import { defaultsOf, type EnqueueFlags, fieldsOf, isSingle } from "./enqueue_options.ts";
import { parseRequest } from "./enqueue_request.ts";
import { migrate, readDirection } from "./migrate.ts";
import type { CommandContext } from "./command_context.ts";

interface Tools {
  readonly logger: ProcessLogger;
  readonly metrics: ScrapableMetrics;
}

function makeTools(settings: Settings): Tools {
  const logger = createLogger({
    level: settings.logLevel,
    format: settings.logFormat,
    onDropped: (lines) => metrics.count("laneway_log_lines_dropped_total", {}, lines),
  });
  const metrics = createMetrics({
    onMisuse: (name, error) => logger.error("metrics.misused", { name, error: describeError(error) }),
  });
  return { logger, metrics };
}

function guard(tools: Tools): () => void {
  const stray = limitRepeats(tools.logger);
  return guardStrayErrors((error) => stray.error("process.stray_error", { error: describeError(error) }));
}

/** `serve`: runs until it is told to stop. */
export async function serveCommand(context: CommandContext, settings: Settings): Promise<number> {
  const { io, definition } = context;
  const tools = makeTools(settings);
  const unguard = guard(tools);
  const stop = io.listenForStop((signal, count) =>
    tools.logger.info("signal.received", { signal, meaning: ["drain", "skip the grace"][count - 1] ?? "ignored" })
  );
  try {
    return await serve({ definition, settings, env: io.env, clock: io.clock, stop, ...tools });
  } finally {
    stop.dispose();
    unguard();
  }
}

/** `enqueue`: 0 when every item is in or was there already, 1 when one was refused. */
export async function enqueueCommand(
  context: CommandContext,
  settings: Settings,
  flags: EnqueueFlags,
): Promise<number> {
  const { definition, io } = context;
  const single = isSingle(flags) ? parseRequest(fieldsOf(flags)) : null;
  if (typeof single === "string") throw new UsageError(`Cannot enqueue: ${single}`);
  const defaults = defaultsOf(flags);
  // Before a store is opened, which on SQLite makes the file.
  if (flags.kind !== undefined) checkKinds([flags.kind], definition.kinds.map((kind) => kind.name));
  requireStore(settings, "work");
  if (settings.store?.engine === "sqlite" && settings.store.path === ":memory:") {
    throw new UsageError("Cannot enqueue into --store memory: it ends with this command; use sqlite:PATH or Postgres");
  }
  const input = single === null ? await openInput(flags.file, context) : null;
  return await withParts(context, settings, async (open) => {
    const deps = {
      managers: open.parts.managers,
      app: { type: "CLI" as const, version: versionOf(definition) },
      print: io.print,
    };
    const summary = single === null
      ? await enqueueLines(input ?? io.stdin(), {
        ...deps,
        defaults,
        payloadLimitBytes: settings.payloadLimitBytes,
      })
      : await enqueueOne(single, deps);
    if (single === null) io.print(describeSummary(summary));
    return summary.refused > 0 ? 1 : 0;
  });
}

function describeSummary(summary: EnqueueSummary): string {
  return `${summary.inserted} inserted, ${summary.existing} already there, ${summary.refused} refused`;
}

// Opened before the database, so that a wrong path is told at once.
async function openInput(file: string | undefined, context: CommandContext): Promise<AsyncIterable<Uint8Array>> {
  if (file === undefined || file === "-") return context.io.stdin();
  try {
    const info = await Deno.stat(file);
    if (info.isDirectory) throw new Error("it is a folder");
    return (await Deno.open(file)).readable;
  } catch (cause) {
    const why = cause instanceof Deno.errors.NotFound
      ? "there is no such file"
      : cause instanceof Deno.errors.NotCapable
      ? "this build may not read it; give the lines on standard input, with --file - or without --file"
      : describeError(cause);
    throw new SettingsError(`Cannot read --file ${file}: ${why}`, { cause });
  }
}

/** `migrate up|down|status`. */
export async function migrateCommand(
  context: CommandContext,
  settings: Settings,
  flags: { readonly direction?: string; readonly chain?: string; readonly steps: string },
): Promise<number> {
  const { logger } = makeTools(settings);
  try {
    return await migrate(settings, { ...readDirection(flags), context, logger });
  } finally {
    await logger.flush();
  }
}

/** `check`: 0 when nothing failed; warnings do not count. */
export async function checkCommand(
  context: CommandContext,
  settings: Settings,
  flags: { readonly health?: boolean; readonly live?: boolean },
): Promise<number> {
  if (flags.health) return await askHealth(settings, context.io);
  if (flags.live) return await askHealth(settings, context.io, "/livez");
  return await runChecks(settings, context);
}

/** A worker-specific command. */
export async function workerCommand(
  context: CommandContext,
  command: WorkerCommand,
  settings: Settings,
  options: Readonly<Record<string, string | boolean | undefined>>,
): Promise<number> {
  const { definition, io } = context;
  const stop = io.listenForStop(() => {});
  const env = ownEnv(definition, io.env);
  const shared = { definition, env: io.env, clock: io.clock };
  try {
    return await command.run({
      definition,
      settings,
      options,
      env,
      signal: stop.stopping,
      print: io.print,
      async open(overrides) {
        const own = { ...settings, ...overrides };
        const open = await openParts({ ...shared, settings: own, ...makeTools(own) });
        if (open === null) throw new SettingsError("Cannot open the store: it was told to stop");
        return open;
      },
      async serve({ until, onRunning, settings: overrides, definition: served = definition, env: given }) {
        const own = { ...settings, ...overrides };
        const tools = makeTools(own);
        const unguard = guard(tools);
        using stopping = eitherOf(stop.stopping, until);
        try {
          return await serve({
            ...shared,
            ...tools,
            definition: served,
            env: { ...io.env, ...given },
            settings: own,
            stop: { stopping: stopping.signal, hurrying: stop.hurrying },
            ...(onRunning === undefined ? {} : { onRunning }),
          });
        } finally {
          unguard();
        }
      },
    });
  } finally {
    stop.dispose();
  }
}

async function withParts(
  context: CommandContext,
  settings: Settings,
  use: (open: OpenParts) => Promise<number>,
): Promise<number> {
  const { definition, io } = context;
  // A command says what it does on standard output; its log is for what goes wrong.
  const tools = makeTools(settings.logLevel === "info" ? { ...settings, logLevel: "warn" } : settings);
  const open = await openParts({ definition, settings, env: io.env, clock: io.clock, ...tools });
  if (open === null) return 0;
  try {
    return await use(open);
  } finally {
    await open.close();
    await tools.logger.flush();
  }
}
