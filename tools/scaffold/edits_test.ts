import assert from "node:assert/strict";
import { addBlock, addLine, addToJson, NoPlace } from "./edits.ts";

const JSON_TEXT = `{
  // why
  "unstable": ["raw-imports"],
  "tasks": {
    "a": "b"
  }
}
`;

Deno.test("addToJson() adds what is missing, keeps what is there, and moves nothing else, comments included", () => {
  const added = addToJson(JSON_TEXT, [[["tasks", "a"], "other"], [["tasks", "compile:x"], "run x"]]);
  assert.equal(added, JSON_TEXT.replace('"a": "b"\n', '"a": "b",\n    "compile:x": "run x"\n'));
  assert.equal(addToJson(added, [[["tasks", "compile:x"], "run y"]]), added);
});

Deno.test("addLine() puts a line last in its marked part, once, and says how to mark one that is not", () => {
  const text = "# a\n<!-- kinds -->\n| k |\n|---|\n| `A` |\n<!-- end: kinds -->\n\nrest\n";
  const options = { name: "kinds", has: "`B`", file: "f.md" };
  const added = addLine(text, "| `B` |", options);
  assert.equal(added, text.replace("| `A` |\n", "| `A` |\n| `B` |\n"));
  assert.equal(addLine(added, "| `B` |", options), added);
  for (const broken of ["", "<!-- kinds -->", "<!-- end: kinds --> <!-- kinds -->"]) {
    assert.throws(
      () => addLine(broken, "x", options),
      (error) => error instanceof NoPlace && /f\.md.*<!-- kinds -->/.test(error.message),
    );
  }
});

Deno.test("addBlock() puts a block before its mark, once", () => {
  const options = { before: "# end of workers", has: "# x", file: ".env.example" };
  const added = addBlock("A=1\n\n# end of workers\n", "# x\nX=1\n", options);
  assert.equal(added, "A=1\n\n# x\nX=1\n\n# end of workers\n");
  assert.equal(addBlock(added, "# x\nX=1\n", options), added);
  assert.throws(() => addBlock("A=1\n", "# x", options), NoPlace);
});
