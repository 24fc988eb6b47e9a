import assert from "node:assert/strict";
import { silentLogger } from "../../core/log.ts";
import { LogFolder } from "./run_log.ts";

Deno.test("of runs that begin together on a new host each has a log, though the first makes the folder", async () => {
  const above = await Deno.makeTempDir({ prefix: "laneway-run-log-" });
  try {
    // Deep, so that it takes a while.
    const folder = `${above}/${"a/".repeat(100)}logs`;
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (event: string) => void warnings.push(event) };
    const logs = new LogFolder({ folder, runs: 10, totalBytes: 1e6, perRunBytes: 1e3 }, logger);
    const names = ["a.log", "b.log", "c.log", "d.log"];
    await Promise.all(names.map(async (name) => {
      const log = await logs.open(name);
      await log.note(name);
      await log.close();
    }));
    const there = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
    assert.deepEqual([there, warnings], [names, []]);
  } finally {
    await Deno.remove(above, { recursive: true });
  }
});
