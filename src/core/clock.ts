/**
 * Time, injected. Code that waits or measures takes a `Clock`, so tests and the simulation move time by hand.
 *
 * @module
 */
import { nextTurn } from "./turns.ts";

/** Wall time, monotonic time and waiting. */
export interface Clock {
  /** Wall time, milliseconds since the epoch. May jump either way. */
  now(): number;
  /** Monotonic milliseconds from an arbitrary start. Never goes back; may stand still while the host sleeps. */
  monotonic(): number;
  /**
   * Resolves after `ms` milliseconds, or at once when `signal` aborts: waking early is not an error. Any length is
   * honoured, also beyond the 2^31 ms a platform timer holds; 0 is the next turn of the event loop.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// A platform timer holds a signed 32-bit count and fires at once beyond it.
const LONGEST_TIMER_MS = 2_147_483_647;

/** The real clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: sleepFor,
};

function sleepFor(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    let left = ms;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const step = () => {
      if (left <= 0) return finish();
      const part = Math.min(left, LONGEST_TIMER_MS);
      left -= part;
      timer = setTimeout(step, part);
    };
    signal?.addEventListener("abort", finish, { once: true });
    // A timer of 0 waits a millisecond; the next turn of the event loop is enough.
    if (ms <= 0) void nextTurn().then(finish);
    else step();
  });
}
