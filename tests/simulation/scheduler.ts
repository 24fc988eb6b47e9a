/**
 * The one scheduler of a world: virtual time, and everything that will happen in it. Between two events all promises
 * settle, so what runs next is never left to the engine.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Random } from "./random.ts";

/** Who an event happens to. Nothing happens to the dead; what happens to the held waits until they are let go. */
export interface Owner {
  readonly name: string;
  readonly dead: boolean;
  readonly held: boolean;
}

/** Something that will happen. */
export interface SimEvent {
  readonly atMs: number;
  readonly order: number;
  readonly owner: Owner | null;
  readonly run: () => void;
  cancelled: boolean;
}

/** A binary heap of events in order of time; what falls on one moment goes by the seed. */
export class Scheduler {
  nowMs = 0;
  /** Events that happened. */
  steps = 0;
  readonly #random: Random;
  readonly #heap: SimEvent[] = [];
  readonly #held = new Map<Owner, SimEvent[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Lets `run` happen to `owner` in `ms` milliseconds of world time. */
  after(ms: number, owner: Owner | null, run: () => void): SimEvent {
    const event = { atMs: this.nowMs + Math.max(ms, 0), order: this.#random.next(), owner, run, cancelled: false };
    this.#push(event);
    return event;
  }

  /** Lets the next event happen and everything settle that follows from it. False when nothing is left. */
  async step(): Promise<boolean> {
    for (let event = this.#pop(); event !== undefined; event = this.#pop()) {
      if (event.cancelled || event.owner?.dead === true) continue;
      this.nowMs = Math.max(this.nowMs, event.atMs);
      if (event.owner?.held === true) {
        const waiting = this.#held.get(event.owner) ?? [];
        this.#held.set(event.owner, waiting);
        waiting.push(event);
        continue;
      }
      this.steps++;
      event.run();
      await settle();
      return true;
    }
    return false;
  }

  /** Delivers, all at once, what waited for somebody who was held. */
  release(owner: Owner): void {
    const waiting = this.#held.get(owner) ?? [];
    this.#held.delete(owner);
    for (const event of waiting) if (!event.cancelled) this.after(this.#random.next() * 0.5, owner, event.run);
  }

  #push(event: SimEvent): void {
    const heap = this.#heap;
    let i = heap.push(event) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      const parent = heap[up];
      if (parent === undefined || !isBefore(event, parent)) break;
      heap[i] = parent;
      i = up;
    }
    heap[i] = event;
  }

  #pop(): SimEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let i = 0;
    for (;;) {
      const left = heap[2 * i + 1];
      const right = heap[2 * i + 2];
      if (left === undefined) break;
      const [child, at] = right !== undefined && isBefore(right, left) ? [right, 2 * i + 2] : [left, 2 * i + 1];
      if (!isBefore(child, last)) break;
      heap[i] = child;
      i = at;
    }
    heap[i] = last;
    return first;
  }
}

function isBefore(a: SimEvent, b: SimEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** One turn of the event loop: before it comes every promise that can settle has. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
