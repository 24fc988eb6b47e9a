/**
 * Values as recipes: JSON that says how to make what JSON does not hold.
 *
 * @module
 */
import fc from "fast-check";

/** `{"$": …}` makes something; an array and an object make themselves of their parts; the rest is itself. */
export type Recipe = null | boolean | number | string | readonly Recipe[] | {
  readonly $?: Made;
  readonly [key: string]: unknown;
};

type Made =
  | "undefined"
  | "nan"
  | "infinity"
  | "minus zero"
  | "bigint"
  | "date"
  | "map"
  | "symbol"
  | "function"
  | "sparse"
  | "circle"
  | "getter"
  | readonly ["number", string]
  | readonly ["deep", number, "array" | "object"]
  | readonly ["text", string, number]
  | readonly ["entries", readonly (readonly [string, Recipe])[]];

/** Makes the value. */
export function make(recipe: Recipe): unknown {
  if (Array.isArray(recipe)) return recipe.map(make);
  if (typeof recipe !== "object" || recipe === null) return recipe;
  const how = (recipe as { readonly $?: Made }).$;
  if (how !== undefined) return typeof how === "string" ? makeNamed(how) : makeOf(how);
  return objectOf(Object.entries(recipe).map(([key, part]) => [key, part as Recipe]));
}

/** With properties of its own under any name, `__proto__` too. */
function objectOf(entries: readonly (readonly [string, Recipe])[]): object {
  const made = {};
  for (const [key, part] of entries) {
    const property = { value: make(part), enumerable: true, configurable: true, writable: true };
    Object.defineProperty(made, key, property);
  }
  return made;
}

function makeNamed(how: Exclude<Made, readonly unknown[]>): unknown {
  switch (how) {
    case "undefined":
      return undefined;
    case "nan":
      return NaN;
    case "infinity":
      return Infinity;
    case "minus zero":
      return -0;
    case "bigint":
      return 1n;
    case "date":
      return new Date(0);
    case "map":
      return new Map([[1, 2]]);
    case "symbol":
      return Symbol("s");
    case "function":
      return () => 1;
    case "sparse":
      return Object.assign([], { length: 2 });
    case "circle": {
      const made: Record<string, unknown> = {};
      made.self = made;
      return made;
    }
    case "getter":
      return Object.defineProperty({}, "got", { get: () => 7, enumerable: true, configurable: true });
  }
}

function makeOf(how: Extract<Made, readonly unknown[]>): unknown {
  switch (how[0]) {
    case "number":
      return Number(how[1]);
    case "text":
      return how[1].repeat(how[2]);
    case "entries":
      return objectOf(how[1]);
    case "deep": {
      let made: unknown = how[2] === "array" ? [] : {};
      for (let n = 1; n < how[1]; n++) made = how[2] === "array" ? [made] : { d: made };
      return made;
    }
  }
}

/** Texts that trip what reads texts: NUL, lone surrogates, controls, separators, what looks like something else. */
export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  { weight: 2, arbitrary: fc.string({ maxLength: 12 }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...["", " ", "\u0000", "\ud800", "\udc00x", "\n", "\r\n", "\u001b[31m", "\u2028", "\ufeff", "\u202e", "🚚"],
      ...["__proto__", "constructor", "toString", "null", "true", "NaN", "-1", "1e999", "0x10", "'; drop table x; --"],
      ...["{}", "[]", "${x}", "%s", "\\u0000", "\\", '"', "é", "e\u0301", "İ", "ß", "../../x", "/dev/null"],
    ),
  },
);

const oddNumber: fc.Arbitrary<Recipe> = fc.oneof(
  fc.integer(),
  fc.double().map((value): Recipe => Number.isFinite(value) && !Object.is(value, -0) ? value : { $: "nan" }),
  fc.constantFrom<Recipe>(
    ...["9007199254740991", "9007199254740992", "-9007199254740993", "1e21", "1e308", "5e-324", "1e-300"].map(
      (text): Recipe => ({ $: ["number", text] }),
    ),
    ...[0, -1, 1.5, 32_767, 32_768, 2_147_483_648],
    { $: "minus zero" },
    { $: "infinity" },
  ),
);

const oddThing: fc.Arbitrary<Recipe> = fc.oneof(
  fc.constantFrom<Recipe>(
    ...(["undefined", "nan", "bigint", "date", "map", "symbol", "function", "sparse", "circle", "getter"] as const).map(
      (name): Recipe => ({ $: name }),
    ),
  ),
  fc.tuple(fc.constantFrom(2, 198, 199, 200, 201, 5_000, 20_000), fc.constantFrom("array" as const, "object" as const))
    .map(([depth, of]): Recipe => ({ $: ["deep", depth, of] })),
  fc.tuple(fc.constantFrom("a", "é", "🚚", '"', "\u0001"), fc.integer({ min: 1, max: 1_200 }))
    .map(([unit, times]): Recipe => ({ $: ["text", unit, times] })),
);

/** Any value, odd ones among them. `odd`: how many of ten parts are. */
export function recipes(odd = 2): fc.Arbitrary<Recipe> {
  return fc.letrec<{ value: Recipe }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      { weight: 3, arbitrary: oddText },
      { weight: 3, arbitrary: oddNumber },
      { weight: 2, arbitrary: fc.constantFrom<Recipe>(null, true, false) },
      { weight: odd, arbitrary: oddThing },
      { weight: 2, arbitrary: fc.array(tie("value"), { maxLength: 4 }) },
      { weight: 3, arbitrary: entries(tie("value")) },
    ),
  })).value;
}

/** An object of such values. */
export function objects(odd = 2): fc.Arbitrary<Recipe> {
  return entries(recipes(odd));
}

function entries(value: fc.Arbitrary<Recipe>): fc.Arbitrary<Recipe> {
  return fc.uniqueArray(fc.tuple(oddText, value), { maxLength: 4, selector: ([key]) => key })
    .map((all): Recipe => ({ $: ["entries", all] }));
}

/** Bytes, one a character. */
export function bytesOf(latin: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(latin, (character) => character.charCodeAt(0));
}
