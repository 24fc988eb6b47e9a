/**
 * When a host may work: named ranges of wall time on days of the week, in a time zone. Pure: told what time it is.
 *
 * A window holds whenever a clock on its zone's wall shows a time in its range. So where the clock is set forward a
 * window that begins in the hour left out begins at that hour's end, and one that lies in it whole is left out that day;
 * where the clock is set back a time in the repeated hour comes twice, and holds both times. A window over midnight
 * belongs to the day on which it begins.
 *
 * @module
 */
import * as z from "zod";
import { boundText } from "../core/describe_error.ts";
import { ValidationError } from "../core/errors.ts";
import { wordsOf } from "../core/shape_words.ts";
import type { HostWindow } from "./types.ts";

/** The most windows of one host, for `parseWindows`. */
export const MAX_WINDOWS = 50;

/** The most items at once that a window may allow. */
export const MAX_IN_FLIGHT = 2_000;

const MAX_SHOWN = 120;
const DAY_MINUTES = 24 * 60;
const WEEK = 7;
const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const WEIGHT = /^[a-z0-9][a-z0-9-]{0,62}$/;

const time = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "it must be a wall time from 00:00 to 23:59");

const schema = z.array(
  z.strictObject({
    name: z.string().min(1, "a window has a name").max(63, "a name has at most 63 characters"),
    timeZone: z.string().refine(isTimeZone, "it must be an IANA time zone, such as Europe/Berlin or UTC"),
    days: z.array(z.int().min(1).max(WEEK)).max(WEEK).default([]),
    from: time,
    to: time,
    maxInFlight: z.int().min(0).max(MAX_IN_FLIGHT),
    weights: z.array(z.string().regex(WEIGHT, "a weight is lower-case letters, digits and dashes")).max(20).nullable()
      .default(null),
  }),
).max(MAX_WINDOWS);

/**
 * Reads a host's windows from its row's JSON. `days` left out is every day, `weights` left out the host's own.
 *
 * @throws {ValidationError} Naming the window and its field: nothing may be claimed under windows that cannot be read.
 */
export function parseWindows(value: unknown): HostWindow[] {
  const parsed = schema.safeParse(value, { error: wordsOf });
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = ["windows", ...(issue?.path ?? [])].map(String).join(".");
  const found = (issue?.path ?? []).reduce<unknown>(
    (under, step) => typeof under === "object" && under !== null ? Reflect.get(under, step) : undefined,
    value,
  );
  const shown = found === undefined ? "" : ` ${boundText(JSON.stringify(found), MAX_SHOWN)}`;
  throw new ValidationError(
    path,
    `Cannot read the host's ${path}${shown}: ${issue?.message ?? "it is no list of windows"}`,
  );
}

/** The window that holds at a moment, epoch milliseconds: the first in order that does; null when none does. */
export function openWindow(windows: readonly HostWindow[], atMs: number): HostWindow | null {
  return windows.find((window) => holds(window, atMs)) ?? null;
}

/** Whether a window holds at a moment, epoch milliseconds. */
export function holds(window: HostWindow, atMs: number): boolean {
  const { day, minute } = wallTime(atMs, window.timeZone);
  const [from, to] = [minutesOf(window.from), minutesOf(window.to)];
  const begunToday = minute >= from && (from >= to || minute < to);
  if (begunToday && isOn(window, day)) return true;
  const begunYesterday = from >= to && minute < to;
  return begunYesterday && isOn(window, day === 1 ? WEEK : day - 1);
}

/**
 * The first moment after `afterMs` at which a window that allows anything holds, to the minute; null when none does
 * within eight days, longer than any week of windows. Looks at each minute, 50 ms for a week: for people, not for each claim.
 */
export function nextOpening(windows: readonly HostWindow[], afterMs: number): number | null {
  const open = (atMs: number) => (openWindow(windows, atMs)?.maxInFlight ?? 0) > 0;
  if (windows.every((window) => window.maxInFlight === 0)) return null;
  const firstMs = Math.ceil((afterMs + 1) / MINUTE_MS) * MINUTE_MS;
  for (let atMs = firstMs; atMs <= afterMs + 8 * DAY_MS; atMs += MINUTE_MS) if (open(atMs)) return atMs;
  return null;
}

/** A window as a person reads it: `night (Mon–Fri 20:00–03:00 Europe/Berlin)`. */
export function describeWindow({ name, days, from, to, timeZone }: HostWindow): string {
  const on = days.length === 0 ? "" : `${[...days].sort().map((day) => DAYS[day - 1]).join(",")} `;
  return `${name} (${on}${from}–${to} ${timeZone})`;
}

interface WallTime {
  /** 1 (Monday) to 7. */
  readonly day: number;
  /** Minutes since midnight on the wall, 0 to 1 439. */
  readonly minute: number;
}

// Making one costs 50 µs; a fleet's time zones are few, and the row is checked by the zones Intl knows.
const formats = new Map<string, Intl.DateTimeFormat>();

function wallTime(atMs: number, timeZone: string): WallTime {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
    });
    formats.set(timeZone, format);
  }
  const parts = new Map(format.formatToParts(atMs).map(({ type, value }) => [type, value]));
  const minute = Number(parts.get("hour")) * 60 + Number(parts.get("minute"));
  return { day: DAYS.indexOf(parts.get("weekday") ?? "") + 1, minute: minute % DAY_MINUTES };
}

function minutesOf(wall: string): number {
  const [hours = 0, minutes = 0] = wall.split(":").map(Number);
  return hours * 60 + minutes;
}

function isOn({ days }: HostWindow, day: number): boolean {
  return days.length === 0 || days.includes(day);
}

function isTimeZone(name: string): boolean {
  try {
    // Offsets such as +02:00 are taken by Intl too, and would not know daylight saving.
    return /^[A-Za-z]/.test(name) && new Intl.DateTimeFormat("en-US", { timeZone: name }) !== null;
  } catch {
    return false;
  }
}
