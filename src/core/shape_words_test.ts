import assert from "node:assert/strict";
import * as z from "zod";
import { wordsOf } from "./shape_words.ts";

const schema = z.strictObject({
  name: z.string().min(1, "a window has a name").max(3),
  count: z.int().min(0).max(9),
  on: z.boolean(),
  of: z.array(z.uuid()).max(1),
  way: z.enum(["in", "out"]),
  inner: z.object({}),
});
const FITS = { name: "a", count: 1, on: true, of: [], way: "in", inner: {} };

const MISFITS: readonly (readonly [changed: Record<string, unknown>, words: string])[] = [
  [{ name: undefined }, "it is missing: it must be a text"],
  [{ name: 1 }, "it must be a text"],
  [{ name: "" }, "a window has a name"],
  [{ name: "abcd" }, "it must have at most 3 characters"],
  [{ count: 0.5 }, "it must be a whole number"],
  [{ count: "1" }, "it must be a number"],
  [{ count: -1 }, "it must be at least 0"],
  [{ count: 10 }, "it must be at most 9"],
  [{ on: null }, "it must be true or false"],
  [{ of: {} }, "it must be a list"],
  [{ of: ["a"] }, "it must be a UUID"],
  [{ of: Array(2).fill("00000000-0000-4000-8000-000000000000") }, "it must have at most 1 entries"],
  [{ way: "up" }, 'it must be one of "in", "out"'],
  [{ inner: [] }, "it must be an object"],
  [{ colour: 1 }, 'it has no key "colour": leave it out'],
];

for (const [changed, words] of MISFITS) {
  Deno.test(`a misfit is told by what would fit: ${JSON.stringify(changed)}`, () => {
    const { error } = schema.safeParse({ ...FITS, ...changed }, { error: wordsOf });
    assert.equal(error?.issues[0]?.message, words);
  });
}

Deno.test("what fits is no issue", () => {
  assert.ok(schema.safeParse(FITS, { error: wordsOf }).success);
});
