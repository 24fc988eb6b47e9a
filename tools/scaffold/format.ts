/**
 * Formats made files as the project does, before they are written.
 *
 * @module
 */
import { join } from "node:path";
import { ownFile } from "../project.ts";
import type { NewFile } from "./template.ts";

/** Formats the TypeScript among them. @param root Whose `deno.json` says how; Laneway's own where it has none yet. */
export async function formatted(files: readonly NewFile[], root: string): Promise<NewFile[]> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-scaffold-" });
  try {
    const sources = files.filter(({ path }) => path.endsWith(".ts"));
    const at = (index: number) => join(folder, `${index}.ts`);
    await Promise.all(sources.map(({ text }, i) => Deno.writeTextFile(at(i), text)));
    const own = join(root, "deno.json");
    const config = await Deno.stat(own).then(() => own, () => ownFile("deno.json"));
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["fmt", "-q", "--config", config, ...sources.map((_, i) => at(i))],
      stdin: "null",
    }).output();
    if (!success) throw new Error(`Cannot format the worker's files: ${new TextDecoder().decode(stderr).trim()}`);
    const texts = new Map(
      await Promise.all(sources.map(async ({ path }, i) => [path, await Deno.readTextFile(at(i))] as const)),
    );
    return files.map(({ path, text }) => ({ path, text: texts.get(path) ?? text }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
