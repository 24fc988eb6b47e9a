/**
 * Turns of the event loop: how work that is done at once, without waiting for anybody, lets everybody else have a go.
 *
 * Timers that are due fire at each turn. Sockets do not have their go by that: the runtime looks at them when nothing
 * else is to be done, or at every 61st turn. A worker on an embedded store, which goes from one turn straight into the
 * next, answered its health probe after 1.3 s. Hence such turns end in a rest now and then.
 *
 * @module
 */
import { setImmediate } from "node:timers";

/** Work in one turn: once it has held the thread for longer, its answers wait for the next turn. */
const LONGEST_HOLD_MS = 10;
/** Turns that follow each other for this long without a rest end in one: a millisecond or two in which nothing runs. */
const LONGEST_UNRESTED_MS = 40;
// Holds further apart than this had a rest between them.
const APART_MS = 100;
// Who joins a rest late has kept the process busy during it, so it begins again: with one alone a probe still waited 1 s.
const MOST_RESTS = 4;

/** A process has one event loop, so there is one of this. */
const loop = { holds: false, heldSinceMs: 0, lastHoldMs: -Infinity, unrestedSinceMs: 0, joined: 0, awaited: 0 };
let resting: Promise<void> | null = null;

/** Called before work that keeps the thread. */
export function beginHold(): void {
  const nowMs = performance.now();
  if (nowMs - loop.lastHoldMs > APART_MS) loop.unrestedSinceMs = nowMs;
  loop.lastHoldMs = nowMs;
  if (loop.holds) return;
  loop.holds = true;
  loop.heldSinceMs = nowMs;
  setImmediate(() => loop.holds = false);
}

/**
 * Called after work that keeps the thread, before its answer is handed on. Resolves at once, or with the next turn when
 * holds have taken much of this one: counted from its first, so that work that comes by itself is answered at once.
 */
export async function endHold(): Promise<void> {
  if (performance.now() - loop.heldSinceMs >= LONGEST_HOLD_MS) await nextTurn();
}

/**
 * Resolves with the next turn of the event loop, or after a rest when holds have gone on for long without one. A process
 * without holds waits for sockets by itself: it never rests here.
 */
export async function nextTurn(): Promise<void> {
  const nowMs = performance.now();
  loop.awaited++;
  if (nowMs - loop.lastHoldMs > APART_MS || nowMs - loop.unrestedSinceMs < LONGEST_UNRESTED_MS) {
    await new Promise<void>((resolve) => void setImmediate(resolve));
  } else {
    loop.joined++;
    await (resting ??= rest());
  }
  loop.awaited--;
}

/** Whether anybody waits for a turn or a rest: for tests that let everything settle. */
export function isTurnAwaited(): boolean {
  return loop.awaited > 0;
}

async function rest(): Promise<void> {
  for (let rests = 0; rests < MOST_RESTS; rests++) {
    const { joined } = loop;
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (loop.joined === joined) break;
  }
  resting = null;
  loop.unrestedSinceMs = performance.now();
}
