/**
 * The kind of work this worker takes: none that does anything.
 *
 * @module
 */
import * as z from "zod";
import { defineKind, type WorkKind } from "../../mod.ts";

/** Does nothing. An item of it proves that claims, handlers and completions work, end to end. */
export const NOOP: WorkKind = defineKind("NOOP", { schema: z.looseObject({}), timeoutMs: 60_000 });
