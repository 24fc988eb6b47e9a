import assert from "node:assert/strict";
import { shrinkMap, withSmallMap } from "./source_map.ts";

// Lines of a bundle: two of ours, the second with columns; one of a package; one without a segment; ours again, line 21.
const MAP = {
  version: 3,
  sources: ["/npm/p.js", "src/a.ts"],
  sourcesContent: ["p", "a"],
  names: ["x"],
  mappings: "ACEA;AACA,IACE;ADOA;;ACSA",
};

Deno.test("shrinkMap() keeps one place a line of the sources asked for, and ends them where others begin", () => {
  const small = shrinkMap(MAP, (source) => source.startsWith("src/"));
  assert.deepEqual(Object.keys(small).sort(), ["mappings", "sources", "version"]);
  assert.deepEqual(small.sources, ["src/a.ts"]);
  assert.deepEqual(small.mappings.split(";").map((line) => line.length > 1), [true, true, false, false, true]);
  assert.equal(small.mappings.split(";")[2], "A");
});

Deno.test("withSmallMap() leaves the code as it was, and a bundle without a map whole", () => {
  const head = "//# sourceMappingURL=data:application/json;base64,";
  const text = withSmallMap(`code();\n${head}${btoa(JSON.stringify(MAP))}`);
  assert.ok(text.startsWith(`code();\n${head}`));
  const map = JSON.parse(atob(text.slice(`code();\n${head}`.length).trim()));
  assert.deepEqual(map.sources, ["src/a.ts"]);
  assert.equal(withSmallMap("code();\n"), "code();\n");
});

Deno.test("a stack trace through a small map names our file and line", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(
      `${folder}/thrower.ts`,
      "\n\n\nexport function boom(): never {\n  throw new Error();\n}\n",
    );
    await Deno.writeTextFile(`${folder}/main.ts`, "import { boom } from './thrower.ts';\nboom();\n");
    await deno("bundle", "-q", "--sourcemap=inline", "-o", `${folder}/out.js`, `${folder}/main.ts`);
    const bundle = await Deno.readTextFile(`${folder}/out.js`);
    const small = withSmallMap(bundle);
    assert.ok(small.length < bundle.length);
    await Deno.writeTextFile(`${folder}/out.js`, small);
    await Deno.remove(`${folder}/thrower.ts`);
    assert.match(await deno("run", `${folder}/out.js`), /thrower\.ts:5:/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function deno(...args: string[]): Promise<string> {
  const { stderr } = await new Deno.Command(Deno.execPath(), { args, stdin: "null", stdout: "null", stderr: "piped" })
    .output();
  return new TextDecoder().decode(stderr);
}
