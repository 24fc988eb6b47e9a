/**
 * What becomes of items when answers are lost, over a real PostgREST behind a server that loses them.
 */
import assert from "node:assert/strict";
import type { Clock } from "../../src/core/clock.ts";
import { newId } from "../../src/core/ids.ts";
import type { OwnedItem, Settlement } from "../../src/work/storage.ts";
import { buildHost, type HostWorld, refOf, rowOf, type TestHost, withHosts } from "../support/host_world.ts";
import { type Fate, type ScriptedRest, scriptedRest, type Seen } from "../support/scripted_rest.ts";

/** A clock whose pauses are over at once, though it says that they took their time. */
function hurriedClock(): Clock & { readonly slept: number[] } {
  let ahead = 0;
  const slept: number[] = [];
  return {
    slept,
    now: () => Date.now(),
    monotonic: () => performance.now() + ahead,
    sleep: (ms) => {
      slept.push(ms);
      ahead += ms;
      return Promise.resolve();
    },
  };
}

interface Faulty {
  readonly world: HostWorld;
  readonly host: TestHost;
  readonly server: ScriptedRest;
}

/** A host whose server is scripted. Its heartbeat has been written. */
function withFaults(check: (faulty: Faulty) => Promise<void>): Promise<void> {
  return withHosts(async (world) => {
    const server = scriptedRest(world.rest.url);
    try {
      await world.host("wsl1");
      const readKey = () => world.rest.key("wsl1");
      const client = { clock: hurriedClock(), timeoutMs: 400 };
      const host = buildHost(rowOf("wsl1", world.a), { url: server.url, readKey, client });
      // An answer's time of arrival is the real clock's.
      await host.api.beat(null);
      await check({ world, host, server });
    } finally {
      await server.stop();
    }
  });
}

const isWrite = ({ method, path }: Seen) => method === "PATCH" && path === "/work_items";

/** The first write meets a fate, all else passes. */
function first(fate: Fate): (seen: Seen) => Fate {
  let met = false;
  return (seen) => {
    if (!isWrite(seen) || met) return "pass";
    met = true;
    return fate;
  };
}

/** Fates that leave a caller without an answer, and whether the write took effect. */
const LOST: Readonly<Record<string, { readonly fate: Fate; readonly wrote: boolean }>> = {
  "cut off after it took effect": { fate: "lose", wrote: true },
  "never come though it took effect": { fate: "late", wrote: true },
  "cut off before it took effect": { fate: "drop", wrote: false },
  "a gateway's 504 after it took effect": { fate: { then: 504 }, wrote: true },
  "a gateway's 502 before it took effect": { fate: { status: 502 }, wrote: false },
};

/** Sends a request as it came, and lets its answer go. */
async function send({ rest }: HostWorld, { method, path, query, authorization, body }: Seen): Promise<void> {
  const headers = { authorization, "content-type": "application/json", "content-profile": "queue" };
  const answer = await fetch(`${rest.url}${path}?${query}`, { method, headers, body });
  assert.equal(answer.ok, true, await answer.text());
}

async function claimOne(host: TestHost): Promise<OwnedItem> {
  const [owned] = await host.claim({ limit: 1 });
  assert.ok(owned);
  return owned;
}

for (const [what, { fate, wrote }] of Object.entries(LOST)) {
  Deno.test(`a claim whose answer is ${what} is read back: held once, or not at all and claimed again`, () =>
    withFaults(async ({ world, host, server }) => {
      const item = await world.put();
      server.script = first(fate);
      const owned = (await host.claim()).concat(await host.claim());
      assert.deepEqual(owned.map(({ item: { id } }) => id), [item.id]);
      const row = await world.read(item);
      assert.deepEqual(
        [row.status, row.claim_token, row.attempts, row.claims],
        ["claimed", owned[0]?.item.claimToken, 1, "1"],
      );
    }));

  Deno.test(`a settlement whose answer is ${what} is written once, in each way`, () =>
    withFaults(async ({ world, host, server }) => {
      const ways: Record<string, (owned: OwnedItem) => Settlement> = {
        done: (owned) => ({ ...refOf(owned), to: "done" }),
        failed: (owned) => ({ ...refOf(owned), to: "failed", error: "e", auditId: newId() }),
        retry: (owned) => ({ ...refOf(owned), to: "retry", delayMs: 60_000, error: "e" }),
        back: (owned) => ({ ...refOf(owned), to: "back", delayMs: 60_000, note: "n", ran: false }),
      };
      for (const [way, of] of Object.entries(ways)) {
        const item = await world.put();
        const owned = await claimOne(host);
        server.script = first(fate);
        const [outcome] = await host.storage.settle([of(owned)]);
        // A finished row tells that it was written, not by which of the tries.
        const finished = way === "done" || way === "failed";
        assert.equal(outcome, wrote && finished ? "ALREADY" : "WRITTEN", way);
        const row = await world.read(item);
        assert.equal(row.status, finished ? way : "queued");
        assert.equal(row.attempts, way === "back" ? 0 : 1, way);
      }
    }));
}

Deno.test("a claim that cannot even be read back is found by its token once the server is there again", () =>
  withFaults(async ({ world, host, server }) => {
    const item = await world.put();
    server.script = first("lose");
    const script = server.script;
    let cut = false;
    server.script = async (seen): Promise<Fate> => {
      const fate = await script(seen);
      if (fate === "lose") cut = true;
      return fate === "pass" && cut ? { status: 503 } : fate;
    };
    const token = newId();
    await assert.rejects(host.claim({ token }), { code: "UNAVAILABLE", outcome: "unknown" });
    await assert.rejects(host.storage.readClaimed(token), { code: "UNAVAILABLE" });
    server.script = () => "pass";
    const found = await host.storage.readClaimed(token);
    assert.deepEqual(found.map((owned) => [owned.orgId, owned.item.id, owned.item.claimToken]), [[
      world.a,
      item.id,
      token,
    ]]);
    assert.deepEqual(await host.storage.extendLeases(found.map(refOf), 60_000), ["WRITTEN"]);
  }));

Deno.test("of a batch one of whose settlements fails, the others are not written twice when it is repeated", () =>
  withFaults(async ({ world, host, server }) => {
    for (let n = 0; n < 3; n++) await world.put();
    const claimed = await host.claim();
    const [a, b, c] = claimed;
    assert.ok(a && b && c);
    server.script = ({ query, method }) =>
      method === "PATCH" && query.get("id") === `eq.${b.item.id}` ? { status: 503 } : "pass";
    const batch: Settlement[] = claimed.map((owned) => ({ ...refOf(owned), to: "retry", delayMs: 60_000, error: "e" }));
    await assert.rejects(host.storage.settle(batch), { code: "UNAVAILABLE" });
    server.script = () => "pass";
    assert.deepEqual(await host.storage.settle(batch), ["WRITTEN", "WRITTEN", "WRITTEN"]);
    assert.deepEqual(
      await host.storage.settle(batch),
      ["REFUSED", "REFUSED", "REFUSED"],
      "they are forgotten once told",
    );
  }));

for (const [what, { fate }] of Object.entries(LOST)) {
  Deno.test(`a renewal and a heartbeat whose answer is ${what} are asked again`, () =>
    withFaults(async ({ world, host, server }) => {
      await world.put();
      const owned = await claimOne(host);
      server.script = first(fate);
      assert.deepEqual(await host.storage.extendLeases([refOf(owned)], 60_000), ["WRITTEN"]);
      const beats = first(fate);
      server.script = (seen) => beats({ ...seen, path: "/work_items" });
      assert.equal((await host.api.beat(3))?.row.currentWorkers, 3);
    }));
}

Deno.test("a write that a proxy sends twice is known as the claim it is, though its second answer met no row", () =>
  withFaults(async ({ world, host, server }) => {
    const item = await world.put();
    server.script = async (seen): Promise<Fate> => {
      if (!isWrite(seen)) return "pass";
      await send(world, seen);
      return "pass";
    };
    const owned = await claimOne(host);
    assert.equal(owned.item.id, item.id);
    assert.deepEqual(await host.storage.settle([{ ...refOf(owned), to: "retry", delayMs: 0, error: "e" }]), [
      "WRITTEN",
    ]);
    const again = await claimOne(host);
    assert.deepEqual(await host.storage.settle([{ ...refOf(again), to: "done" }]), ["ALREADY"]);
    assert.deepEqual([again.item.attempts, (await world.read(item)).status], [2, "done"]);
  }));

Deno.test("a server that is out of reach is told as such, and nothing was executed", async () => {
  const server = scriptedRest("http://127.0.0.1:9");
  await server.stop();
  const host = buildHost(rowOf("wsl1", newId()), {
    url: server.url,
    readKey: () => "k",
    client: { clock: hurriedClock() },
  });
  await assert.rejects(host.api.beat(1), { code: "UNAVAILABLE", outcome: "not-executed" });
  await assert.rejects(host.claim(), { code: "UNAVAILABLE", outcome: "not-executed" });
});
