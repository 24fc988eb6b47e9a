/**
 * The shape of a command config's file. What a shape cannot say is checked when it is compiled.
 *
 * @module
 */
import * as z from "zod";

const comment = z.string().optional();
const argument: z.ZodType<RawArgument> = z.lazy(() =>
  z.union([
    z.string(),
    z.strictObject({ file: z.string().min(1) }),
    z.strictObject({ if: z.string(), args: z.array(argument).min(1) }),
  ], { error: 'it must be a text, {"file": PATH} or {"if": FIELD, "args": […]}' })
);

const variable = z.union([
  z.string(),
  z.strictObject({ from: z.string(), optional: z.boolean().optional(), else: z.string().optional() }),
  z.strictObject({ template: z.string() }),
  z.strictObject({ fromEnv: z.string(), optional: z.boolean().optional() }),
  z.strictObject({ secretFile: z.string().min(1) }),
  z.strictObject({ existingFile: z.string(), folder: z.string(), else: z.string().optional() }),
], {
  error:
    'it must be a text, {"from": FIELD}, {"template": TEXT}, {"fromEnv": NAME}, {"secretFile": PATH} or {"existingFile": PATH, "folder": NAME}',
});

const duration = z.string({ error: 'it must be a duration, for example "30s", "15m" or "2h"' });
const ending = z.union([
  z.enum(["done", "retry", "final"]),
  z.strictObject({
    outcome: z.enum(["done", "retry", "final", "defer"]),
    after: duration.optional(),
    note: z.string().max(200).optional(),
  }),
], { error: 'it must be "done", "retry", "final" or {"outcome": "defer", "after": "5m"}' });

const kind = z.strictObject({
  $comment: comment,
  argv: z.array(argument).min(1, { error: "it must name a program at least" }),
  env: z.record(z.string(), variable).optional(),
  envFrom: z.strictObject({ from: z.string(), allow: z.array(z.string()).min(1) }).optional(),
  stdin: z.enum(["none", "payload", "prompt"]).optional(),
  nice: z.int().min(0).max(19).optional(),
  timeLimit: duration.optional(),
  killGrace: duration.optional(),
  retry: z.strictObject({ base: duration.optional(), cap: duration.optional() }).optional(),
  work: z.strictObject({ name: z.string().optional(), keepOnFailure: z.boolean().optional() }).optional(),
  clone: z.strictObject({
    url: z.string().min(1),
    hosts: z.array(z.string().min(1)).min(1).optional(),
    ref: z.string().optional(),
    credentialHelper: z.string().min(1).optional(),
  }).optional(),
  prompt: z.strictObject({
    folder: z.string(),
    file: z.string().min(1),
    role: z.string().optional(),
    roleFile: z.string().min(1).optional(),
  }).optional(),
  exits: z.record(z.string(), ending).optional(),
  loginTest: z.strictObject({ argv: z.array(z.string()).min(1), timeLimit: duration.optional() }).optional(),
});

/** The file. */
export const configSchema = z.strictObject({
  $comment: comment,
  work: z.strictObject({ base: z.string().min(1), keepFailed: z.int().min(0).max(1_000).optional() }),
  logs: z.strictObject({
    folder: z.string().min(1),
    runs: z.int().min(1).max(100_000).optional(),
    totalMiB: z.int().min(1).max(1_048_576).optional(),
    perRunMiB: z.int().min(1).max(10_240).optional(),
  }),
  env: z.record(z.string(), variable).optional(),
  folders: z.record(
    z.string(),
    z.strictObject({
      path: z.string().min(1),
      refresh: z.strictObject({ ref: z.string() }).optional(),
    }),
  ).optional(),
  kinds: z.record(z.string(), kind),
});

/** An entry of an argument list, as it is written. */
export type RawArgument = string | { file: string } | { if: string; args: RawArgument[] };
/** A variable, as it is written. */
export type RawVariable = z.infer<typeof variable>;
/** A kind, as it is written. */
export type RawKind = z.infer<typeof kind>;
/** An end, as it is written. */
export type RawEnding = z.infer<typeof ending>;
/** The file, as it is written. */
export type RawConfig = z.infer<typeof configSchema>;
