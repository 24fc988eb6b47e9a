/**
 * The client's manners against a scripted server: bounds, rests, redirects, and a key that shows nowhere.
 */
import assert from "node:assert/strict";
import type { Clock } from "../../src/core/clock.ts";
import { checkRestUrl, type RestClientOptions } from "../../src/host/rest_client.ts";
import { buildHost, rowOf, type TestHost } from "../support/host_world.ts";
import { type Fate, type ScriptedRest, scriptedRest, type Seen } from "../support/scripted_rest.ts";

const KEY = "key-that-nobody-may-see";
const ORG = "00000000-0000-7000-8000-000000000001";

/** Time moves by sleeping alone. */
class SleepClock implements Clock {
  readonly slept: number[] = [];
  atMs = 0;
  now(): number {
    return this.atMs;
  }
  monotonic(): number {
    return this.atMs;
  }
  sleep(ms: number): Promise<void> {
    this.slept.push(ms);
    this.atMs += ms;
    return Promise.resolve();
  }
}

interface Rig {
  readonly server: ScriptedRest;
  readonly host: TestHost;
  readonly clock: SleepClock;
  key: string;
}

const EMPTY = { status: 200, headers: { "content-type": "application/json" }, body: "[]" };

async function withRig(check: (rig: Rig) => Promise<void>, client: Partial<RestClientOptions> = {}): Promise<void> {
  // Nothing is ever passed on.
  const server = scriptedRest("http://127.0.0.1:9");
  server.script = () => EMPTY;
  const clock = new SleepClock();
  const rig: Rig = {
    server,
    clock,
    key: KEY,
    host: buildHost(rowOf("wsl1", ORG), {
      url: server.url,
      readKey: () => rig.key,
      client: { clock, random: () => 0.5, ...client },
    }),
  };
  try {
    await check(rig);
    for (const line of [...rig.host.logged, ...rig.host.notices]) assert.equal(line.includes(KEY), false, line);
  } finally {
    await server.stop();
  }
}

/** What a failing call says in all its parts. */
async function failure(
  call: Promise<unknown>,
): Promise<{ readonly code: string; readonly outcome: string; readonly said: string }> {
  const error = await call.then(() => null, (error) => error);
  assert.ok(error !== null, "it fails");
  const said = Deno.inspect(error, { depth: 10 });
  assert.equal(said.includes(KEY), false, said);
  return { code: error.code, outcome: error.outcome, said };
}

/** These in turn, then empty answers. */
function inTurn(...fates: Fate[]): () => Fate {
  return () => fates.shift() ?? EMPTY;
}

Deno.test("a busy server is asked again after the rest it asks for, at most a minute, and every call waits for it", () =>
  withRig(async ({ server, host, clock }) => {
    server.script = inTurn({ status: 429, headers: { "retry-after": "7" } });
    await host.api.read();
    assert.equal(server.seen.length, 2);
    assert.ok(clock.atMs >= 7_000 && clock.atMs < 9_000, `${clock.atMs}`);
    server.script = inTurn({ status: 503, headers: { "retry-after": "86400" } });
    const { outcome, said } = await failure(host.api.read());
    assert.equal(outcome, "not-executed");
    assert.match(said, /is given (59|60) s of rest/);
    const asked = server.seen.length;
    await failure(host.api.countInFlight());
    assert.equal(server.seen.length, asked, "another call does not ask either");
    clock.atMs += 61_000;
    await host.api.countInFlight();
  }));

Deno.test("a Retry-After that is a date counts from the answer's own date, whatever this machine's clock shows", () =>
  withRig(async ({ server, host, clock }) => {
    const [date, later] = [0, 5_000].map((ms) => new Date(Date.UTC(2031, 0, 1) + ms).toUTCString());
    server.script = inTurn({ status: 503, headers: { date: date ?? "", "retry-after": later ?? "" } });
    await host.api.read();
    assert.ok(clock.atMs >= 5_000 && clock.atMs < 7_000, `${clock.atMs}`);
  }));

Deno.test("repeats are few and their pauses jittered and growing: no storm", () =>
  withRig(async ({ server, host, clock }) => {
    server.script = () => ({ status: 502 });
    assert.equal((await failure(host.api.read())).code, "UNAVAILABLE");
    assert.equal(server.seen.length, 5);
    assert.deepEqual(clock.slept, [125, 250, 500, 1_000], "half of each bound, as the test's chance is a half");
  }));

Deno.test("a server that stays away is asked ever less often by all calls together, and as before once it answers", () =>
  withRig(async ({ server, host, clock }) => {
    server.script = () => ({ status: 502 });
    for (let n = 0; n < 6; n++) await failure(host.api.read());
    const [asked, atMs] = [server.seen.length, clock.atMs];
    for (let n = 0; n < 10; n++) await failure(n % 2 === 0 ? host.api.countInFlight() : host.api.read());
    const [more, seconds] = [server.seen.length - asked, (clock.atMs - atMs) / 1_000];
    assert.ok(more > 0 && more / seconds < 1.3, `${more} requests in ${seconds} s`);
    server.script = () => EMPTY;
    await host.api.read();
    const slept = clock.slept.length;
    await host.api.read();
    assert.equal(clock.slept.length, slept, "nothing is waited for any more");
  }));

Deno.test("a refused key is told once, tried again ever less often, and another one in its file at once", () =>
  withRig(async (rig) => {
    const { server, host, clock } = rig;
    server.script = ({ authorization }: Seen) =>
      authorization === `Bearer ${KEY}` ? { status: 401, body: '{"code":"PGRST301","message":"JWT expired"}' } : EMPTY;
    const asked = async (afterMs: number) => {
      clock.atMs += afterMs;
      const before = server.seen.length;
      assert.equal((await failure(host.api.read())).outcome, "not-executed");
      return server.seen.length - before;
    };
    assert.equal(await asked(0), 1);
    assert.equal(await asked(1_000), 0, "not within the rest");
    assert.equal(await asked(5_000), 1);
    assert.equal(await asked(5_000), 0, "twice as long");
    assert.equal(await asked(10_000), 1);
    for (let n = 0; n < 10; n++) await asked(300_000);
    assert.equal(await asked(200_000), 0, "up to five minutes, less its jitter");
    assert.equal(await asked(100_000), 1);
    assert.equal(host.notices.length, 1, "people are told once");
    assert.match(
      host.notices[0] ?? "",
      /refuses this host's key: Cannot GET \/hosts: the server answered 401 PGRST301 \(JWT expired\)/,
    );
    rig.key = "another key";
    await host.api.read();
    assert.equal(host.notices.length, 1);
    rig.key = KEY;
    assert.equal(await asked(0), 1);
    assert.equal(host.notices.length, 2, "and again after a success");
  }));

Deno.test("rights that one table lacks do not keep the host from the others", () =>
  withRig(async ({ server, host }) => {
    const denied = { status: 403, body: '{"code":"42501","message":"permission denied for table hosts"}' };
    server.script = ({ path }) => path === "/hosts" ? denied : EMPTY;
    await failure(host.api.read());
    assert.equal(await host.api.countInFlight(), 0);
    const asked = server.seen.length;
    await failure(host.api.read());
    assert.equal(server.seen.length, asked, "that one rests");
    assert.equal(host.notices.length, 1);
  }));

Deno.test("a right to write that is refused keeps nobody from reading: only the heartbeat rests, and it is told once", () =>
  withRig(async ({ server, host, clock }) => {
    const denied = { status: 403, body: '{"code":"42501","message":"permission denied for table hosts"}' };
    server.script = ({ method }) => method === "PATCH" ? denied : EMPTY;
    await failure(host.api.beat(1));
    for (let n = 0; n < 3; n++) assert.equal(await host.api.read(), null);
    const asked = server.seen.length;
    assert.match((await failure(host.api.beat(1))).said, /Cannot PATCH \/hosts as the server refused this host's key/);
    assert.equal(server.seen.length, asked, "it rests");
    clock.atMs += 5_000;
    server.script = () => EMPTY;
    await host.api.beat(1);
    assert.equal(host.notices.length, 1);
    assert.equal(host.logged.filter((line) => line.includes("host.key_accepted")).length, 1);
  }));

Deno.test("a key file that cannot be read is told once, and read anew at each call", async () => {
  let key: string | null = null;
  await withRig(async ({ server, host }) => {
    assert.match((await failure(host.api.read())).said, /Cannot read this host's key: no such file/);
    await failure(host.api.read());
    assert.deepEqual([server.seen.length, host.notices.length], [0, 1]);
    key = KEY;
    await host.api.read();
    assert.equal(server.seen[0]?.authorization, `Bearer ${KEY}`);
  }, {
    readKey: () => {
      if (key === null) throw new Error("no such file");
      return key;
    },
  });
});

Deno.test("a redirect is an error, and the key goes nowhere else", () =>
  withRig(async ({ server, host }) => {
    const elsewhere = scriptedRest("http://127.0.0.1:9");
    elsewhere.script = () => EMPTY;
    try {
      for (const status of [301, 302, 303, 307, 308]) {
        server.script = () => ({ status, headers: { location: `${elsewhere.url}/hosts` } });
        const { said, code } = await failure(host.api.read());
        assert.equal(code, "UNAVAILABLE");
        assert.match(said, /redirects are not followed/);
      }
      assert.deepEqual(elsewhere.seen, []);
    } finally {
      await elsewhere.stop();
    }
  }));

Deno.test("a body that does not end in time, is too long, or is no list of rows is no answer", () =>
  withRig(async ({ server, host }) => {
    const bodies: Record<string, Fate> = {
      "within 300 ms": "hang",
      "longer than 1000 bytes": { status: 200, body: JSON.stringify([{ note: "x".repeat(2_000) }]) },
      "no list of rows": { status: 200, body: "<html>Sign in to the hotel's network</html>" },
    };
    for (const [said, fate] of Object.entries(bodies)) {
      server.script = () => fate;
      const met = await failure(host.api.beat(1));
      assert.deepEqual([met.code, met.outcome], ["UNAVAILABLE", "unknown"], said);
      assert.match(met.said, new RegExp(said));
      assert.doesNotMatch(met.said, /name=|eq\.wsl1/, "no filter's values");
    }
  }, { timeoutMs: 300, maxBytes: 1_000 }));

Deno.test("what the server says with a refusal is told without the key, bounded", () =>
  withRig(async ({ server, host }) => {
    const message = `bad ${KEY} ${"x".repeat(5_000)}`;
    server.script = () => ({ status: 400, body: JSON.stringify({ code: "22P02", message }) });
    const { code, said } = await failure(host.api.beat(1));
    assert.equal(code, "VALIDATION");
    assert.match(said, /Cannot PATCH \/hosts: the server answered 400 22P02 \(bad \*\*\* x+/);
    assert.ok(said.length < 5_000);
  }));

Deno.test("no rows are no rows, whichever way the server's version says it", () =>
  withRig(async ({ server, host }) => {
    const ways: Fate[] = [
      EMPTY,
      { status: 404, body: "[]" },
      { status: 406, body: '{"code":"PGRST116","message":"0 rows"}' },
      { status: 204 },
    ];
    for (const way of ways) {
      server.script = () => way;
      assert.equal(await host.api.beat(null), null);
    }
    server.script = () => ({ status: 404, body: '{"code":"PGRST205","message":"no such table"}' });
    assert.match((await failure(host.api.beat(null))).said, /run migrate up/);
  }));

Deno.test("every call carries the key, the profile and, for writes, the wish for the rows", () =>
  withRig(async ({ server, host }) => {
    await host.api.beat(2);
    const headers = server.seen[0]?.headers;
    const names = ["authorization", "apikey", "accept-profile", "content-profile", "content-type", "prefer"];
    assert.deepEqual(names.map((name) => headers?.get(name)), [
      ...[`Bearer ${KEY}`, KEY, "queue", "queue", "application/json", "return=representation"],
    ]);
    assert.deepEqual(JSON.parse(server.seen[0]?.body ?? ""), {
      last_heartbeat_at: "now",
      updated_at: "now",
      current_workers: 2,
    });
  }));

Deno.test("a REST URL that would show the key, or hold a secret, is refused", () => {
  assert.equal(checkRestUrl("https://xyz.supabase.co/rest/v1/"), "https://xyz.supabase.co/rest/v1");
  assert.equal(checkRestUrl("http://127.0.0.1:3000"), "http://127.0.0.1:3000");
  for (
    const [url, why] of [
      ["http://db.example/rest", /in the clear/],
      ["https://me:secret@db.example", /holds a password/],
      ["https://db.example/?apikey=secret", /has a query/],
      ["db.example", /no URL|in the clear/],
    ] as const
  ) {
    assert.throws(
      () => checkRestUrl(url),
      (error: Error) => why.test(error.message) && !error.message.includes("secret"),
      url,
    );
  }
});
