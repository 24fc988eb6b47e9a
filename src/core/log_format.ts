/**
 * How a log event looks: one JSON line for machines, readable text for people.
 *
 * @module
 */
import type { LogFields } from "./log.ts";

/** How much an event matters. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** The levels from the least to the most severe. */
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** One event as formatters see it. */
export interface LogEvent {
  readonly atMs: number;
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

const RESERVED: ReadonlySet<string> = new Set(["ts", "level", "event"]);

/**
 * One JSON object on one line: `ts`, `level`, `event`, then the fields. A field that has one of those three names gets
 * a trailing underscore; an undefined field is left out; a number JSON has no form for is written as text.
 */
export function formatJson(event: LogEvent): string {
  const line: Record<string, unknown> = {
    ts: new Date(event.atMs).toISOString(),
    level: event.level,
    event: event.event,
  };
  for (const [name, value] of Object.entries(event.fields)) {
    if (value === undefined) continue;
    line[RESERVED.has(name) ? `${name}_` : name] = plain(value);
  }
  return JSON.stringify(line);
}

function plain(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value === "object" && value !== null) return String(value);
  return typeof value === "bigint" || typeof value === "symbol" ? String(value) : value;
}

const PAINT: Readonly<Record<LogLevel, string>> = { debug: "90", info: "32", warn: "33", error: "31" };

/** One readable line: local time, level, event, `name=value` pairs; control characters are written as escapes. */
export function formatText(event: LogEvent, color: boolean): string {
  const at = new Date(event.atMs);
  const two = (part: number) => String(part).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.` +
    String(at.getMilliseconds()).padStart(3, "0");
  const level = event.level.toUpperCase().padEnd(5);
  const pairs = Object.entries(event.fields).filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${paint(`${name}=`, "2", color)}${quote(value)}`);
  return `${paint(time, "2", color)} ${paint(level, PAINT[event.level], color)} ${safe(event.event)}${pairs.join("")}`;
}

function paint(text: string, code: string, color: boolean): string {
  return color ? `\x1b[${code}m${text}\x1b[0m` : text;
}

function quote(value: unknown): string {
  const text = String(value);
  return text === "" || /[\s"=]/.test(text) ? safe(JSON.stringify(text)) : safe(text);
}

// Log lines carry outside text; nothing in it may steer the terminal or reorder what it shows.
const UNSAFE = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

function safe(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
