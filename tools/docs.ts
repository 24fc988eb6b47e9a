/**
 * `deno task docs`: writes what is generated: README's tables, between their markers, and deployment files; `--check` only
 * compares.
 *
 * @module
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { envExample } from "./deploy/env_example.ts";
import { generatedFiles } from "./deploy/generated.ts";
import { read } from "./project.ts";
import { readmeWithTables } from "./readme_tables.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = new Map([
  ["README.md", readmeWithTables(await Deno.readTextFile(join(root, "README.md")))],
  [".env.example", envExample(read(join(root, ".env.example")))],
  ...await generatedFiles(root),
]);
const stale = [...files].filter(([path, text]) => read(join(root, path)) !== text);
if (stale.length === 0) console.log("What is generated is up to date");
else if (Deno.args.includes("--check")) {
  for (const [path] of stale) console.error(`${path} is not up to date: run deno task docs`);
  Deno.exit(1);
} else {
  for (const [path, text] of stale) {
    await Deno.mkdir(dirname(join(root, path)), { recursive: true });
    await Deno.writeTextFile(join(root, path), text);
    console.log(`${path} written`);
  }
}
