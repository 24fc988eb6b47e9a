/**
 * The storages of the template worker, and of every worker made of it, on Postgres, which their own tests do without: a
 * project may have no server.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { MigrationChain, WorkerDefinition } from "../../mod.ts";
import { CHAINS } from "../../src/migrations.ts";
import type { Store } from "../../src/storages.ts";
import { readSources, ROOT } from "../house/source_files.ts";
import { createTestDatabase, TEST_NOW_SQL } from "../support/postgres.ts";

const TEMPLATE = "tools/scaffold/template/worker";

/** What a worker made of the template exports, as far as it is used here. */
interface Container {
  close(): Promise<void>;
}
type ForTests = (options: { readonly store: Store }) => Promise<Container>;
type Contract = (store: string, open: () => Promise<Container>) => void;

/** The folders of workers whose contract is the template's. */
async function made(): Promise<string[]> {
  const contracts = [...await readSources(TEMPLATE), ...await readSources("workers")]
    .filter(({ path, text }) =>
      path.endsWith("/tests/contract.ts") && /open: \(\) => Promise<TestContainer>/.test(text)
    );
  return contracts.map(({ path }) => path.replace(/\/tests\/contract\.ts$/, ""));
}

async function load<T>(folder: string, file: string): Promise<T> {
  return await import(pathToFileURL(join(ROOT, folder, file)).href) as T;
}

async function open(chains: readonly MigrationChain[], forTests: ForTests): Promise<Container> {
  const db = await createTestDatabase([...CHAINS, ...chains]);
  const container = await forTests({ store: { engine: "postgres", databases: db.databases, nowSql: TEST_NOW_SQL } });
  return {
    ...container,
    async close() {
      await container.close();
      await db.drop();
    },
  };
}

const folders = await made();
assert.ok(folders.includes(TEMPLATE), "the template's contract is found");
for (const folder of folders) {
  const { forTests } = await load<{ forTests: ForTests }>(folder, "container.ts");
  const { definition } = await load<{ definition: WorkerDefinition }>(folder, "worker.ts");
  const contract = Object.values(await load<Record<string, Contract>>(folder, "tests/contract.ts"))[0] ?? assert.fail();
  contract(`Postgres (${definition.name})`, () => open(definition.chains ?? [], forTests));
}
