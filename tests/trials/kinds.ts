/**
 * The kinds of the trials: each is a way a handler can behave. Shared by the worker program and by the tests, which
 * enqueue from outside.
 *
 * @module
 */
import { z } from "zod";
import { defineKind } from "../../src/work/kinds.ts";
import type { WorkKind } from "../../src/work/types.ts";

// Short, so that three attempts take less than a second.
const retry = { baseMs: 1, capMs: 100 };
const timed = z.object({ ms: z.number() });

function kind(name: string): WorkKind {
  return defineKind(name, { schema: z.looseObject({}), retry });
}

/** Returns. */
export const OK: WorkKind = kind("OK");
/** Waits `ms`, or `againMs` when it is not its first attempt, and obeys its signal. */
export const SLEEP = defineKind("SLEEP", { schema: timed.extend({ againMs: z.number().optional() }), retry });
/** Waits `ms` and ignores its signal. */
export const DEAF = defineKind("DEAF", { schema: timed, retry });
/** Computes for `ms` and never yields; at once done when it is not its first attempt. */
export const SPIN = defineKind("SPIN", { schema: timed, retry });
/** Throws the value that `code` names; see odd_values.ts. */
export const THROW = defineKind("THROW", { schema: z.object({ code: z.string() }), retry });
/** Kills its own process. */
export const SUICIDE: WorkKind = kind("SUICIDE");
/** Logs its payload, and the memory in use. */
export const ECHO: WorkKind = kind("ECHO");
/** Waits for its worker to be told to stop or for `ms`, then enqueues an OK item under the key `key`. */
export const ENQUEUE = defineKind("ENQUEUE", { schema: z.object({ ms: z.number(), key: z.string() }), retry });

/** All of them. */
export const TRIAL_KINDS: readonly WorkKind[] = [
  ...[OK, SUICIDE, ECHO],
  ...[SLEEP, DEAF, SPIN, THROW, ENQUEUE] as unknown as WorkKind[],
];
