import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { LANEWAY } from "../project.ts";
import { REACHED } from "./entries.ts";

interface Info {
  readonly modules: readonly { readonly dependencies?: readonly { readonly specifier: string }[] }[];
}

/** The packages that a module of ours reaches, as it names them. */
async function packagesOf(module: string): Promise<string[]> {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", module],
    cwd: fileURLToPath(LANEWAY),
    stderr: "null",
  }).output();
  const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as Info;
  return modules.flatMap(({ dependencies = [] }) => dependencies.map(({ specifier }) => specifier))
    .filter((specifier) => !/^(?:\.|node:)/.test(specifier));
}

Deno.test("a project of one's own is given the packages that Laneway reaches, and no other", async () => {
  const reached = new Set([...await packagesOf("mod.ts"), ...await packagesOf("testing.ts")]);
  assert.deepEqual([...reached].sort(), [...REACHED]);
});
