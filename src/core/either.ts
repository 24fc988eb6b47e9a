/**
 * One abort signal of several.
 *
 * @module
 */

/** A signal of several, and a way to let go of them. */
export interface Either extends Disposable {
  /** Aborts with the first of them, with its reason. */
  readonly signal: AbortSignal;
}

/**
 * Aborts with the first of `signals`; one that is missing never aborts. Dispose it when the wait is over (`using`): until
 * then each of `signals` keeps a listener, and a worker's stop signal lives as long as the worker.
 *
 * In the place of `AbortSignal.any`: on Deno 2.7.11 its signal is garbage-collected once nothing but a listener holds it,
 * and then tells nobody. A command that waited for one never ended. Here each of `signals` holds the signal made of them.
 */
export function eitherOf(...signals: readonly (AbortSignal | undefined)[]): Either {
  const either = new AbortController();
  const held = signals.filter((signal) => signal !== undefined);
  const dispose = () => held.forEach((signal) => signal.removeEventListener("abort", tell));
  function tell(this: void, event: Event): void {
    dispose();
    either.abort((event.currentTarget as AbortSignal).reason);
  }
  const first = held.find((signal) => signal.aborted);
  if (first !== undefined) either.abort(first.reason);
  else held.forEach((signal) => signal.addEventListener("abort", tell, { once: true }));
  return { signal: either.signal, [Symbol.dispose]: dispose };
}
