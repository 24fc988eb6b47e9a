/**
 * Flags and variables: each is taken within its documented range, or refused in one line that names it, its value and the
 * fix; through the whole command line with exit code 2.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { SettingsError } from "../../src/core/errors.ts";
import { formatDuration, parseDuration } from "../../src/core/duration.ts";
import { URL_VARIABLES } from "../../src/runtime/database_urls.ts";
import { envName, FLAG_ENTRIES, type FlagKey, type FlagSpec } from "../../src/runtime/flags.ts";
import { parseFlag, parseSize } from "../../src/runtime/flag_values.ts";
import { readSettings } from "../../src/runtime/settings.ts";
import { UsageError } from "../../src/runtime/usage_error.ts";
import { runCli } from "../support/cli.ts";
import { oddText } from "./recipes.ts";
import type { Target } from "./target.ts";

interface Input {
  /** By the flag's name. */
  readonly flags: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** Options of a command's own, which then is run without those above. */
  readonly own?: { readonly command: "enqueue" | "migrate"; readonly options: Readonly<Record<string, string>> } | null;
}

const SPECS = new Map(FLAG_ENTRIES.map(([key, spec]) => [spec.flag, [key, spec] as const]));
const DIGITS = fc.constantFrom(
  ..."0 1 2 7 10 59 100 1000 99999 2147483648 9007199254740993 999999999999999".split(" "),
);

/** Texts that come near to what a flag takes. */
const nearText: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(DIGITS, fc.constantFrom("", "ms", "s", "m", "h", "d", "KiB", "MiB", "B", "x", " s")).map((p) =>
      p.join("")
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom("-", "+", " ", "0x", "1.", "١", "1e"), DIGITS).map((p) => p.join("")),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...[...SPECS.values()].flatMap(([, spec]) => spec.type === "enum" ? spec.values : []),
      ...["memory", "sqlite:", "sqlite::memory:", "sqlite:./x.db", "postgres", "SHIP", "A,B", ",", "A,,b", "default"],
    ),
  },
  { weight: 3, arbitrary: oddText },
  { weight: 1, arbitrary: fc.tuple(oddText, fc.integer({ min: 1, max: 5_000 })).map(([text, n]) => text.repeat(n)) },
);

const urlText = fc.oneof(
  nearText,
  fc.tuple(
    fc.constantFrom("postgres://", "postgresql://", "http://", "postgres:", "//"),
    fc.constantFrom("u:SECRET@h/d", "u:SECRET@", "u:SEC%ZZRET@h:99999/d", "[::1", "h", "u:SECRET@h:5432/d?x=SECRET"),
  ).map((parts) => parts.join("")),
);

const ENQUEUE = "file org user kind key payload id target lane priority max-attempts delay not-before".split(" ");
const own = fc.oneof(
  fc.record({
    command: fc.constant("enqueue" as const),
    options: fc.dictionary(fc.constantFrom(...ENQUEUE), nearText, { maxKeys: 3 }),
  }),
  fc.record({
    command: fc.constant("migrate" as const),
    options: fc.dictionary(fc.constantFrom("direction", "chain", "steps"), nearText, { minKeys: 1, maxKeys: 2 }),
  }),
);

const inputs: fc.Arbitrary<Input> = fc.record({
  flags: fc.dictionary(fc.constantFrom(...SPECS.keys()), nearText, { maxKeys: 3 }),
  env: fc.oneof(
    fc.dictionary(fc.constantFrom(...[...SPECS.values()].map(([, spec]) => envName(spec))), nearText, { maxKeys: 3 }),
    fc.dictionary(
      fc.constantFrom(...URL_VARIABLES.flatMap(({ env }) => [env, `${env}_FILE`]), "LANEWAY_X", "LANEWAY_"),
      urlText,
      { maxKeys: 3 },
    ),
  ),
  own: fc.option(own, { freq: 2 }),
});

/** The target. */
export const flagTarget: Target<Input> = {
  name: "flags",
  behaviour: "any text of a flag or variable is taken within its range, or refused by its name with exit code 2",
  inputs,
  open: () => ({ run, close() {} }),
};

async function run({ flags, env, own }: Input): Promise<void> {
  if (own) return await checkOwn(own);
  const written = Object.entries(flags);
  for (const [name, text] of written) checkOne(name, text);
  const keyed = Object.fromEntries(written.map(([name, text]) => [SPECS.get(name)?.[0] ?? "", text]));
  let refusal: SettingsError | null = null;
  try {
    const settings = readSettings({ flags: keyed as Partial<Record<FlagKey, string>>, env, readFile: noFile });
    for (const warning of settings.warnings) assert.ok(!warning.includes("\n"), warning);
  } catch (error) {
    assert.ok(error instanceof SettingsError, `a ${(error as Error).name}: ${(error as Error).message}`);
    refusal = error;
  }
  if (refusal === null) return;
  const labels = [...written.map(([name]) => `--${name}`), ...Object.keys(env)];
  assert.ok(labels.some((label) => refusal.message.includes(label)), `it names none of ${labels}: ${refusal.message}`);
  assert.ok(!refusal.message.includes("SECRET") || !isUrl(env), refusal.message);
  if (refusal instanceof UsageError) await checkProgram(flags, env);
}

/** Whether a secret can have been in a URL alone. */
function isUrl(env: Readonly<Record<string, string>>): boolean {
  return Object.keys(env).every((name) => name.endsWith("_URL"));
}

function noFile(): never {
  throw new Deno.errors.NotFound("there is none");
}

/** A flag by itself. */
function checkOne(name: string, text: string): void {
  const [, spec] = SPECS.get(name) ?? [];
  assert.ok(spec);
  const label = `--${name}`;
  try {
    checkRange(spec, parseFlag(spec, text, label));
  } catch (error) {
    assert.ok(error instanceof UsageError, `a ${(error as Error).name}: ${(error as Error).message}`);
    assert.match(error.message, /^Cannot (?:use|read) /);
    assert.ok(error.message.includes(label), `it does not name ${label}: ${error.message}`);
    const parts = [text, ...text.split(",")].flatMap((part) => [JSON.stringify(part.trim()), JSON.stringify(part)]);
    const shown = parts.some((part) => error.message.includes(part)) || error.message.includes("more characters");
    assert.ok(shown, `it does not show its value: ${error.message}`);
    assert.ok(error.message.length < 1_000, `a message of ${error.message.length} characters`);
    assert.ok(/: .{8,}/.test(error.message), `it says no fix: ${error.message}`);
  }
}

function checkRange(spec: FlagSpec, value: unknown): void {
  if (spec.type === "int") {
    assert.ok(Number.isInteger(value) && Number(value) >= spec.min && Number(value) <= spec.max, String(value));
  } else if (spec.type === "duration") {
    const [min, max] = [parseDuration(spec.min, ""), parseDuration(spec.max, "")];
    assert.ok(Number.isInteger(value) && Number(value) >= min && Number(value) <= max, String(value));
    assert.equal(parseDuration(formatDuration(Number(value)), ""), value);
  } else if (spec.type === "size") {
    assert.ok(Number(value) >= parseSize(spec.min, "") && Number(value) <= parseSize(spec.max, ""), String(value));
  } else if (spec.type === "list") {
    assert.ok(Array.isArray(value) && value.length > 0 && value.every((entry) => spec.pattern.test(entry)));
  }
}

async function checkProgram(flags: Input["flags"], env: Input["env"]): Promise<void> {
  const args = Object.entries(flags).map(([name, text]) => `--${name}=${text}`);
  const { code, errors, out } = await runCli(args, { env });
  assert.equal(code, 2, `exit code ${code}: ${errors.join(" | ")}`);
  assert.equal(out.length, 0, out.join(" | "));
  checkLines(errors);
}

function checkLines(errors: readonly string[]): void {
  assert.equal(errors.length, 1, errors.join(" | "));
  const [line = ""] = errors;
  assert.ok(
    !/[\p{Cc}\u2028\u2029\u202a-\u202e]/u.test(line),
    `it holds what moves a terminal: ${JSON.stringify(line)}`,
  );
  assert.ok(line.length < 2_100, `a line of ${line.length} characters`);
}

/** Neither may come as far as to write: an item cannot go into a store that ends with its command, nor is one migrated so. */
async function checkOwn({ command, options }: NonNullable<Input["own"]>): Promise<void> {
  const { direction, ...named } = options as Record<string, string>;
  const args = Object.entries(named).map(([name, text]) => `--${name}=${text}`);
  const { code, errors } = await runCli([
    command,
    "--store=memory",
    ...args,
    "--",
    ...(direction === undefined ? [] : [direction]),
  ], {
    env: {},
  });
  assert.equal(code, 2, `exit code ${code} of ${command}: ${errors.join(" | ")}`);
  checkLines(errors);
}
