/**
 * Holds that a worker is written as a team outside this repository would write it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ROOT, ROOT_URL } from "./source_files.ts";

// Packages an author depends on directly; everything else of ours comes through mod.ts.
const PACKAGES = ["zod", "standardwebhooks"];
const IMPORT = /(?:^|[}\s])from\s+"([^"\n]+)"|^import\s+"([^"\n]+)"|\bimport\(\s*"([^"\n]+)"/gm;

async function sources(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory && entry.name !== "tests") found.push(...await sources(path));
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith("_test.ts")) found.push(path);
  }
  return found;
}

Deno.test("a worker imports from mod.ts, from itself, and from the packages it names: nothing else", async () => {
  const strangers: string[] = [];
  let seen = 0;
  for await (const worker of Deno.readDir(`${ROOT}workers`)) {
    const folder = `${ROOT}workers/${worker.name}`;
    for (const path of await sources(folder)) {
      for (const match of (await Deno.readTextFile(path)).matchAll(IMPORT)) {
        const specifier = match[1] ?? match[2] ?? match[3] ?? "";
        seen++;
        if (PACKAGES.includes(specifier) || specifier.startsWith("node:")) continue;
        const target = fileURLToPath(new URL(specifier, pathToFileURL(path)));
        if (specifier.startsWith(".") && (target === `${ROOT}mod.ts` || target.startsWith(`${folder}/`))) continue;
        // A second worker of a kind is another process for what that worker defines.
        if (/\/worker\.ts$/.test(path) && /^\.\.\/[\w-]+\/worker\.ts$/.test(specifier)) continue;
        strangers.push(`${path.slice(ROOT.length)} imports ${specifier}`);
      }
    }
  }
  assert.deepEqual(strangers, []);
  assert.ok(seen > 50, `only ${seen} imports were found: the pattern does not see them`);
});

Deno.test("mod.ts reaches no test code", async () => {
  const { success, stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "mod.ts"],
    cwd: ROOT,
    stderr: "null",
  }).output();
  assert.ok(success);
  const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as { modules: { specifier: string }[] };
  const ours = modules.map((module) => module.specifier).filter((specifier) => specifier.startsWith(ROOT_URL));
  assert.ok(ours.length > 50, `only ${ours.length} modules were found`);
  assert.deepEqual(ours.filter((specifier) => /\/tests\/|_test\.ts$/.test(specifier)), []);
});
