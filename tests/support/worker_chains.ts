/**
 * The migrations and the scope map of every worker that keeps records of its own, found where workers keep them:
 * `workers/<worker>/<records>/chain.ts`.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { MigrationChain } from "../../src/db/chain.ts";
import type { TableScope } from "../../src/scopes.ts";
import { readSources, ROOT_URL } from "../house/source_files.ts";

/** One schema of a worker's. */
export interface WorkerChain {
  readonly chain: MigrationChain;
  readonly scopes: Readonly<Record<string, TableScope>>;
}

/** Reads them. A chain without a scope map beside it fails. */
export async function readWorkerChains(): Promise<WorkerChain[]> {
  const files = (await readSources("workers")).filter(({ path }) => /^workers\/[^/]+\/[^/]+\/chain\.ts$/.test(path));
  return await Promise.all(files.map(async ({ path }) => {
    const exported = Object.entries(await import(`${ROOT_URL}${path}`) as Record<string, unknown>);
    const named = (ending: string) => exported.find(([name]) => name.endsWith(ending))?.[1];
    const [chain, scopes] = [named("_CHAIN"), named("_SCOPES")];
    assert.ok(chain !== undefined && scopes !== undefined, `${path} exports its …_CHAIN and its …_SCOPES`);
    return { chain, scopes } as WorkerChain;
  }));
}
