import assert from "node:assert/strict";
import { join } from "node:path";
import { applyChanges, type Change } from "./apply.ts";

/** Every file under a folder with its text, folders as null. */
function treeOf(folder: string, under = ""): Record<string, string | null> {
  const found: Record<string, string | null> = {};
  for (const { name, isDirectory } of Deno.readDirSync(join(folder, under))) {
    const path = join(under, name);
    found[path] = isDirectory ? null : Deno.readTextFileSync(join(folder, path));
    if (isDirectory) Object.assign(found, treeOf(folder, path));
  }
  return found;
}

function withFolder(test: (folder: string) => void): void {
  const folder = Deno.makeTempDirSync();
  try {
    Deno.writeTextFileSync(join(folder, "shared.json"), "{}\n");
    test(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

const MADE: Change = { path: "workers/new/deep/main.ts", before: null, after: "made\n", what: "" };
const CHANGED: Change = { path: "shared.json", before: "{}\n", after: '{"a":1}\n', what: "a" };

Deno.test("applyChanges() makes files with their folders, changes others, and leaves nothing beside them", () => {
  withFolder((folder) => {
    applyChanges(folder, [MADE, CHANGED]);
    assert.deepEqual(treeOf(folder), {
      "shared.json": CHANGED.after,
      workers: null,
      "workers/new": null,
      "workers/new/deep": null,
      "workers/new/deep/main.ts": "made\n",
    });
  });
});

const FAILURES: readonly (readonly [what: string, change: Change])[] = [
  ["a file that changed since the plan", { path: "shared.json", before: "older\n", after: "new", what: "" }],
  ["a file that came into being since", { path: "shared.json", before: null, after: "new", what: "" }],
  ["a folder where a file should be", { path: "taken", before: null, after: "new", what: "" }],
  ["a file where a folder should be", { path: "shared.json/main.ts", before: null, after: "new", what: "" }],
];

for (const [what, change] of FAILURES) {
  Deno.test(`applyChanges() writes nothing at all when it meets ${what}`, () => {
    withFolder((folder) => {
      Deno.mkdirSync(join(folder, "taken"));
      const other: Change = { path: "other.txt", before: null, after: "other", what: "" };
      Deno.writeTextFileSync(join(folder, "also.json"), "{}\n");
      const before = treeOf(folder);
      const also: Change = { ...CHANGED, path: "also.json" };
      assert.throws(() => applyChanges(folder, [MADE, other, also, change]));
      assert.deepEqual(treeOf(folder), before);
    });
  });
}
