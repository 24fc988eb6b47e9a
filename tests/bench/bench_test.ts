/**
 * The bench at its smallest, so that it never rots: our own contenders alone, as peers have to be installed first.
 */
import assert from "node:assert/strict";
import { type Contender, CONTENDERS } from "./contenders.ts";
import { drainOnce } from "./drain.ts";
import { enqueueOnce } from "./enqueue.ts";
import { latencyOnce } from "./latency.ts";
import { BenchServer } from "./server.ts";
import type { Bench } from "./stage.ts";

function contender(id: string): Contender {
  const found = CONTENDERS.find((one) => one.id === id);
  assert.ok(found !== undefined, id);
  return found;
}

async function withServer(work: (bench: Bench) => Promise<void>): Promise<void> {
  const server = await BenchServer.start();
  try {
    await work({ server, peers: null });
  } finally {
    await server.close();
  }
}

Deno.test("each store of ours is filled and drained in processes of its own, and counted in the database", () =>
  withServer(async (bench) => {
    const settings = await bench.server.settings();
    assert.deepEqual([settings.fsync, settings.full_page_writes, settings.synchronous_commit], ["on", "on", "on"]);
    for (const id of ["laneway", "sqlite", "memory"]) {
      const figures = await drainOnce(contender(id), bench, { items: 200, handlerMs: 0 });
      assert.ok(figures.perSecond > 0 && figures.peakMiB > 0, id);
      if (id === "laneway") assert.ok(figures.walBytes !== null && figures.walBytes > 100);
      else assert.equal(figures.walBytes, null);
    }
  }));

Deno.test("enqueues and latencies are measured across processes", () =>
  withServer(async (bench) => {
    const rates = await enqueueOnce(contender("laneway"), bench, 0.01);
    assert.ok(Object.values(rates).every((rate) => rate > 0), JSON.stringify(rates));
    const { idle, loaded } = await latencyOnce(contender("laneway"), bench, 0.01);
    for (const figures of [idle, loaded]) {
      assert.equal(figures.samples, 20);
      assert.ok(figures.p50 > -1 && figures.p50 <= figures.p99 && figures.p99 <= figures.max, JSON.stringify(figures));
    }
  }));

Deno.test("a peer that is not installed is refused by name", () =>
  withServer(async (bench) => {
    await assert.rejects(
      drainOnce(contender("graphile"), bench, { items: 1, handlerMs: 0 }),
      /measure graphile as its/,
    );
  }));
