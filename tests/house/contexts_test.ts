/**
 * Holds that contexts are minted in one place.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const MINT = "src/tenancy/contexts.ts";
// How a context could be made up past its brand. Tests may: they stand for the caller.
const FORGERY = /\bas\s+(?:unknown\s+as\s+)?(?:OpContext|RequestContext)\b/;

async function sources(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) found.push(...await sources(path));
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith("_test.ts")) found.push(path);
  }
  return found;
}

Deno.test("only tenancy/contexts.ts mints a context, and only tenancy calls it", async () => {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const forgers: string[] = [];
  const callers: string[] = [];
  for (const path of await sources(`${root}src`)) {
    const name = path.slice(root.length);
    const text = await Deno.readTextFile(path);
    if (name !== MINT && FORGERY.test(text)) forgers.push(name);
    if (name !== MINT && /\bmint(?:Op|Request)\b/.test(text)) callers.push(name);
  }
  assert.deepEqual(forgers, []);
  assert.deepEqual(callers.sort(), ["src/tenancy/host_contexts.ts", "src/tenancy/manager.ts"]);
  assert.match(await Deno.readTextFile(root + MINT), FORGERY, "the pattern does not even know the mint itself");
});
