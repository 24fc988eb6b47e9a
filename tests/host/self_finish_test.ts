/**
 * A command that finishes its item itself, by the calls that README gives, run as they stand there against a real PostgREST.
 */
import assert from "node:assert/strict";
import type { OwnedItem } from "../../src/work/storage.ts";
import { ROOT } from "../house/source_files.ts";
import { hasCurl } from "../support/has_curl.ts";
import { type HostWorld, refOf, withHosts } from "../support/host_world.ts";

const PAGE = `${ROOT}workers/host-runner/README.md`;
const HEADING = "## A command that finishes its item itself";

/** The page's calls, in order: done, failed. */
async function calls(): Promise<string[]> {
  const [, section = ""] = (await Deno.readTextFile(PAGE)).split(HEADING);
  return [...section.split("\n## ")[0]?.matchAll(/```sh\n([\s\S]*?)```/g) ?? []].map(([, text = ""]) => text);
}

/** Runs a call as a command of the item would. */
async function run(script: string, { orgId, item }: OwnedItem, world: HostWorld): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command("/bin/sh", {
    args: ["-c", script],
    clearEnv: true,
    env: {
      PATH: "/usr/bin:/bin",
      REST_URL: world.rest.url,
      REST_KEY: await world.rest.key("wsl1"),
      REST_APIKEY: "",
      LANEWAY_ORG_ID: orgId,
      LANEWAY_ITEM_ID: item.id,
      LANEWAY_FENCE: String(item.claims),
    },
    stdin: "null",
  }).output();
  const said = new TextDecoder().decode(stdout);
  assert.ok(success, said + new TextDecoder().decode(stderr));
  return said;
}

for (const [n, status] of ["done", "failed"].entries()) {
  Deno.test(`the page's call finishes an item as ${status}, once; its exit then writes nothing over it`, async () => {
    if (!await hasCurl()) return;
    const script = (await calls())[n];
    assert.ok(script !== undefined, "the page has it");
    await withHosts(async (world) => {
      const host = await world.host("wsl1");
      const item = await world.put();
      const [owned] = await host.claim();
      assert.ok(owned);
      assert.deepEqual(JSON.parse(await run(script, owned, world)), [{ id: item.id, status }]);
      const row = await world.read(item);
      assert.deepEqual([row.status, row.lease_expires_at, row.claim_token], [status, null, owned.item.claimToken]);
      assert.equal(row.audit_id !== null, status === "failed");
      assert.equal(await run(script, owned, world), "[]", "a second time it holds the item no more");
      const ref = refOf(owned);
      assert.deepEqual(await host.storage.settle([{ ...ref, to: "done" }]), ["ALREADY"]);
      assert.deepEqual(await host.storage.settle([{ ...ref, to: "retry", delayMs: 0, error: "exit 1" }]), ["ALREADY"]);
      assert.deepEqual(await world.read(item), row);
    });
  });
}

Deno.test("the page's call of a run that comes late changes nothing: the item was claimed anew", async () => {
  if (!await hasCurl()) return;
  const [done = ""] = await calls();
  await withHosts(async (world) => {
    const host = await world.host("wsl1");
    await world.put();
    const [before] = await host.claim();
    assert.ok(before);
    await host.storage.settle([{ ...refOf(before), to: "retry", delayMs: 0, error: "e" }]);
    const [owned] = await host.claim();
    assert.ok(owned);
    assert.equal(await run(done, before, world), "[]");
    assert.equal((await world.read(owned.item)).status, "claimed");
  });
});
