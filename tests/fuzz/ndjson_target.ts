/**
 * NDJSON for `enqueue`: each line is told as inserted, already there or refused; nothing of a refused one is written; the
 * numbers are right, and the same again when the file is.
 *
 * @module
 */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { enqueueLines } from "../../src/cli/enqueue.ts";
import { ANY, type ManagersRig, openManagers } from "../support/managers_rig.ts";
import type { Engine } from "../support/stores.ts";
import { bytesOf, make, objects, oddText, type Recipe, recipes } from "./recipes.ts";
import type { Session, Target } from "./target.ts";

const LIMIT_BYTES = 2_048;

interface Input {
  /** Default SQLite in memory. */
  readonly engine?: Engine;
  readonly lines: readonly Line[];
  /** How many bytes come at once. */
  readonly chunk: number;
  readonly end: "\n" | "\r\n";
}

/** A line: an object whose fields are changed, text, or bytes. */
type Line =
  | {
    readonly fields: Readonly<Record<string, Recipe>>;
    readonly without: readonly string[];
    readonly cut: number | null;
  }
  | { readonly text: string }
  | { readonly bytes: string };

const FIELDS = [
  ...["org", "user", "id", "kind", "key", "payload", "target", "lane", "priority", "weight", "hostPreference"],
  ...["maxAttempts", "delayMs", "notBefore", "pay load", "__proto__", "constructor", "prio"],
];

const value: fc.Arbitrary<Recipe> = fc.oneof(
  recipes(1),
  fc.constantFrom<Recipe>(
    "ANY",
    "k1",
    "k2",
    "2026-02-30T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999Z",
  ),
  fc.uuid(),
  fc.integer({ min: -1, max: 40_000 }),
);

const line: fc.Arbitrary<Line> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      fields: fc.oneof(
        fc.record({ payload: objects(1), key: fc.constantFrom("a", "b", "c", "d") }) as fc.Arbitrary<
          Record<string, Recipe>
        >,
        fc.dictionary(fc.constantFrom(...FIELDS), value, { maxKeys: 3 }),
      ),
      without: fc.subarray(["org", "kind", "key", "payload"], { maxLength: 1 }),
      cut: fc.option(fc.nat({ max: 60 }), { freq: 10 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ text: oddText }) },
  {
    weight: 1,
    arbitrary: fc.record({ bytes: fc.string({ unit: "binary-ascii", maxLength: 20 }).map((s) => s + "\xff\xc3") }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ text: fc.integer({ min: 0, max: 30_000 }).map((n) => `{"x":"${"y".repeat(n)}"}`) }),
  },
);

const inputs: fc.Arbitrary<Input> = fc.record({
  engine: fc.constantFrom<Engine>("sqlite :memory:", "sqlite :memory:", "sqlite :memory:", "postgres"),
  lines: fc.array(line, { minLength: 1, maxLength: 12 }),
  chunk: fc.constantFrom(1, 7, 1_000, 65_536),
  end: fc.constantFrom("\n" as const, "\r\n" as const),
});

/** The target. */
export const ndjsonTarget: Target<Input> = {
  name: "ndjson",
  behaviour:
    "each line of any NDJSON is told as inserted, already there or refused, and counted; refused ones write nothing",
  inputs,
  open,
};

async function open(): Promise<Session<Input>> {
  const rigs = {
    memory: await openManagers("sqlite :memory:", { payloadLimitBytes: LIMIT_BYTES }),
    postgres: await openManagers("postgres", { payloadLimitBytes: LIMIT_BYTES }),
  };
  return {
    run: (input) => enqueueTwice(input.engine === "postgres" ? rigs.postgres : rigs.memory, input),
    async close() {
      for (const rig of Object.values(rigs)) await rig.close();
    },
  };
}

async function enqueueTwice(rig: ManagersRig, input: Input): Promise<void> {
  const org = await rig.managers.tenancy.createOrg(rig.rctx, { name: "Org" });
  const app = { type: "CLI", version: "fuzz@1" } as const;
  const count = async (table: string) => {
    const [row] = await rig.test.sql(`select count(*) as n from ${rig.test.table(table)} where org_id = '${org.id}'`);
    return Number(row?.n);
  };
  const bytes = encode(input, org.id);
  const told = async () => {
    const said: string[] = [];
    const source = inChunks(bytes, input.chunk);
    const defaults = { kind: ANY.name };
    const deps = { managers: rig.managers, app, print: (text: string) => void said.push(text) };
    return { said, summary: await enqueueLines(source, { ...deps, defaults, payloadLimitBytes: LIMIT_BYTES }) };
  };
  const first = await told();
  checkTold(first.said, bytes);
  const written = [await count("queue.work_items"), await count("queue.work_keys")];
  assert.deepEqual(written, [first.summary.inserted, first.summary.inserted], "rows and keys are those inserted");
  assert.deepEqual(tally(first.said), first.summary, "the lines and their sum");
  const again = await told();
  const { inserted, existing, refused } = first.summary;
  assert.deepEqual(again.summary, { inserted: 0, existing: existing + inserted, refused }, "the same file again");
  const ctx = await rig.managers.tenancy.serviceContext(rig.rctx, org.id);
  for (const id of idsOf(first.said)) {
    const { payload } = await rig.managers.work.read(ctx, id);
    assert.ok(isGiven(input, payload), `stored is none of the payloads given: ${JSON.stringify(payload)}`);
  }
}

function idsOf(said: readonly string[]): string[] {
  return said.flatMap((text) => /: inserted (\S+)$/.exec(text)?.[1] ?? []);
}

/** Whether some line gave just this payload. */
function isGiven({ lines }: Input, stored: unknown): boolean {
  return lines.some((one) => {
    if (!("fields" in one)) return false;
    const given = asJson("payload" in one.fields ? make(one.fields.payload ?? {}) : {});
    return isDeepStrictEqual(JSON.parse(given), stored);
  });
}

function tally(said: readonly string[]) {
  const of = (pattern: RegExp) => said.filter((text) => pattern.test(text)).length;
  return {
    inserted: of(/^line \d+: inserted /),
    existing: of(/^line \d+: already there /),
    refused: of(/^line \d+: refused: /),
  };
}

/** Every line that is not blank is told once, in order, in one line of text. */
function checkTold(said: readonly string[], bytes: Uint8Array<ArrayBuffer>): void {
  const numbers = said.map((text) => {
    assert.ok(
      !/[\p{Cc}\u2028\u2029\u202a-\u202e]/u.test(text),
      `it holds what moves a terminal: ${JSON.stringify(text)}`,
    );
    assert.ok(text.length < 1_500, `a line of ${text.length} characters`);
    return Number(/^line (\d+): (?:inserted [0-9a-f-]{36}$|already there [0-9a-f-]{36}$|refused: .)/.exec(text)?.[1]);
  });
  assert.deepEqual(numbers, filledLines(bytes));
}

function filledLines(bytes: Uint8Array<ArrayBuffer>): number[] {
  const lines: number[][] = [[]];
  for (const byte of bytes) byte === 10 ? lines.push([]) : lines.at(-1)?.push(byte);
  return lines.flatMap((one, n) => new TextDecoder().decode(Uint8Array.from(one)).trim() === "" ? [] : [n + 1]);
}

function encode({ lines, end }: Input, orgId: string): Uint8Array<ArrayBuffer> {
  const parts = lines.flatMap((one) => {
    if ("bytes" in one) return [bytesOf(one.bytes), bytesOf(end)];
    return [new TextEncoder().encode("text" in one ? one.text : write(one, orgId)), bytesOf(end)];
  });
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function write({ fields, without, cut }: Extract<Line, { fields: unknown }>, orgId: string): string {
  const all: [string, unknown][] = [["org", orgId], ["kind", ANY.name], ["key", "key"], ["payload", {}]];
  const made = all.filter(([name]) => !without.includes(name) && !Object.hasOwn(fields, name))
    .concat(Object.entries(fields).map(([name, recipe]) => [name, make(recipe)]));
  const text = `{${made.map(([name, part]) => `${JSON.stringify(name)}:${asJson(part)}`).join(",")}}`;
  return cut === null ? text : text.slice(0, -cut - 1);
}

function asJson(part: unknown): string {
  try {
    return JSON.stringify(part) ?? "null";
  } catch {
    return "null";
  }
}

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}
