/**
 * README says what the code says.
 */
import assert from "node:assert/strict";
import { METRICS } from "../../src/core/metrics.ts";
import { envName, FLAG_ENTRIES } from "../../src/runtime/flags.ts";
import { readmeWithTables } from "../../tools/readme_tables.ts";
import { readSources, ROOT } from "./source_files.ts";

const readme = await Deno.readTextFile(`${ROOT}README.md`);

Deno.test("README's tables are those the code generates (deno task docs)", () => {
  assert.equal(readme, readmeWithTables(readme));
  for (const [, spec] of FLAG_ENTRIES) assert.ok(readme.includes(`--${spec.flag}`) && readme.includes(envName(spec)));
  for (const name of Object.keys(METRICS)) assert.ok(readme.includes(name));
});

Deno.test("every flag, variable and metric that README or a deployment file names exists", async () => {
  const files = [{ path: "README.md", text: readme }, ...await readSources("deploy", [".yaml", ".yml", ".env", ".tf"])];
  const flags = FLAG_ENTRIES.map(([, spec]) => envName(spec));
  const settings = (await readSources("workers")).filter((file) => file.path.endsWith("/settings.ts"));
  const isWorkers = (name: string) => settings.some(({ text }) => text.includes(`"${name}"`));
  for (const { path, text } of files) {
    for (const [name] of text.matchAll(/\bLANEWAY_[A-Z_]+\b/g)) {
      const known = flags.includes(name) || /^LANEWAY_(\w+_)?DATABASE_URL(_FILE)?$/.test(name) ||
        isWorkers(name);
      assert.ok(known, `${path} names ${name}, which nothing reads`);
    }
    for (const [name] of text.matchAll(/\blaneway_[a-z_]+(_total|_seconds|_items|_work\w*)\b/g)) {
      assert.ok(name in METRICS || name === "laneway_event_loop_lag_seconds", `${path} names ${name}, no metric`);
    }
  }
});

Deno.test("README's paths exist", async () => {
  const missing: string[] = [];
  const built = new Set((await readSources("workers")).map(({ path }) => path.split("/")[1]));
  for (const [, path] of readme.matchAll(/`((?:src|tests|tools|migrations|workers)\/[\w./-]+)`/g)) {
    const [top, worker] = path?.split("/") ?? [];
    if (top === "workers" && !built.has(worker)) continue;
    if (path !== undefined && !await Deno.stat(ROOT + path).then(() => true, () => false)) missing.push(path);
  }
  assert.deepEqual(missing, []);
});

Deno.test("every room with a storage has a page of one screen in the product's words, linked from README", async () => {
  const rooms = new Set(
    (await readSources("src")).filter(({ path }) => path.includes("/storage/")).map(({ path }) => path.split("/")[1]),
  );
  assert.ok(rooms.size >= 5);
  for (const room of rooms) {
    const path = `src/${room}/README.md`;
    // The table of kinds grows with the workers.
    const page = (await Deno.readTextFile(ROOT + path)).replace(/<!-- kinds -->[^]*<!-- end: kinds -->\n/, "");
    assert.ok(page.split("\n").length <= 50, `${path} is longer than a screen`);
    assert.doesNotMatch(page, /```[a-z]|\bdeno\b|LANEWAY_|\s--[a-z]/, `${path} instructs developers or operators`);
    assert.ok(readme.includes(`](${path})`), `README does not link ${path}`);
  }
});
