import assert from "node:assert/strict";
import { systemClock } from "../core/clock.ts";
import { silentLogger } from "../core/log.ts";
import { noMetrics } from "../core/metrics.ts";
import { CHAINS } from "../migrations.ts";
import type { FlagKey } from "./flags.ts";
import { openStore } from "./open_store.ts";
import { readSettings } from "./settings.ts";

// As SQLite numbers them.
const NORMAL = 1;
const FULL = 2;

async function synchronousOf(flags: Partial<Record<FlagKey, string>>): Promise<unknown> {
  const folder = await Deno.makeTempDir();
  const settings = readSettings({ flags: { store: `sqlite:${folder}/a.db`, ...flags }, env: {} });
  const open = await openStore({
    settings,
    chains: CHAINS,
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    applicationName: "test",
  });
  try {
    assert.ok(open?.store.engine === "sqlite");
    return await open.store.db.read((session) => session.get("pragma synchronous")?.synchronous);
  } finally {
    await open?.close();
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a file survives a power cut unless --sqlite-synchronous normal says that it need not", async () => {
  assert.equal(await synchronousOf({}), FULL);
  assert.equal(await synchronousOf({ sqliteSynchronous: "full" }), FULL);
  assert.equal(await synchronousOf({ sqliteSynchronous: "normal" }), NORMAL);
});
