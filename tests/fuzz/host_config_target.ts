/**
 * Host config files: the example, changed in any way. It is taken, or refused in one line that names the file, the place and
 * the fix.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseCommandConfig } from "../../src/host/command/load.ts";
import { UsageError } from "../../src/runtime/usage_error.ts";
import { make, oddText, type Recipe, recipes } from "./recipes.ts";
import type { Target } from "./target.ts";

interface Input {
  readonly changes: readonly Change[];
  /** The text is cut after so many thousandths, or has something put there; null: it is left. */
  readonly text: { readonly at: number; readonly put: string | null } | null;
}

/** At a place of the file, found by going down so: each number chooses among what is there. */
interface Change {
  readonly way: readonly number[];
  readonly what:
    | { readonly set: Recipe }
    | { readonly rename: string }
    | { readonly add: readonly [name: string, value: Recipe] }
    | "delete"
    | "twice"
    | { readonly deep: number };
}

const EXAMPLE = new URL("../../workers/host-runner/example/commands.json", import.meta.url);
const FILE = "/etc/laneway/commands.json";

const texts = fc.oneof(
  { weight: 2, arbitrary: oddText },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...[
        "{item.id}",
        "{payload.x}",
        "{",
        "{}",
        "{{",
        "{payload.__proto__}",
        "{run.prompt}",
        "{item.nope}",
        "{payload.a.b}",
      ],
      ...["30s", "none", "0s", "-1s", "99999d", "1.5ms", "-c", "--", "sh", "$HOME", "~", "/", "", "..", "origin/main"],
      ...[
        "https://u:SECRET@h/{payload.r}",
        "file:///etc",
        "git@h:x",
        "LANEWAY_X",
        "PATH",
        "LD_PRELOAD",
        "0-300",
        "128",
        "signal",
      ],
    ),
  },
);
const names = fc.oneof(
  texts,
  fc.constantFrom(
    "argv",
    "env",
    "kinds",
    "exits",
    "clone",
    "prompt",
    "retry",
    "__proto__",
    "constructor",
    "hasOwnProperty",
  ),
);
const values: fc.Arbitrary<Recipe> = fc.oneof({ weight: 3, arbitrary: texts }, { weight: 2, arbitrary: recipes(1) });

const change: fc.Arbitrary<Change> = fc.record({
  way: fc.array(fc.nat({ max: 20 }), { maxLength: 5 }),
  what: fc.oneof(
    { weight: 5, arbitrary: fc.record({ set: values }) },
    { weight: 2, arbitrary: fc.record({ rename: names }) },
    { weight: 2, arbitrary: fc.record({ add: fc.tuple(names, values) }) },
    { weight: 2, arbitrary: fc.constantFrom("delete" as const, "twice" as const) },
    { weight: 1, arbitrary: fc.record({ deep: fc.constantFrom(3, 500, 20_000) }) },
  ),
});

/** The target. */
export const hostConfigTarget: Target<Input> = {
  name: "host-config",
  behaviour: "a host config changed in any way is taken, or refused in one line with its file, the place and the fix",
  inputs: fc.record({
    changes: fc.array(change, { minLength: 1, maxLength: 3 }),
    text: fc.option(fc.record({ at: fc.nat({ max: 1_000 }), put: fc.option(oddText) }), { freq: 8 }),
  }),
  async open() {
    const example = await Deno.readTextFile(EXAMPLE);
    // In a text that was broken by hand a password may stand where none can be seen.
    return { run: (input) => check(textOf(input, example), input.text === null), close() {} };
  },
};

function check(text: string, whole: boolean): void {
  try {
    const config = parseCommandConfig(text, FILE);
    assert.ok(Object.keys(config.kinds).length > 0, "a config without a kind was taken");
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    assert.ok(error instanceof UsageError, `a ${(error as Error)?.name}: ${(error as Error)?.message}`);
    const { message } = error;
    assert.match(message, /^Cannot use /);
    assert.ok(message.includes(FILE), `it names no file: ${message}`);
    assert.match(message, /: .{6,}/s, `it says no fix: ${message}`);
    assert.ok(message.length < 1_500, `a message of ${message.length} characters`);
    assert.ok(!whole || !message.includes("SECRET"), `it tells a password: ${message}`);
  }
}

type Node = unknown[] | Record<string, unknown>;

function textOf({ changes, text }: Input, example: string): string {
  const root: Record<string, unknown> = { root: JSON.parse(example) };
  for (const one of changes) apply(one, root);
  let written: string;
  try {
    written = JSON.stringify(root.root) ?? "null";
  } catch {
    written = "null";
  }
  if (text === null) return written;
  const at = Math.floor(written.length * text.at / 1_000);
  return text.put === null ? written.slice(0, at) : written.slice(0, at) + text.put + written.slice(at);
}

function apply({ way, what }: Change, root: Record<string, unknown>): void {
  let parent: Node = root;
  let key: string = "root";
  for (const choice of way) {
    const here: unknown = Reflect.get(parent, key);
    if (typeof here !== "object" || here === null) break;
    const keys = Object.keys(here);
    if (keys.length === 0) break;
    parent = here as Node;
    key = keys[choice % keys.length] ?? "";
  }
  const here: unknown = Reflect.get(parent, key);
  const put = (name: string, value: unknown, on: object = parent) =>
    Object.defineProperty(on, name, { value, enumerable: true, configurable: true, writable: true });
  if (what === "delete") Reflect.deleteProperty(parent, key);
  else if (what === "twice") put(key, [here, here]);
  else if ("set" in what) put(key, make(what.set));
  else if ("deep" in what) put(key, deepOf(here, what.deep));
  else if ("rename" in what) {
    Reflect.deleteProperty(parent, key);
    if (!Array.isArray(parent)) put(what.rename, here);
  } else if (typeof here === "object" && here !== null && !Array.isArray(here)) {
    put(what.add[0], make(what.add[1]), here);
  }
}

/** As an argument that is there when another is, and so on down. */
function deepOf(value: unknown, depth: number): unknown {
  let made = value;
  for (let n = 0; n < depth; n++) made = n % 2 === 0 ? [made] : { if: "payload.x", args: made };
  return made;
}
