/**
 * Objects some of whose methods are replaced, to let them fail, hang or be counted.
 *
 * @module
 */

/** `target` with the methods of `replaced` in place of its own; all others stay bound to it. */
export function overlay<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get(original, name) {
      const own = (replaced as Record<string | symbol, unknown>)[name];
      if (own !== undefined) return own;
      const value = Reflect.get(original, name);
      return typeof value === "function" ? value.bind(original) : value;
    },
  });
}
