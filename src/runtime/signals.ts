/**
 * Stop signals. The first asks for a drain, the second skips its grace, further ones change nothing.
 *
 * @module
 */

/** How far a person or a supervisor has asked a process to stop. */
export interface StopRequest {
  /** Aborts at the first signal. */
  readonly stopping: AbortSignal;
  /** Aborts at the second. */
  readonly hurrying: AbortSignal;
  /** Stops listening to signals. */
  dispose(): void;
}

// SIGHUP is a terminal that was closed: drain too, or the worker would live on with nobody to see it.
const STOP_SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGBREAK"]
  : ["SIGTERM", "SIGINT", "SIGHUP"];

/** Starts listening to SIGTERM, SIGINT and SIGHUP. `onSignal` is told of each one, for the log. */
export function listenForStop(onSignal: (signal: Deno.Signal, count: number) => void): StopRequest {
  const stopping = new AbortController();
  const hurrying = new AbortController();
  let count = 0;
  const listeners = STOP_SIGNALS.map((signal) => {
    const listener = () => {
      count++;
      onSignal(signal, count);
      if (count === 1) stopping.abort();
      else if (count === 2) hurrying.abort();
    };
    Deno.addSignalListener(signal, listener);
    return { signal, listener };
  });
  return {
    stopping: stopping.signal,
    hurrying: hurrying.signal,
    dispose() {
      for (const { signal, listener } of listeners) Deno.removeSignalListener(signal, listener);
    },
  };
}
