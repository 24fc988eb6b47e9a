/**
 * The logger of a process, over LogTape: events of Laneway, and those of any library that logs through LogTape, leave
 * by one bounded writer.
 *
 * @module
 */
import { configureSync, getConfig, getLogger, type LogRecord } from "@logtape/logtape";
import { type ByteStream, LineWriter } from "./line_writer.ts";
import { formatJson, formatText, LOG_LEVELS, type LogEvent, type LogLevel } from "./log_format.ts";
import type { LogFields, Logger } from "./log.ts";

/** How a logger is made. */
export interface LoggerOptions {
  /** Events below it are dropped. Default `info`. */
  readonly level?: LogLevel;
  /** `auto` is text on a terminal and JSON elsewhere. Default `auto`. */
  readonly format?: "json" | "text" | "auto";
  /** Default standard error. */
  readonly stream?: ByteStream & { isTerminal?(): boolean };
  /** Default: on a terminal, unless `NO_COLOR` is set. Only text is ever colored. */
  readonly color?: boolean;
  /** Called with how many lines were just dropped on a full or closed pipe. */
  readonly onDropped?: (lines: number) => void;
  /** The most UTF-16 units that wait for the stream. Default 1 Mi. */
  readonly maxQueued?: number;
}

/** A logger with a writer of its own. */
export interface ProcessLogger extends Logger {
  /** Waits until the lines so far are written, at most `timeoutMs` (default 1 000); false when the stream is stuck. */
  flush(timeoutMs?: number): Promise<boolean>;
}

const OURS = "laneway";
const emitters = new Map<string, (event: LogEvent) => void>();
let fallback: ((event: LogEvent) => void) | null = null;
let minted = 0;

/**
 * Makes the logger of this process. Never throws at a log call and never waits for its stream.
 *
 * LogTape is configured on first use, so that libraries that log through it are heard too (warnings and worse). A
 * program that configured LogTape itself keeps its configuration, and Laneway's events go where that sends them.
 */
export function createLogger(options: LoggerOptions = {}): ProcessLogger {
  const stream = options.stream ?? Deno.stderr;
  const terminal = stream.isTerminal?.() ?? false;
  const text = options.format === "text" || (options.format !== "json" && terminal);
  const color = options.color ?? (terminal && !Deno.noColor);
  const writer = new LineWriter({ stream, maxQueued: options.maxQueued, onDropped: options.onDropped });
  const emit = (event: LogEvent) => writer.write(text ? formatText(event, color) : formatJson(event));
  const name = `${++minted}`;
  emitters.set(name, emit);
  fallback = emit;
  configureOnce();
  const tape = getLogger([OURS, name]);
  const least = LOG_LEVELS.indexOf(options.level ?? "info");
  function method(level: LogLevel): (event: string, fields?: LogFields) => void {
    if (LOG_LEVELS.indexOf(level) < least) return () => {};
    // The event is the message as it stands: braces in it are no template.
    return (event, fields) => tape[level](event.replaceAll("{", "{{").replaceAll("}", "}}"), fields ?? {});
  }
  return {
    debug: method("debug"),
    info: method("info"),
    warn: method("warn"),
    error: method("error"),
    flush: (timeoutMs) => writer.flush(timeoutMs),
  };
}

function configureOnce(): void {
  if (getConfig() !== null) return;
  configureSync({
    sinks: { laneway: route },
    loggers: [
      { category: [], sinks: ["laneway"], lowestLevel: "warning" },
      { category: [OURS], sinks: ["laneway"], parentSinks: "override", lowestLevel: "debug" },
      { category: ["logtape", "meta"], sinks: ["laneway"], parentSinks: "override", lowestLevel: "error" },
    ],
  });
}

function route(record: LogRecord): void {
  const [room, name] = record.category;
  const ours = room === OURS && name !== undefined;
  const emit = (ours ? emitters.get(name) : undefined) ?? fallback;
  const fields = record.properties as LogFields;
  emit?.({
    atMs: record.timestamp,
    level: levelOf(record.level),
    event: record.message.map((part) => typeof part === "string" ? part : String(part)).join(""),
    fields: ours ? fields : { ...fields, category: record.category.join(".") },
  });
}

function levelOf(level: LogRecord["level"]): LogLevel {
  if (level === "warning") return "warn";
  if (level === "fatal") return "error";
  return level === "trace" ? "debug" : level;
}
