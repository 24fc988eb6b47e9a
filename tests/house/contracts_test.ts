/**
 * Every method of a storage, and of the cache and the topics, is called by its contract suite.
 */
import assert from "node:assert/strict";
import { readSources, ROOT } from "./source_files.ts";

/** Interfaces that several engines implement, with the file that says so. */
const INTERFACES: Readonly<Record<string, string>> = {
  WorkStorage: "src/work/storage.ts",
  IdempotencyStorage: "src/idempotency/types.ts",
  TenancyStorage: "src/tenancy/types.ts",
  AuditStorage: "src/audit/types.ts",
  OutboxStorage: "src/outbox/types.ts",
  Cache: "src/infra/cache.ts",
  Topics: "src/infra/topics.ts",
  ShipmentStorage: "workers/shipment-notifier/shipments/types.ts",
  EndpointStorage: "workers/shipment-notifier/endpoints/types.ts",
};

Deno.test("every method of an interface with several engines is in a contract suite", async () => {
  const sources = [...await readSources("tests/contracts"), ...await readSources("workers")];
  const suites = sources.filter(({ path }) => /\/contracts?(_\w+)?\.ts$|^tests\/contracts\//.test(path));
  const called = suites.map(({ text }) => text).join("\n");
  const missing: string[] = [];
  for (const [name, path] of Object.entries(INTERFACES)) {
    const text = await Deno.readTextFile(ROOT + path);
    const body = new RegExp(`export interface ${name} \\{([\\s\\S]*?)\\n\\}`).exec(text)?.[1];
    assert.ok(body !== undefined, `${path} declares ${name}`);
    const methods = [...body.matchAll(/^ {2}(\w+)[(<]/gm)].map(([, method]) => method ?? "");
    assert.ok(methods.length >= 3, `${name} has methods`);
    missing.push(...methods.filter((m) => !new RegExp(`\\.${m}\\(`).test(called)).map((m) => `${name}.${m}`));
  }
  assert.deepEqual(missing, []);
});

Deno.test("no storage interface is without a place in that list", async () => {
  const files = [...await readSources("src"), ...await readSources("workers")];
  const declared = files.flatMap(({ text }) =>
    [...text.matchAll(/^export interface (\w+Storage) \{/gm)].map(([, name]) => name)
  );
  assert.deepEqual(declared.filter((name) => name !== undefined && !(name in INTERFACES)), []);
});
