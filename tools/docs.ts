/**
 * `deno task docs`: writes the generated tables into README, between their markers; `--check` only compares.
 *
 * @module
 */
import { readmeWithTables } from "./readme_tables.ts";

const path = new URL("../README.md", import.meta.url);
const before = await Deno.readTextFile(path);
const after = readmeWithTables(before);
if (Deno.args.includes("--check")) {
  if (before !== after) {
    console.error("README.md is not up to date: run deno task docs");
    Deno.exit(1);
  }
} else if (before !== after) {
  await Deno.writeTextFile(path, after);
  console.log("README.md written");
} else console.log("README.md is up to date");
