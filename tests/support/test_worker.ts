/**
 * A worker of a test as one binary, built as a team outside this repository builds theirs.
 *
 * @module
 */
import { join } from "node:path";
import manifest from "../../deno.json" with { type: "json" };
import { ROOT } from "../house/source_files.ts";

/**
 * Builds it into a folder.
 *
 * @param source The module that exports its `definition`, relative to the repository.
 * @throws {Error} What `tools/compile.ts` says, for example that there is no runtime base.
 */
export async function buildTestWorker(
  folder: string,
  { name, source, profile }: { readonly name: string; readonly source: string; readonly profile?: string },
): Promise<string> {
  const { imports, unstable, compilerOptions } = manifest;
  const config = {
    nodeModulesDir: "none",
    unstable,
    compilerOptions,
    imports: { ...imports, laneway: join(ROOT, "mod.ts") },
  };
  await Deno.mkdir(join(folder, "workers", name), { recursive: true });
  await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify(config));
  await Deno.copyFile(join(ROOT, "deno.lock"), join(folder, "deno.lock"));
  const text = `export { definition } from ${JSON.stringify(join(ROOT, source))};\n`;
  await Deno.writeTextFile(join(folder, "workers", name, "worker.ts"), text);
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", join(ROOT, "tools/compile.ts"), name, "--project", folder, "--commit", "test"],
      ...(profile === undefined ? [] : ["--profile", profile]),
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr).trim());
  return join(folder, "dist", name);
}

/** As `buildTestWorker`; null, with the reason printed, where no runtime base can be had. */
export async function buildTestWorkerIfCan(
  folder: string,
  worker: Parameters<typeof buildTestWorker>[1],
): Promise<string | null> {
  return await buildTestWorker(folder, worker).catch((error: Error) => {
    if (!error.message.includes("runtime base")) throw error;
    console.log(`NOT RUN: ${error.message}`);
    return null;
  });
}
