/**
 * Whether a value survives JSON exactly, and so Postgres's `jsonb` and SQLite's text alike.
 *
 * @module
 */
import { ValidationError } from "./errors.ts";

/** A value JSON carries without loss. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

// Deeper values are refused before the recursion can exhaust the stack.
const MAX_DEPTH = 200;

/**
 * Checks that `value` survives JSON exactly and encodes to at most `maxBytes` of UTF-8, and returns the encoding.
 *
 * Refused are: `undefined` in an array or at the top, NaN and the infinities, -0, BigInt, functions, symbols, Date, Map,
 * Set and every other class instance, getters, symbol keys and hidden properties, sparse arrays, integers beyond 2^53, NUL, lone surrogates (in values and keys),
 * circular values. A property that is `undefined` is absent, as everywhere in TypeScript.
 *
 * @param path Named in the error: `payload` gives `payload.a[0].b`.
 * @throws {ValidationError} Naming the path of the first value that would be lost or changed, or the size.
 */
export function encodeJson(value: unknown, path: string, maxBytes: number): string {
  check(value, path, 0, new Set());
  const text = JSON.stringify(value);
  // A cheap test first: UTF-8 takes at most three bytes for each UTF-16 unit.
  if (text.length * 3 > maxBytes) {
    const bytes = new TextEncoder().encode(text).length;
    if (bytes > maxBytes) {
      throw new ValidationError(path, `Cannot use ${path}: it encodes to ${bytes} bytes, the limit is ${maxBytes}`);
    }
  }
  return text;
}

function check(value: unknown, path: string, depth: number, above: Set<object>): void {
  switch (typeof value) {
    case "string":
      return checkText(value, path);
    case "number":
      return checkNumber(value, path);
    case "boolean":
      return;
    case "object":
      if (value === null) return;
      break;
    default:
      throw refuse(path, `a ${typeof value} has no JSON form`);
  }
  if (depth >= MAX_DEPTH) throw refuse(path, `it is nested deeper than ${MAX_DEPTH} levels`);
  if (above.has(value)) throw refuse(path, "it contains itself");
  above.add(value);
  checkShape(value, path);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) check(value[i], `${path}[${i}]`, depth + 1, above);
  } else {
    for (const key of Object.keys(value)) {
      const below = /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
      const entry = readPlain(value, key, below);
      if (entry === undefined) continue;
      checkText(key, below);
      check(entry, below, depth + 1, above);
    }
  }
  above.delete(value);
}

/** Refuses what JSON would not see of an object or array, or would see as something else. */
function checkShape(value: object, path: string): void {
  const prototype = Object.getPrototypeOf(value);
  const array = Array.isArray(value);
  if (prototype !== (array ? Array.prototype : Object.prototype) && (array || prototype !== null)) {
    throw refuse(path, `an instance of ${prototype?.constructor?.name ?? "a class"} does not come back as one`);
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") throw refuse(path, "it has a toJSON of its own");
  const own = Reflect.ownKeys(value);
  if (array) {
    // Its entries and its length.
    if (own.length > value.length + 1) throw refuse(path, "the array holds more than its entries");
  } else if (own.length > Object.keys(value).length) {
    const symbol = own.some((key) => typeof key === "symbol");
    throw refuse(path, symbol ? "a symbol is no key of JSON" : "it has a property that is not enumerable");
  }
}

/** A property's value; a getter could give another one when the value is written. */
function readPlain(value: object, key: string, path: string): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(value, key);
  if (descriptor?.get !== undefined) throw refuse(path, "a getter may give another value each time");
  return descriptor?.value;
}

function checkText(text: string, path: string): void {
  if (text.includes("\u0000")) throw refuse(path, "it holds a NUL character, which Postgres cannot store");
  if (!text.isWellFormed()) throw refuse(path, "it holds a lone surrogate, which is no Unicode text");
}

function checkNumber(value: number, path: string): void {
  if (!Number.isFinite(value)) throw refuse(path, `${value} has no JSON form`);
  if (Object.is(value, -0)) throw refuse(path, "-0 comes back as 0");
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw refuse(path, `the integer ${value} lies beyond 2^53 and is not exact; send it as text`);
  }
}

function refuse(path: string, why: string): ValidationError {
  return new ValidationError(path, `Cannot use ${path}: ${why}`);
}
