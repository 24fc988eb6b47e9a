/**
 * The permissions that are compiled into a binary, tried by a binary that wants more.
 */
import assert from "node:assert/strict";
import { runBinary } from "../support/binary.ts";
import { buildTestWorkerIfCan } from "../support/test_worker.ts";

const PROFILES = [
  { profile: "general", could: ["list a folder", "read a file", "write a file"] },
  { profile: "container", could: [] },
] as const;

for (const { profile, could } of PROFILES) {
  Deno.test(`a binary of profile ${profile} can ${could.join(", ") || "do none of it"}, and nothing else`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "laneway-permissions-" });
    try {
      const worker = { name: "prober", source: "tests/security/prober.ts", profile };
      const binary = await buildTestWorkerIfCan(folder, worker);
      if (binary === null) return;
      const { code, out, errors } = await runBinary(binary, ["probe", "--store", "memory"], {
        FOREIGN: "secret",
        HOME: "/root",
        PATH: "/usr/bin:/bin",
      });
      assert.equal(code, 0, errors);
      const lines = out.trim().split("\n");
      assert.equal(lines.length, 10, out);
      assert.deepEqual(lines.filter((line) => line.startsWith("could ")).map((line) => line.slice(6)).sort(), [
        ...could,
      ]);
    } finally {
      await Deno.remove(folder, { recursive: true });
      await Deno.remove("/tmp/laneway-probe-write").catch(() => {});
    }
  });
}
