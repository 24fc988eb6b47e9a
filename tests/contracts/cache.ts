/**
 * What every `Cache` holds.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Cache } from "../../src/infra/cache.ts";

/** A cache and the clock its times go by. */
export interface CacheUnderTest {
  /** The cache under test. */
  readonly cache: Cache;
  /** Moves the cache's time. */
  advance(ms: number): Promise<void>;
  /** Releases everything. */
  close(): Promise<void>;
}

/** Runs the contract. `make` gives a fresh, empty cache for each case. */
export function testCache(name: string, make: () => Promise<CacheUnderTest>): void {
  const check = (what: string, body: (made: CacheUnderTest) => Promise<void>) =>
    Deno.test(`${name}: ${what}`, async () => {
      const made = await make();
      try {
        await body(made);
      } finally {
        await made.close();
      }
    });

  check("get() gives what set() stored, exactly", async ({ cache }) => {
    const value = JSON.stringify({ name: `größe "1" 🚚 '\\`, list: [1, null] });
    await cache.set("WORKER_LIVENESS", "a/b 'c'", value, 60_000);
    assert.equal(await cache.get("WORKER_LIVENESS", "a/b 'c'"), value);
    assert.equal(await cache.get("WORKER_LIVENESS", "a/b"), null);
  });

  check("set() replaces value and time to live", async ({ cache, advance }) => {
    await cache.set("WORKER_LIVENESS", "k", "1", 1_000);
    await cache.set("WORKER_LIVENESS", "k", "2", 600_000);
    await advance(300_000);
    assert.equal(await cache.get("WORKER_LIVENESS", "k"), "2");
  });

  check("get() gives null once the time to live has passed", async ({ cache, advance }) => {
    await cache.set("WORKER_LIVENESS", "k", "1", 60_000);
    await cache.set("WORKER_LIVENESS", "longer", "1", 600_000);
    await advance(60_000);
    assert.equal(await cache.get("WORKER_LIVENESS", "k"), null);
    assert.equal(await cache.get("WORKER_LIVENESS", "longer"), "1");
  });

  check("an expired key can be set again", async ({ cache, advance }) => {
    await cache.set("WORKER_LIVENESS", "k", "1", 1_000);
    await advance(120_000);
    await cache.set("WORKER_LIVENESS", "k", "2", 60_000);
    assert.equal(await cache.get("WORKER_LIVENESS", "k"), "2");
  });

  check("delete() forgets a key, absent or not", async ({ cache }) => {
    await cache.set("WORKER_LIVENESS", "k", "1", 60_000);
    await cache.delete("WORKER_LIVENESS", "k");
    await cache.delete("WORKER_LIVENESS", "k");
    assert.equal(await cache.get("WORKER_LIVENESS", "k"), null);
  });

  check(
    "list() gives the living keys of a scope in order, at most as many as asked for",
    async ({ cache, advance }) => {
      await cache.set("WORKER_LIVENESS", "b", "2", 600_000);
      await cache.set("WORKER_LIVENESS", "gone", "0", 1_000);
      await cache.set("WORKER_LIVENESS", "c", "3", 600_000);
      await cache.set("WORKER_LIVENESS", "a", "1", 600_000);
      await advance(60_000);
      assert.deepEqual((await cache.list("WORKER_LIVENESS", 10)).map(({ key, value }) => key + value), [
        "a1",
        "b2",
        "c3",
      ]);
      assert.deepEqual((await cache.list("WORKER_LIVENESS", 2)).map(({ key }) => key), ["a", "b"]);
    },
  );

  check("many writers of one key at once leave one of their values", async ({ cache }) => {
    const values = Array.from({ length: 20 }, (_, i) => String(i));
    await Promise.all(values.map((value) => cache.set("WORKER_LIVENESS", "k", value, 60_000)));
    assert.ok(values.includes(await cache.get("WORKER_LIVENESS", "k") ?? ""));
  });
}
