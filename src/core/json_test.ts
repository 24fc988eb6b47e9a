import assert from "node:assert/strict";
import fc from "fast-check";
import { ValidationError } from "./errors.ts";
import { encodeJson } from "./json.ts";

const LIMIT = 262_144;

function accepts(value: unknown): boolean {
  try {
    encodeJson(value, "payload", LIMIT);
    return true;
  } catch (error) {
    assert.ok(error instanceof ValidationError, String(error));
    return false;
  }
}

function refuses(value: unknown, field: string, why: RegExp): void {
  assert.throws(
    () => encodeJson(value, "payload", LIMIT),
    (error) => error instanceof ValidationError && error.field === field && why.test(error.message),
  );
}

Deno.test("encodeJson() accepts only what comes back deeply equal", () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withSparseArray: true,
    withNullPrototype: true,
    withObjectString: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      if (!accepts(value)) return;
      const back = JSON.parse(encodeJson(value, "payload", LIMIT));
      // Structure and values, not prototypes: an object without one comes back as a plain object.
      assert.deepEqual(back, JSON.parse(JSON.stringify(value)));
      assert.equal(fc.stringify(dropUndefined(back)), fc.stringify(dropUndefined(value)));
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("encodeJson() accepts every JSON document within its size, and gives its encoding", () => {
  const safe = fc.jsonValue({ noUnicodeString: false }).filter((value) =>
    !/-0|e\+?\d{2}|\d{16}|\\u0000/.test(JSON.stringify(value)) && JSON.stringify(value).isWellFormed()
  );
  fc.assert(fc.property(safe, (value) => {
    const document = JSON.parse(JSON.stringify(value));
    if (!accepts(document)) assert.match(JSON.stringify(document), /\\u0000|\\ud[89a-f]/i);
  }));
});

Deno.test("encodeJson() refuses what hides from JSON, naming its path", () => {
  refuses({ [Symbol("s")]: 1 }, "payload", /symbol/);
  refuses({ a: [{ [Symbol("s")]: 1 }] }, "payload.a[0]", /symbol/);
  refuses({ list: Object.assign([1], { toJSON: () => 5 }) }, "payload.list", /toJSON|more than its entries/);
  refuses({ list: Object.assign([1], { extra: 2 }) }, "payload.list", /more than its entries/);
  refuses({ list: new (class Odd extends Array<number> {})(2) }, "payload.list", /Odd/);
  refuses({ hidden: Object.defineProperty({}, "x", { value: 1 }) }, "payload.hidden", /not enumerable/);
  let reads = 0;
  const moving = {
    get x() {
      return ++reads === 1 ? 1 : "\u0000";
    },
  };
  refuses({ moving }, "payload.moving.x", /getter/);
});

Deno.test("encodeJson() counts UTF-8 bytes, and takes exactly the limit", () => {
  for (const character of ["a", "ü", "€", "🚚"]) {
    const bytes = new TextEncoder().encode(JSON.stringify({ t: character.repeat(50) })).length;
    assert.equal(JSON.parse(encodeJson({ t: character.repeat(50) }, "payload", bytes)).t.length, character.length * 50);
    assert.throws(() => encodeJson({ t: character.repeat(50) }, "payload", bytes - 1), { field: "payload" });
  }
});

/** Leaves properties out that are undefined, and the prototypes with them. */
function dropUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropUndefined);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, entry]) => entry !== undefined).map(([key, entry]) => [key, dropUndefined(entry)]),
  );
}
