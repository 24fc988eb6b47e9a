/**
 * The guard of the process. The driver can throw where nobody can catch it, from a timer of its own, and so can the
 * platform, on a socket whose listeners were taken off. Our clients and sockets leave neither a known chance (thousands of
 * kills a minute raise none), but a process must not die of an unknown one: the client concerned is cut by its deadline,
 * and the pool makes a new one.
 *
 * @module
 */

/**
 * Keeps the process alive on errors nobody caught, and reports each. Install once a process, at its start. Whoever uses
 * it must not rely on an uncaught error to end the process.
 *
 * @param report Called with each stray error; must not throw.
 * @returns A function that removes the guard.
 */
export function guardStrayErrors(report: (error: unknown) => void): () => void {
  const onError = (event: ErrorEvent) => {
    event.preventDefault();
    report(event.error);
  };
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    report(event.reason);
  };
  addEventListener("error", onError);
  addEventListener("unhandledrejection", onRejection);
  return () => {
    removeEventListener("error", onError);
    removeEventListener("unhandledrejection", onRejection);
  };
}
