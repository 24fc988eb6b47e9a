/**
 * A worker that takes its items from elsewhere than a store of ours: no database URL, its own checks, no upkeep.
 */
import assert from "node:assert/strict";
import * as z from "zod";
import { newId } from "../../src/core/ids.ts";
import { SettingsError } from "../../src/core/errors.ts";
import type { Check, OpenOptions, OpenParts, WorkerDefinition } from "../../src/runtime/definition.ts";
import { openParts } from "../../src/runtime/open_parts.ts";
import { readSettings } from "../../src/runtime/settings.ts";
import { defineKind } from "../../src/work/kinds.ts";
import { runCli, TestStop } from "../support/cli.ts";
import { waitFor } from "../support/wait_for.ts";

const KIND = defineKind("ECHO", { schema: z.object({ text: z.string() }) });
const SERVE = ["--http-port", "0", "--poll", "20ms", "--sweep", "100ms", "--log-level", "error"];

interface Options {
  readonly upkeep?: boolean;
  readonly checks?: readonly Check[];
  readonly onOpen?: (open: OpenParts) => Promise<void>;
  readonly handled?: string[];
}

/** A worker whose source is a store in memory that it opens itself. */
function ownSource({ upkeep, checks = [], onOpen, handled = [] }: Options = {}): WorkerDefinition {
  const plain: WorkerDefinition = { name: "own", release: "1.0.0", kinds: [KIND], build: () => ({ handlers: [] }) };
  return {
    ...plain,
    kinds: [],
    env: ["LANEWAY_OWN_CONFIG"],
    sections: ["Work", "Timing", "HTTP", "Logs"],
    flagDefaults: { pollMs: "30s" },
    configuredKinds(env) {
      if (env.LANEWAY_OWN_CONFIG === undefined) throw new SettingsError("Cannot read the config: it is not named");
      return [KIND];
    },
    async open({ clock, logger, metrics }: OpenOptions) {
      const settings = readSettings({ flags: { store: "memory" }, env: {} });
      const open = await openParts({ definition: plain, settings, env: {}, clock, logger, metrics });
      assert.ok(open !== null);
      await onOpen?.(open);
      return { ...open, ...(upkeep === undefined ? {} : { upkeep }) };
    },
    checks: () => Promise.resolve(checks),
    build: () => ({
      handlers: [{ kind: KIND, handle: (_ctx, item) => void handled.push(item.idempotencyKey) }],
    }),
  };
}

const env = { LANEWAY_OWN_CONFIG: "x" };

/** An item claimed by somebody who died, its lease about to pass, and one that waits. */
async function seed({ parts }: OpenParts): Promise<void> {
  const { work, tenancy } = parts.managers;
  const rctx = tenancy.requestContext({ type: "WORKER", version: "dead@1" });
  const org = await tenancy.createOrg(rctx, { name: "Acme" });
  const ctx = await tenancy.serviceContext(rctx, org.id);
  await work.enqueue(ctx, { kind: "ECHO", idempotencyKey: "lost", payload: { text: "1" } });
  await work.claim(rctx, { lane: "default", kinds: ["ECHO"], worker: "dead", leaseMs: 1_000, limit: 1 });
  await work.enqueue(ctx, { kind: "ECHO", idempotencyKey: "waiting", payload: { text: "2" } });
}

Deno.test("it serves what it opened itself, without a database URL", async () => {
  const handled: string[] = [];
  const stop = new TestStop();
  const running = runCli(SERVE, { env, stop, definition: ownSource({ handled, onOpen: seed }) });
  // With upkeep, the default, the sweep takes the dead worker's item back.
  await waitFor("both items", () => handled.length === 2);
  stop.stop();
  assert.deepEqual(await running, { code: 0, out: [], errors: [] });
  assert.deepEqual(handled, ["waiting", "lost"]);
});

Deno.test("without upkeep it sweeps nothing: expired claims are left to others", async () => {
  const handled: string[] = [];
  const stop = new TestStop();
  let open: OpenParts | undefined;
  let swept = 0;
  const definition = ownSource({
    upkeep: false,
    handled,
    async onOpen(opened) {
      open = opened;
      const work = opened.parts.managers.work;
      const take = work.takeSweepSteps.bind(work);
      work.takeSweepSteps = (...args) => {
        swept++;
        return take(...args);
      };
      await seed(opened);
    },
  });
  const running = runCli(SERVE, { env, stop, definition });
  await waitFor("the item that waits", () => handled.length === 1);
  assert.ok(open !== undefined);
  const { work, tenancy } = open.parts.managers;
  const rctx = tenancy.requestContext({ type: "WORKER", version: "test@1" });
  // The claim's lease has passed once its org is listed as one with stale items.
  await waitFor("the lease to pass", async () => (await work.staleOrgs(rctx, 10)).live.length === 1);
  stop.stop();
  assert.equal((await running).code, 0);
  assert.deepEqual([handled, swept], [["waiting"], 0]);
});

Deno.test("check shows its own findings, and fails when one of them does", async () => {
  const checks: Check[] = [{ name: "server", state: "ok", said: "answers" }];
  const good = await runCli(["check"], { env, definition: ownSource({ checks }) });
  assert.deepEqual(good, { code: 0, out: ["ok    server  answers", "1 ok, 0 warnings, 0 failed"], errors: [] });
  const bad = ownSource({ checks: [...checks, { name: "key", state: "fail", said: "is too strong" }] });
  assert.equal((await runCli(["check"], { env, definition: bad })).code, 1);
});

Deno.test("what its configuration lacks ends the start at once; a kind it does not name is refused", async () => {
  const missing = await runCli(SERVE, { definition: ownSource() });
  assert.deepEqual([missing.code, missing.errors], [1, ["own: Cannot read the config: it is not named"]]);
  const wrong = await runCli([...SERVE, "--kind", "ECO"], { env, definition: ownSource() });
  assert.equal(wrong.code, 2);
  assert.match(wrong.errors[0] ?? "", /--kind ECO.*did you mean ECHO\?/);
});

Deno.test("it has neither enqueue nor migrate, the flags of its sections alone, and its own defaults", async () => {
  const { out } = await runCli(["--help"], { definition: ownSource() });
  const help = out.join("\n");
  for (const word of ["enqueue", "migrate", "--store", "--pool-size"]) {
    assert.ok(!out.some((line) => line.startsWith(`  ${word}`)), word);
  }
  assert.ok(!help.includes("DATABASE_URL"));
  for (const word of ["--lane", "--capacity", "[default 30s", "LANEWAY_OWN_CONFIG", "kinds its configuration names"]) {
    assert.ok(help.replaceAll(/\s+/g, " ").includes(word), word);
  }
  assert.equal((await runCli(["enqueue", "--org", newId()], { definition: ownSource() })).code, 2);
  assert.equal((await runCli(["--store", "memory"], { definition: ownSource() })).code, 2);
});
