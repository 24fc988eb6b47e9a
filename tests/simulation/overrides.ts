/**
 * Takes time and chance away from the process while a world runs in it: `Math.random`, the bytes behind ids, `Date.now`
 * and `performance.now` come from the seed, and are given back afterwards.
 *
 * `performance.now` stands still, so that the embedded store never thinks it has held the thread for long: its answers
 * come in the same turn. `Date.now` is asked only by the id generator, which remembers the last time it was told for as
 * long as the process lives; each call tells it a later one, so that what it makes depends on the seed's bytes alone.
 *
 * @module
 */
import type { Random } from "./random.ts";

let lastIdMs = Date.UTC(2026, 0, 1);

/** Puts the seed in the place of chance. Returns what undoes it. */
export function overrideGlobals(random: Random): () => void {
  const { random: mathRandom } = Math;
  const { now } = Date;
  const { getRandomValues, randomUUID } = crypto;
  const performanceNow = performance.now;
  const stoodStillMs = performance.now();
  Math.random = () => random.next();
  Date.now = () => ++lastIdMs;
  performance.now = () => stoodStillMs;
  crypto.getRandomValues = (array) => {
    if (array !== null) random.fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  };
  crypto.randomUUID = () => uuidOf(random);
  return () => {
    Math.random = mathRandom;
    Date.now = now;
    performance.now = performanceNow;
    crypto.getRandomValues = getRandomValues;
    crypto.randomUUID = randomUUID;
  };
}

function uuidOf(random: Random): `${string}-${string}-${string}-${string}-${string}` {
  const hex = Array.from({ length: 16 }, () => random.whole(0, 255).toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
