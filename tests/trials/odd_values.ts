/**
 * Values a handler may throw that are no ordinary errors. Each breaks some way of reading `error.message`.
 *
 * @module
 */

const ODD: Readonly<Record<string, () => unknown>> = {
  nothing: () => undefined,
  null: () => null,
  number: () => 42,
  "empty string": () => "",
  symbol: () => Symbol("odd"),
  "empty object": () => ({}),
  "message getter throws": () => ({
    get message(): string {
      throw new Error("no message for you");
    },
  }),
  "toString throws": () => ({
    toString(): string {
      throw new Error("no text for you");
    },
  }),
  "revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  "its own cause": () => {
    const error = new Error("circular");
    error.cause = error;
    return error;
  },
  "a message of 10 MB": () => new Error("x".repeat(10_000_000)),
  "ten thousand errors": () =>
    new AggregateError(Array.from({ length: 10_000 }, (_, i) => new Error(`error ${i}`)), "many"),
  "no stack": () => {
    const error = new Error("stackless");
    delete error.stack;
    return error;
  },
  "NUL and a lone surrogate": () => new Error("a\u0000b\uD83D"),
};

/** The names of the values. */
export const ODD_CODES: readonly string[] = Object.keys(ODD);

/** The value `code` names. */
export function oddValue(code: string): unknown {
  const make = ODD[code];
  return make === undefined ? new Error(`There is no odd value "${code}"`) : make();
}
