/**
 * Keeps an event that repeats without end from filling the disk: one line an interval, with a count of those left out.
 *
 * @module
 */
import { type Clock, systemClock } from "./clock.ts";
import type { LogFields, Logger } from "./log.ts";

/** How repeats are limited. */
export interface LogLimitOptions {
  /** Default the system clock. */
  readonly clock?: Clock;
  /** The least time between two lines of one key, milliseconds. Default 1 000. */
  readonly intervalMs?: number;
  /** What counts as a repeat. Default the event's name. */
  readonly key?: (event: string, fields: LogFields) => string;
}

// Beyond this many keys the oldest are forgotten: a key that holds outside text must not grow the map for ever.
const MAX_KEYS = 1_000;

/**
 * Wraps a logger so that each key is logged at most once an interval. The next line that passes carries `suppressed`,
 * the number left out since the last.
 */
export function limitRepeats(logger: Logger, options: LogLimitOptions = {}): Logger {
  const clock = options.clock ?? systemClock;
  const intervalMs = options.intervalMs ?? 1_000;
  const seen = new Map<string, { atMs: number; suppressed: number }>();
  function limited(level: keyof Logger): (event: string, fields?: LogFields) => void {
    return (event, fields = {}) => {
      const key = `${level} ${options.key?.(event, fields) ?? event}`;
      const nowMs = clock.monotonic();
      const last = seen.get(key);
      if (last !== undefined && nowMs - last.atMs < intervalMs) {
        last.suppressed++;
        return;
      }
      seen.delete(key);
      seen.set(key, { atMs: nowMs, suppressed: 0 });
      const oldest = seen.size > MAX_KEYS ? seen.keys().next().value : undefined;
      if (oldest !== undefined) seen.delete(oldest);
      const suppressed = last?.suppressed ?? 0;
      logger[level](event, suppressed > 0 ? { ...fields, suppressed } : fields);
    };
  }
  return { debug: limited("debug"), info: limited("info"), warn: limited("warn"), error: limited("error") };
}
