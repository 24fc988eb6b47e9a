/**
 * Every method of a storage, and of the cache and the topics, is called by its contract suite.
 */
import assert from "node:assert/strict";
import { readSources, ROOT } from "./source_files.ts";

/** The house's interfaces that several engines implement, with the file that says so. */
const HOUSE: Readonly<Record<string, string>> = {
  WorkStorage: "src/work/storage.ts",
  IdempotencyStorage: "src/idempotency/types.ts",
  TenancyStorage: "src/tenancy/types.ts",
  AuditStorage: "src/audit/types.ts",
  OutboxStorage: "src/outbox/types.ts",
  Cache: "src/infra/cache.ts",
  Topics: "src/infra/topics.ts",
};

const STORAGE = /^export interface (\w+Storage) \{/gm;

/** Names of methods that an interface has and a suite does not call. */
function uncalled(name: string, { text, suite }: { readonly text: string; readonly suite: string }): string[] {
  const body = new RegExp(`export interface ${name} \\{([\\s\\S]*?)\\n\\}`).exec(text)?.[1];
  assert.ok(body !== undefined, `${name} is declared`);
  const methods = [...body.matchAll(/^ {2}(\w+)[(<]/gm)].map(([, method]) => method ?? "");
  assert.ok(methods.length >= 3, `${name} has methods`);
  return methods.filter((method) => !new RegExp(`\\.${method}\\(`).test(suite)).map((method) => `${name}.${method}`);
}

Deno.test("every method of an interface with several engines is in a contract suite", async () => {
  const suite = (await readSources("tests/contracts")).map(({ text }) => text).join("\n");
  const texts = await Promise.all(
    Object.entries(HOUSE).map(async ([name, path]) => [name, await Deno.readTextFile(ROOT + path)] as const),
  );
  assert.deepEqual(texts.flatMap(([name, text]) => uncalled(name, { text, suite })), []);
});

Deno.test("every method of a worker's storage is in a contract of that worker's", async () => {
  const files = await readSources("workers");
  const declared = files.flatMap((file) =>
    [...file.text.matchAll(STORAGE)].map(([, name = ""]) => ({ name, ...file }))
  );
  assert.ok(declared.length >= 2);
  const missing = declared.flatMap(({ name, path, text }) => {
    const tests = `${path.split("/").slice(0, 2).join("/")}/tests/`;
    const suites = files.filter((file) => file.path.startsWith(tests) && /contract|storage_test/.test(file.path));
    return uncalled(name, { text, suite: suites.map((file) => file.text).join("\n") });
  });
  assert.deepEqual(missing, []);
});

Deno.test("no storage interface of the house is without a place in that list", async () => {
  const declared = (await readSources("src")).flatMap(({ text }) =>
    [...text.matchAll(STORAGE)].map(([, name = ""]) => name)
  );
  assert.deepEqual(declared.filter((name) => !(name in HOUSE)), []);
});
