/**
 * The chaos worker as one binary, built as a team outside this repository builds theirs.
 *
 * @module
 */
import { join } from "node:path";
import manifest from "../../deno.json" with { type: "json" };
import { ROOT } from "../house/source_files.ts";

/** Builds it into a folder. @throws {Error} What `tools/compile.ts` says, for example that there is no runtime base. */
export async function buildChaosWorker(folder: string): Promise<string> {
  const { imports, unstable, compilerOptions } = manifest;
  const config = {
    nodeModulesDir: "none",
    unstable,
    compilerOptions,
    imports: { ...imports, laneway: join(ROOT, "mod.ts") },
  };
  await Deno.mkdir(join(folder, "workers/chaos-worker"), { recursive: true });
  await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify(config));
  await Deno.copyFile(join(ROOT, "deno.lock"), join(folder, "deno.lock"));
  const source = JSON.stringify(join(ROOT, "tests/chaos/worker.ts"));
  await Deno.writeTextFile(join(folder, "workers/chaos-worker/worker.ts"), `export { definition } from ${source};\n`);
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", join(ROOT, "tools/compile.ts"), "chaos-worker", "--project", folder, "--commit", "chaos"],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr).trim());
  return join(folder, "dist/chaos-worker");
}
