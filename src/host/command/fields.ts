/**
 * What a config's placeholders may name: fields of the item, its payload, the host and the run.
 *
 * @module
 */
import { boundText } from "../../core/describe_error.ts";
import { suggest } from "../../core/suggest.ts";
import type { WorkItem } from "../../work/types.ts";
import { invalidItem } from "./failure.ts";

/** What placeholders are read from. */
export interface FieldScope {
  readonly item: WorkItem;
  readonly orgId: string;
  /** The name of the machine's row in `queue.hosts`. */
  readonly host: string;
  /** Which runner: `host-runner@machine/1234`. */
  readonly worker: string;
  /** Grows with every claim of the item. */
  readonly fence: number;
  /** What only a begun run has; fields of it are absent before. */
  readonly run: Partial<Record<RunField, string>>;
}

/** Fields that a run has once it has begun. */
export type RunField = "workDir" | "payloadFile" | "promptFile" | "prompt" | "role";

/** A field, as it was written and as it is read. */
export interface FieldPath {
  /** `payload.repo`. */
  readonly text: string;
  readonly root: "item" | "org" | "host" | "worker" | "run" | "payload";
  /** Below its root; names and indexes. */
  readonly steps: readonly (string | number)[];
}

const ITEM_FIELDS: Readonly<Record<string, (scope: FieldScope) => string | null>> = {
  id: ({ item }) => item.id,
  kind: ({ item }) => item.kind,
  lane: ({ item }) => item.lane,
  key: ({ item }) => item.idempotencyKey,
  targetId: ({ item }) => item.targetId,
  priority: ({ item }) => String(item.priority),
  weight: ({ item }) => item.weight,
  attempt: ({ item }) => String(item.attempts),
  maxAttempts: ({ item }) => String(item.maxAttempts),
  fence: ({ fence }) => String(fence),
  createdAt: ({ item }) => item.createdAt.toISOString(),
  requestId: ({ item }) => item.requestId,
};

const RUN_FIELDS: readonly RunField[] = ["workDir", "payloadFile", "promptFile", "prompt", "role"];

/** Every field but those of the payload, as configs write them. */
export const FIXED_FIELDS: readonly string[] = [
  ...Object.keys(ITEM_FIELDS).map((name) => `item.${name}`),
  "org.id",
  "host.name",
  "worker.name",
  ...RUN_FIELDS.map((name) => `run.${name}`),
];

const PAYLOAD_STEPS = /^payload((?:\.[A-Za-z_$][\w$-]*|\[\d{1,6}\])+)$/;

/** Reads `payload.repo`, `payload.list[0].name`, `item.id`. A string says why it is none, with the fix. */
export function parseField(text: string): FieldPath | string {
  const below = PAYLOAD_STEPS.exec(text)?.[1];
  if (below !== undefined) {
    const steps = [...below.matchAll(/\.([^.[]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
    return { text, root: "payload", steps };
  }
  if (FIXED_FIELDS.includes(text)) {
    const [root, name] = text.split(".") as [FieldPath["root"], string];
    return { text, root, steps: [name] };
  }
  const meant = suggest(text, FIXED_FIELDS);
  return `there is no field {${boundText(text, 100)}}: ` +
    (meant !== null ? `did you mean {${meant}}?` : `use payload.NAME or one of ${FIXED_FIELDS.join(", ")}`);
}

/**
 * A field's value as text; null when the item has none (absent, null).
 *
 * @throws {CommandFailure} `invalid_item`: it is a list or an object, which is no single value.
 */
export function readField(scope: FieldScope, field: FieldPath): string | null {
  const name = String(field.steps[0]);
  switch (field.root) {
    case "item":
      return ITEM_FIELDS[name]?.(scope) ?? null;
    case "org":
      return scope.orgId;
    case "host":
      return scope.host;
    case "worker":
      return scope.worker;
    case "run":
      return scope.run[name as RunField] ?? null;
    case "payload":
      return asText(readPayload(scope.item.payload, field.steps), field.text);
  }
}

/** The value at a path of the payload, whatever it is; undefined where there is none. */
export function readPayload(payload: unknown, steps: readonly (string | number)[]): unknown {
  let value = payload;
  for (const step of steps) {
    // Own properties alone: what every object inherits is no field of an item.
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}

function asText(value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw invalidItem(`${name} is ${Array.isArray(value) ? "a list" : "an object"}, where a single value is needed`);
}
