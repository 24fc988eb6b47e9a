import assert from "node:assert/strict";
import { reflow } from "./reflow.ts";

const WORDS = "a paragraph of prose that has a line which is wider than it should be by far, since the name in it is "
  .repeat(2)
  .trim();

Deno.test("a paragraph with a line that is too wide is wrapped, prefixes and words kept; every other line stays", () => {
  for (const [path, prefix] of [["a.ts", "   * "], ["a.ts", "// "], ["a.sql", "-- "], ["README.md", ""]] as const) {
    const text = `${prefix}short one\n\n${prefix}${WORDS}\n${prefix}and its end.\n\nconst x = ${"1 + ".repeat(40)}1;\n`;
    const lines = reflow(path, text).split("\n");
    const prose = lines.slice(2, lines.indexOf("", 2));
    assert.equal(lines[0], `${prefix}short one`);
    assert.ok(prose.length >= 2 && prose.every((line) => line.length <= 120 && line.startsWith(prefix)), path);
    assert.equal(prose.map((line) => line.slice(prefix.length)).join(" "), `${WORDS} and its end.`);
    if (path !== "README.md") assert.ok(text.endsWith(lines.slice(-2).join("\n")));
  }
});

Deno.test("code, tables, tags of a comment and what is within its width are left as they are", () => {
  const wide = "x".repeat(130);
  const kept = ["```sh", `echo ${wide}`, "```", `| ${wide} | b |`, `- ${wide}`].join("\n");
  assert.equal(reflow("README.md", kept), kept);
  assert.equal(reflow("a.ts", `  /** ${wide} ${wide} */`), `  /**\n   * ${wide}\n   * ${wide}\n   */`);
  for (const text of [`  /** short */`, ` * @param ${wide} ${wide}`, `const a = "${wide} ${wide}";`]) {
    assert.equal(reflow("a.ts", text), text);
  }
  const narrow = "one\ntwo\n";
  assert.equal(reflow("README.md", narrow), narrow);
});
