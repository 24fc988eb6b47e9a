/**
 * What one line, or one set of flags, asks `enqueue` for.
 *
 * @module
 */
import * as z from "zod";
import { EMPTY_UUID, isUuid } from "../core/ids.ts";
import type { EnqueueOptions, NewWorkItem, Payload } from "../work/types.ts";
import { suggest } from "../core/suggest.ts";

/** One item to enqueue, for whom, and when it may start. */
export interface EnqueueRequest {
  readonly orgId: string;
  /** `EMPTY_UUID` stands for the org itself. */
  readonly userId: string;
  readonly item: NewWorkItem;
  readonly options: EnqueueOptions;
}

/** Values for lines that lack them, from the flags. */
export type LineDefaults = Readonly<Partial<Record<"org" | "user" | "kind" | "lane" | "priority", string | number>>>;

const uuid = z.string().refine(isUuid, "must be a uuid");

// Ranges of numbers and texts are the manager's to check: one rule, one place.
const SHAPE = {
  org: uuid,
  user: uuid.optional(),
  id: uuid.optional(),
  kind: z.string(),
  key: z.string(),
  // Handed on as it is: a copy key by key would lose one that is called "__proto__".
  payload: z.custom<Payload>(isObject, "must be a JSON object"),
  target: uuid.optional(),
  lane: z.string().optional(),
  priority: z.number().optional(),
  weight: z.string().optional(),
  hostPreference: z.string().optional(),
  maxAttempts: z.number().optional(),
  delayMs: z.number().optional(),
  notBefore: z.iso.datetime({ offset: true }).optional(),
};
const LINE = z.strictObject(SHAPE);

/** Reads one NDJSON line. Returns the request, or why it is refused. */
export function parseLine(text: string, defaults: LineDefaults): EnqueueRequest | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `the line is no JSON: ${error instanceof Error ? error.message : error}`;
  }
  return isObject(value) ? parseRequest({ ...defaults, ...value }) : "the line is no JSON object";
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Checks a request's fields. Returns the request, or why it is refused. */
export function parseRequest(fields: Readonly<Record<string, unknown>>): EnqueueRequest | string {
  const parsed = LINE.safeParse(fields);
  if (!parsed.success) {
    // A misspelled field is the cause, the missing one its effect: tell the cause.
    const { issues } = parsed.error;
    return describeIssue(issues.find((issue) => issue.code === "unrecognized_keys") ?? issues[0], fields);
  }
  const line = parsed.data;
  if (line.delayMs !== undefined && line.notBefore !== undefined) return "delayMs and notBefore exclude each other";
  return {
    orgId: line.org.toLowerCase(),
    userId: line.user?.toLowerCase() ?? EMPTY_UUID,
    item: {
      ...(line.id === undefined ? {} : { id: line.id }),
      kind: line.kind,
      idempotencyKey: line.key,
      payload: line.payload,
      ...(line.target === undefined ? {} : { targetId: line.target }),
      ...(line.lane === undefined ? {} : { lane: line.lane }),
      ...(line.priority === undefined ? {} : { priority: line.priority }),
      ...(line.weight === undefined ? {} : { weight: line.weight }),
      ...(line.hostPreference === undefined ? {} : { hostPreference: line.hostPreference }),
      ...(line.maxAttempts === undefined ? {} : { maxAttempts: line.maxAttempts }),
    },
    options: {
      ...(line.delayMs === undefined ? {} : { delayMs: line.delayMs }),
      ...(line.notBefore === undefined ? {} : { notBefore: new Date(line.notBefore) }),
    },
  };
}

function describeIssue(issue: z.core.$ZodIssue | undefined, fields: Readonly<Record<string, unknown>>): string {
  if (issue === undefined) return "the line is malformed";
  if (issue.code === "unrecognized_keys") {
    const name = issue.keys[0] ?? "";
    const near = suggest(name, Object.keys(SHAPE));
    return `unknown field ${JSON.stringify(name)}${near === null ? "" : `, did you mean ${near}?`}`;
  }
  const field = issue.path.join(".");
  if (issue.path.length === 1 && fields[field] === undefined) return `${field} is missing`;
  return `${field}: ${issue.message}`;
}
