/**
 * Stand-ins for what a host does not have.
 *
 * @module
 */
import { ValidationError } from "../core/errors.ts";

/**
 * A manager whose every operation rejects: what it is for is left to workers with a database.
 *
 * @param what Whose operations they are, for the error: `audit entries`.
 */
export function absentManager<T extends object>(what: string): T {
  return new Proxy({} as T, {
    get(_target, name) {
      // Nobody may take it for a promise.
      if (typeof name === "symbol" || name === "then") return undefined;
      return () =>
        Promise.reject(
          new ValidationError(name, `Cannot ${name} on a host runner: ${what} are left to workers with a database`),
        );
    },
  });
}
