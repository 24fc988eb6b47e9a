/**
 * Items of any shape, given to the managers of every store: stored and read back equal, or refused, everywhere alike.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { ValidationError } from "../../src/core/errors.ts";
import { parsePayload } from "../../src/work/kinds.ts";
import type { OpContext } from "../../src/core/context.ts";
import type { EnqueueOptions, NewWorkItem, Payload, WorkItem } from "../../src/work/types.ts";
import { ANY, type ManagersRig, openManagers } from "../support/managers_rig.ts";
import { ENGINES } from "../support/stores.ts";
import { make, objects, oddText, type Recipe, recipes } from "./recipes.ts";
import type { Session, Target } from "./target.ts";

const LIMIT_BYTES = 4_096;

interface Input {
  readonly payload: Recipe;
  /** Adds text to the payload until it encodes to so many bytes more than the limit; null: leaves it. */
  readonly pad: { readonly over: number; readonly unit: string } | null;
  /** Other fields of the item and of when it starts. */
  readonly fields: Readonly<Record<string, Recipe>>;
}

const FIELDS = ["idempotencyKey", "lane", "weight", "hostPreference", "priority", "maxAttempts", "id", "targetId"];
const STARTS = ["delayMs", "notBefore"];
const uuid = fc.uuid().map((text) => text as Recipe);
const field: fc.Arbitrary<Recipe> = fc.oneof(
  recipes(),
  uuid,
  oddText,
  fc.integer(),
  fc.constant({ $: "date" as const }),
);

const inputs: fc.Arbitrary<Input> = fc.record({
  payload: fc.oneof({ weight: 9, arbitrary: objects(1) }, { weight: 1, arbitrary: recipes() }),
  pad: fc.option(
    fc.record({ over: fc.constantFrom(-1, 0, 1, 2, 3), unit: fc.constantFrom("a", "é", "🚚", "€", "\n") }),
    { freq: 3 },
  ),
  fields: fc.oneof(
    { weight: 2, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.dictionary(fc.constantFrom(...FIELDS, ...STARTS), field, { maxKeys: 2 }) },
  ),
});

/** The target. */
export const payloadTarget: Target<Input> = {
  name: "payloads",
  behaviour: "an item of any shape is stored and read back equal, or refused by its field, on every store alike",
  inputs,
  open,
};

interface Verdict {
  readonly refused: string | null;
  readonly stored: Partial<WorkItem> | null;
}

async function open(): Promise<Session<Input>> {
  const rigs: ManagersRig[] = [];
  for (const engine of ENGINES) rigs.push(await openManagers(engine, { payloadLimitBytes: LIMIT_BYTES }));
  const members = await Promise.all(rigs.map((rig) => rig.member()));
  let runs = 0;
  return {
    async run(input) {
      const key = `key-${runs++}`;
      const verdicts = await Promise.all(rigs.map((rig, n) => judge(rig, members[n] as OpContext, input, key)));
      for (const verdict of verdicts) assert.deepEqual(verdict, verdicts[0], "the stores differ");
      if (input.pad !== null && Object.keys(input.fields).length === 0) checkSize(input, verdicts[0]);
    },
    async close() {
      for (const rig of rigs) await rig.close();
    },
  };
}

async function judge(rig: ManagersRig, ctx: OpContext, input: Input, key: string): Promise<Verdict> {
  const { item, options, payload } = build(input, key);
  try {
    const result = await rig.managers.work.enqueue(ctx, item, options);
    assert.ok(result.item, "the item is told");
    const stored = await rig.managers.work.read(ctx, result.id);
    // What JSON leaves out, a property that is undefined, is absent.
    const expected = JSON.parse(JSON.stringify(payload));
    if (result.outcome === "INSERTED") {
      assert.deepEqual(stored.payload, expected, "what is read back is not what was given");
      assert.deepEqual(parsePayload(ANY, stored.payload), expected, "what a handler sees is not what was given");
    }
    return { refused: null, stored: pick(stored, item) };
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    assert.ok(error.field !== "" && error.message.startsWith("Cannot "), error.message);
    assert.ok(error.message.length < 5_000, `a message of ${error.message.length} characters`);
    return { refused: error.message, stored: null };
  }
}

function pick(stored: WorkItem, given: object): Partial<WorkItem> {
  const same = ["kind", "lane", "weight", "priority", "maxAttempts", "hostPreference", "targetId", "idempotencyKey"];
  if ("id" in given) same.push("id");
  return { ...Object.fromEntries(same.map((name) => [name, stored[name as keyof WorkItem]])), payload: stored.payload };
}

function build(
  { payload: recipe, pad, fields }: Input,
  key: string,
): { item: NewWorkItem; options: EnqueueOptions; payload: unknown } {
  let payload = make(recipe);
  if (pad !== null) payload = padded(payload, pad);
  const made = Object.entries(fields).map(([name, part]) => [name, make(part)] as const);
  const options = Object.fromEntries(made.filter(([name]) => STARTS.includes(name)));
  const others = Object.fromEntries(made.filter(([name]) => !STARTS.includes(name)));
  return { item: { kind: ANY.name, idempotencyKey: key, payload: payload as Payload, ...others }, options, payload };
}

const encoder = new TextEncoder();
const sizeOf = (value: unknown) => encoder.encode(JSON.stringify(value) ?? "").length;

/** With as much text beside it as makes it just so large. */
function padded(payload: unknown, { over, unit }: NonNullable<Input["pad"]>): unknown {
  let size: number;
  try {
    size = sizeOf({ payload, pad: "" });
  } catch {
    return payload;
  }
  const left = LIMIT_BYTES + over - size;
  const each = sizeOf(unit) - 2;
  const times = Math.floor(left / each);
  if (times <= 0) return payload;
  return { payload, pad: unit.repeat(times) + "a".repeat(left - times * each) };
}

/** What is refused for its size is above the limit, and what is above is refused. */
function checkSize(input: Input, verdict: Verdict | undefined): void {
  const { payload } = build(input, "");
  if (verdict?.refused === null) assert.ok(sizeOf(payload) <= LIMIT_BYTES, `${sizeOf(payload)} bytes were taken`);
  if (/encodes to \d+ bytes/.test(verdict?.refused ?? "")) assert.ok(sizeOf(payload) > LIMIT_BYTES);
}
