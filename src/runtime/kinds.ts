/**
 * Which kinds a worker takes.
 *
 * @module
 */
import { suggest } from "../core/suggest.ts";
import type { WorkHandler } from "../work/types.ts";
import { UsageError } from "./usage_error.ts";

/**
 * Refuses kinds this program does not know, before anything is opened.
 *
 * @throws {UsageError} Naming the kind, the nearest one and all that are known.
 */
export function checkKinds(asked: readonly string[] | null, known: readonly string[]): void {
  for (const kind of asked ?? []) {
    if (known.includes(kind)) continue;
    const near = suggest(kind, known);
    throw new UsageError(
      `Cannot use --kind ${kind}: this worker does not know it${near === null ? "" : `, did you mean ${near}?`}; ` +
        `it knows ${known.length === 0 ? "none" : known.join(", ")}`,
    );
  }
}

/**
 * The handlers of the kinds asked for, all of them when none was.
 *
 * @throws {UsageError} A kind has no handler here, or no handler is left at all.
 * @throws {Error} Two handlers are of one kind: the container's fault.
 */
export function chooseHandlers(asked: readonly string[] | null, handlers: readonly WorkHandler[]): WorkHandler[] {
  const byKind = new Map<string, WorkHandler>();
  for (const handler of handlers) {
    if (byKind.has(handler.kind.name)) throw new Error(`Two handlers were built for kind ${handler.kind.name}`);
    byKind.set(handler.kind.name, handler);
  }
  const names = [...byKind.keys()];
  if (names.length === 0) throw new UsageError("Cannot serve as this worker has no handlers; use another command");
  return (asked ?? names).map((kind) => {
    const handler = byKind.get(kind);
    if (handler === undefined) {
      throw new UsageError(`Cannot use --kind ${kind}: it has no handler here; this worker runs ${names.join(", ")}`);
    }
    return handler;
  });
}
