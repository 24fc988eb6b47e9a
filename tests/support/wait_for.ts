/**
 * Waiting in tests: for a condition somebody can observe, with a bound, never for a length of time.
 *
 * @module
 */

/**
 * Polls `look` until it gives something other than undefined or false.
 *
 * @param what Named when the wait ends in vain.
 * @param options Default: every 20 ms, at most 10 000 ms.
 * @throws What `look` throws, or an error after the bound.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 10_000;
  for (const untilMs = performance.now() + timeoutMs;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > untilMs) throw new Error(`Waited ${timeoutMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 20));
  }
}
