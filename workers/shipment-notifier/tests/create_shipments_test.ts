/**
 * `create-shipments` as a person runs it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { newId } from "../../../mod.ts";
import { runChild } from "./child.ts";
import { newShipment } from "./world.ts";

function lineOf(fields: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ orgId: newId(), ...newShipment("https://hooks.example/x"), ...fields });
}

Deno.test("create-shipments creates each line once, tells of refused ones by line, and makes orgs only when asked", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-create-" });
  try {
    const orgId = newId();
    const lines = [
      lineOf({ orgId, orgName: "Łódź" }),
      "{",
      lineOf({ orgId, id: undefined }),
      lineOf({ orgId: "nope" }),
      lineOf({ orgId, webhookUrl: "ftp://x" }),
      "x".repeat(20_000),
      lineOf({ orgId, carrier: "UPS" }),
    ];
    await Deno.writeTextFile(`${folder}/in.ndjson`, lines.join("\n"));
    const args = ["create-shipments", "--store", `sqlite:${folder}/a.db`, "--file", `${folder}/in.ndjson`];
    const stranger = await runChild(args);
    assert.equal(stranger.code, 1);
    assert.match(stranger.stdout, /^line 1: refused: .*no such org/m);
    assert.match(stranger.stdout, /\n0 created, 0 already there, 7 refused\n$/);
    const first = await runChild([...args, "--create-orgs"]);
    assert.equal(first.code, 1, first.stderr);
    assert.deepEqual([...first.stdout.matchAll(/^line (\d+): refused: /gm)].map(([, n]) => Number(n)), [2, 3, 4, 5, 6]);
    assert.match(first.stdout, /\n2 created, 0 already there, 5 refused\n$/);
    const again = await runChild(args);
    assert.match(again.stdout, /\n0 created, 2 already there, 5 refused\n$/);
    assert.equal(first.stderr + again.stderr, "");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("create-shipments ends with one line on what is wrong", async () => {
  const cases: [string[], number, RegExp][] = [
    [["--store", "memory"], 2, /--store memory/],
    [["--store", "sqlite:/tmp", "--file", "/no/such"], 1, /there is no such file/],
    [["--file", "/dev/null"], 2, /which store/],
  ];
  for (const [args, code, line] of cases) {
    const ended = await runChild(["create-shipments", ...args]);
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, line);
    assert.equal(ended.stderr.trim().split("\n").length, 1);
  }
});

Deno.test("the worker says at once that its secret is of no use, before it opens anything", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-secret-" });
  try {
    const ended = await runChild(["--store", `sqlite:${folder}/a.db`, "--http", "off"], {
      LANEWAY_WEBHOOK_SECRET: "whsec_short",
    });
    assert.equal(ended.code, 2);
    assert.match(
      ended.stderr,
      /^shipment-notifier: Cannot use LANEWAY_WEBHOOK_SECRET: it must be whsec_ and 24 to 64 bytes/m,
    );
    assert.deepEqual([...Deno.readDirSync(folder)], []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
