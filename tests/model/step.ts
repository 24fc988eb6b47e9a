/**
 * One command of a sequence: what the model says of it, and how the answers of the storages are held to that.
 *
 * @module
 */
import assert from "node:assert/strict";
import type fc from "fast-check";
import type { Store } from "./stores.ts";
import type { WorkModel } from "./work_model.ts";

/** The storages of one run, and how they are used in it. */
export interface World {
  readonly stores: readonly Store[];
  /**
   * Whether claims come of other processes, each with no memory of the last. One that knows its earlier claims may pass over
   * what came back to a place before them, for 100 ms: from then on this is true.
   */
  elsewhere: boolean;
  /** Every id and every key that was named, behind its org: what is compared in the end. */
  readonly ids: Set<string>;
  readonly keys: Set<string>;
  /** How many tokens were minted. */
  tokens: number;
}

/** What a command does: asks the model first, then each storage, and compares. */
export type Act = (model: WorkModel, world: World) => Promise<void>;

/** A command with a name that a person can read. */
export class Step implements fc.AsyncCommand<WorkModel, World> {
  readonly #name: string;
  readonly #args: unknown;
  readonly #act: Act;

  constructor(name: string, args: unknown, act: Act) {
    this.#name = name;
    this.#args = args;
    this.#act = act;
  }

  check(): boolean {
    return true;
  }

  run(model: WorkModel, world: World): Promise<void> {
    return this.#act(model, world);
  }

  toString(): string {
    return `${this.#name}(${JSON.stringify(this.#args)})`;
  }
}

/** What a call came to: its value, or which error it met. */
export type Met = { readonly value: unknown } | { readonly error: string };

/** Makes a call, catching what it throws. */
export async function meet(call: () => unknown): Promise<Met> {
  try {
    return { value: await call() };
  } catch (error) {
    return { error: String((error as { code?: unknown }).code ?? error) };
  }
}

/** Asks every storage, each once; each answer is given to `judge`, or compared with it. */
export async function ask(
  world: World,
  call: (store: Store) => unknown,
  expected: unknown,
  prepare: (value: unknown) => unknown = (value) => value,
): Promise<void> {
  await Promise.all(world.stores.map(async (store) => {
    const met = await meet(() => call(store));
    const seen = "value" in met ? { value: prepare(met.value) } : met;
    assert.deepEqual(seen, { value: expected }, store.name);
  }));
}
