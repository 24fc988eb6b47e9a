/**
 * Statements without a tenant: what they are named by (org, id, token) is all that opens a row. On every engine.
 */
import assert from "node:assert/strict";
import { CHAINS, OPTIONAL_CHAINS } from "../../src/migrations.ts";
import { SHIPMENTS_CHAIN } from "../../workers/shipment-notifier/shipments/chain.ts";
import { production, readSources } from "../house/source_files.ts";
import { type AllStorages, allStorages, makeWorld, MARK } from "../support/breach_world.ts";
import { ENGINES, openTestStore, type TestStore } from "../support/stores.ts";
import { rowsOf, saidBy } from "../support/tenant_breach.ts";
import { TENANTLESS_CASES, type TenantlessCase } from "../support/tenantless_statements.ts";

// `claim` picks one of four texts; `failOrphaned` shares `settle`'s.
const BY_HAND = ["work.claim", "work.failOrphaned"];

Deno.test("the list of tenant-less statements holds every one of the storages, and no other", async () => {
  const files = production([...await readSources("src"), ...await readSources("workers")]);
  const found: string[] = [];
  for (const { path, text } of files.filter(({ path }) => path.includes("/storage/"))) {
    const room = path.split("/storage/")[0]?.split("/").at(-1) ?? "";
    const calls = [...text.matchAll(/\.system\b(?:<[^(]*>)?\(\s*(?:this\.#sql\.)?(\w+)/g)].map(([, name]) => name);
    found.push(...calls.map((name) => `${room}.${name}`).filter((name) => name !== "work.text"));
  }
  const listed = TENANTLESS_CASES.map(({ name }) => name);
  assert.deepEqual([...new Set([...found, ...BY_HAND])].sort(), listed.sort());
});

for (const engine of ENGINES) {
  Deno.test(`stolen tokens, guessed ids and other orgs' ids change and reveal nothing without a tenant, on ${engine}`, async () => {
    const test = await openTestStore(engine, [...CHAINS, ...OPTIONAL_CHAINS, SHIPMENTS_CHAIN]);
    try {
      const storages = allStorages(test.store);
      for (const one of TENANTLESS_CASES) await reachesNot(test, storages, one);
    } finally {
      await test.close();
    }
  });
}

async function reachesNot(test: TestStore, storages: AllStorages, one: TenantlessCase): Promise<void> {
  const world = await makeWorld(test, storages);
  const before = await rowsOf(test, world.a);
  let answer: unknown;
  try {
    answer = await one.act(storages, world);
  } catch (error) {
    assert.equal(saidBy(error).includes(MARK), false, `${one.name} tells of A when it fails`);
    throw error;
  }
  if (one.hands === undefined) {
    assert.equal(JSON.stringify(answer ?? null).includes(MARK), false, `${one.name} tells of A`);
  }
  assert.equal(await rowsOf(test, world.a), before, `${one.name} changed A`);
}
