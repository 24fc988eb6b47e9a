/**
 * What holds for every file of the tree.
 */
import assert from "node:assert/strict";
import { production, readSources } from "./source_files.ts";

const MAX_LINES = 400;

Deno.test("no file is longer than 400 lines", async () => {
  const files = [...await readSources("src"), ...await readSources("workers"), ...await readSources("tools")];
  const long = production(files).map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }))
    .filter(({ lines }) => lines > MAX_LINES);
  assert.deepEqual(long, []);
});

Deno.test("every module says what it is for", async () => {
  const silent = production(await readSources("src")).filter(({ text }) => !/^\/\*\*[\s\S]*?@module/.test(text));
  assert.deepEqual(silent.map(({ path }) => path), []);
});

Deno.test("no file holds a machine's path, a registry's host, or a mark of unfinished work", async () => {
  const files = await readSources("", [".ts", ".sql", ".md", ".json", ".yaml", ".yml", "Dockerfile"]);
  const words = [
    ["a home folder", /\/(?:root|home\/\w+)\//],
    ["a work folder", new RegExp("/work" + "/(?:shared|main|w-)")],
    ["a registry host", new RegExp("registry\\.npm" + "js\\.org")],
    ["unfinished work", new RegExp("\\b(?:TO" + "DO|FIX" + "ME|X" + "XX)\\b")],
    ["a test left out", /Deno\.test\.(?:only|ignore)|\bignore: true/],
  ] as const;
  const found: string[] = [];
  for (const { path, text } of files) {
    if (path === "deno.lock" || path === "tests/house/tree_test.ts") continue;
    for (const [what, pattern] of words) {
      const hit = pattern.exec(text);
      if (hit !== null) found.push(`${path}: ${what} (${hit[0]})`);
    }
  }
  assert.deepEqual(found, []);
});

Deno.test("production code never writes to the console", async () => {
  const found = production(await readSources("src")).filter(({ text }) => /\bconsole\.\w+\(/.test(text));
  assert.deepEqual(found.map(({ path }) => path), []);
});

Deno.test("no file takes the path of a URL as it stands: in a folder with a blank in its name it is another one", async () => {
  const files = (await Promise.all(["src", "workers", "tools", "tests"].map((folder) => readSources(folder)))).flat();
  const taken = files.filter(({ text }) => /import\.meta\.(?:url|resolve\([^)]*\))\)\.pathname/.test(text));
  assert.deepEqual(taken.map(({ path }) => path), []);
});
