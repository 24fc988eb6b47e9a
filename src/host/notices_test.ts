import assert from "node:assert/strict";
import { FakeClock } from "../core/fake_clock.ts";
import type { LogFields, Logger } from "../core/log.ts";
import { waitFor } from "../../tests/support/wait_for.ts";
import { githubChannel, type NoticeChannel, webhookChannel } from "./notice_channels.ts";
import { createNotifier, type NoticesOptions } from "./notices.ts";
import type { Notifier } from "./types.ts";

const MINUTE_MS = 60_000;
const SECRET = "s3cret-webhook-token";
const TOKEN = "ghp_s3cret";

interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  // deno-lint-ignore no-explicit-any
  readonly body: any;
}

interface World {
  readonly clock: FakeClock;
  readonly url: string;
  readonly received: Received[];
  readonly logged: string[];
  /** What the server answers, by request; default 204. */
  answer: (request: Received, nth: number) => Response | Promise<Response>;
  make(options?: Partial<NoticesOptions>): Notifier;
}

async function withServer(use: (world: World) => Promise<void>): Promise<void> {
  const received: Received[] = [];
  const logged: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const text = await request.text();
    const entry = {
      method: request.method,
      path: pathname + search,
      headers: request.headers,
      body: text === "" ? null : JSON.parse(text),
    };
    received.push(entry);
    return await world.answer(entry, received.length);
  });
  const at = (event: string, fields: LogFields = {}) => void logged.push(`${event} ${JSON.stringify(fields)}`);
  const logger: Logger = { debug: at, info: at, warn: at, error: at };
  const clock = new FakeClock();
  const url = `http://127.0.0.1:${server.addr.port}`;
  const made: Notifier[] = [];
  const world: World = {
    ...{ clock, url, received, logged, answer: () => new Response(null, { status: 204 }) },
    make(options) {
      const channels = [webhookChannel(`${url}/api/webhooks/1/${SECRET}`)];
      const notifier = createNotifier({ channels, source: "host-runner@wsl1", clock, logger, ...options });
      made.push(notifier);
      return notifier;
    },
  };
  try {
    await use(world);
    for (const line of logged) {
      assert.ok(!line.includes(SECRET) && !line.includes(TOKEN), `a secret is logged: ${line}`);
    }
  } finally {
    await Promise.all(made.map((notifier) => notifier.close()));
    await server.shutdown();
  }
}

Deno.test("an error is told at once, as an embed that names who and what and rings no bell", async () => {
  await withServer(async ({ make, received }) => {
    make().notify("clone failed", "@everyone git says: no such repository");
    await waitFor("the notice", () => received.length === 1);
    const [{ method, path, body } = received[0] as Received] = [received[0] as Received];
    assert.deepEqual([method, path], ["POST", `/api/webhooks/1/${SECRET}`]);
    assert.deepEqual(body.allowed_mentions, { parse: [] });
    assert.equal(body.embeds[0].title, "clone failed");
    assert.equal(body.embeds[0].description, "@everyone git says: no such repository");
    assert.equal(body.embeds[0].timestamp, "2026-01-01T00:00:00.000Z");
    assert.deepEqual(body.embeds[0].fields, [{ name: "from", value: "host-runner@wsl1", inline: true }]);
  });
});

Deno.test("of one cause one notice goes out in its interval, and the count held back goes with the next", async () => {
  await withServer(async ({ make, received, clock }) => {
    const notifier = make({ intervalMs: 15 * MINUTE_MS });
    for (let n = 1; n <= 40; n++) notifier.notify("claim failed", `try ${n}`);
    notifier.notify("clone failed", "another cause");
    await waitFor("both causes", () => received.length === 2);
    await clock.tick(14 * MINUTE_MS);
    assert.equal(received.length, 2);
    await clock.tick(MINUTE_MS);
    await waitFor("what was held back", () => received.length === 3);
    const embed = received[2]?.body.embeds[0];
    assert.deepEqual([embed.title, embed.description], ["claim failed", "try 40"]);
    assert.deepEqual(embed.fields[1], { name: "held back", value: "39", inline: true });
    // The interval begins anew with what was told at its end.
    notifier.notify("claim failed", "again");
    await clock.tick(14 * MINUTE_MS);
    assert.equal(received.length, 3);
  });
});

Deno.test("a cause that was silent for an interval is told at once when it comes back", async () => {
  await withServer(async ({ make, received, clock }) => {
    const notifier = make({ intervalMs: MINUTE_MS });
    notifier.notify("claim failed", "first");
    await clock.tick(2 * MINUTE_MS);
    notifier.notify("claim failed", "second");
    await waitFor("both", () => received.length === 2);
  });
});

Deno.test("notify neither waits nor throws while the server is deaf; the request ends with its deadline", async () => {
  await withServer(async (world) => {
    const { make, received, logged } = world;
    const held = Promise.withResolvers<Response>();
    world.answer = () => held.promise;
    const notifier = make({ timeoutMs: 50, closeMs: 20 });
    notifier.notify("claim failed", "x");
    await waitFor("the request", () => received.length === 1);
    notifier.notify("other", "not waited for");
    const closed = notifier.close();
    await world.clock.tick(20);
    await closed;
    held.resolve(new Response(null, { status: 204 }));
    assert.ok(logged.some((line) => line.startsWith("notice.not_sent")), "it is said that it was not sent");
  });
});

Deno.test("a server that is busy is tried again when it asks to be, three times in all", async () => {
  await withServer(async (world) => {
    const { make, received, logged, clock } = world;
    world.answer = () => new Response(null, { status: 429, headers: { "retry-after": "7" } });
    make().notify("claim failed", "x");
    await waitFor("the first try", () => received.length === 1 && clock.sleeping > 1);
    await clock.tick(6_999);
    assert.equal(received.length, 1);
    await clock.tick(1);
    await waitFor("the second try", () => received.length === 2 && clock.sleeping > 1);
    await clock.tick(7_000);
    await waitFor("the end", () => logged.some((line) => line.startsWith("notice.not_sent")));
    assert.equal(received.length, 3);
  });
});

for (const [what, status] of [["a refusal", 404], ["a redirect", 307]] as const) {
  Deno.test(`${what} is not tried again, nor followed with the secret`, async () => {
    await withServer(async (world) => {
      const { make, received, logged } = world;
      world.answer = () => new Response(null, { status, headers: { location: "/elsewhere" } });
      make().notify("claim failed", "x");
      await waitFor("the line", () => logged.some((line) => line.startsWith("notice.not_sent")));
      assert.equal(received.length, 1);
      assert.ok(logged.some((line) => line.includes(String(status))));
    });
  });
}

Deno.test("a server that cannot be reached is a line of the log without its URL", async () => {
  await withServer(async ({ make, logged, clock }) => {
    const gone = webhookChannel(`http://127.0.0.1:9/api/webhooks/1/${SECRET}`);
    make({ channels: [gone] }).notify("claim failed", "x");
    for (let tries = 0; tries < 2; tries++) {
      await waitFor("the pause", () => clock.sleeping > 1);
      await clock.tick(2_000);
    }
    await waitFor("the line", () => logged.some((line) => line.startsWith("notice.not_sent")));
    assert.ok(!logged.some((line) => line.includes("127.0.0.1")));
  });
});

Deno.test("close sends what is held back", async () => {
  await withServer(async ({ make, received }) => {
    const notifier = make();
    for (let n = 1; n <= 3; n++) notifier.notify("claim failed", `try ${n}`);
    await notifier.close();
    assert.equal(received.length, 2);
    assert.equal(received[1]?.body.embeds[0].fields[1].value, "2");
    notifier.notify("claim failed", "after the end");
    assert.equal(received.length, 2);
  });
});

Deno.test("causes without end share one, and what waits is bounded", async () => {
  await withServer(async (world) => {
    const { make, received, logged } = world;
    const held = Promise.withResolvers<Response>();
    world.answer = (_, nth) => nth === 1 ? held.promise : new Response(null, { status: 204 });
    const notifier = make();
    for (let n = 0; n < 1_000; n++) notifier.notify(`cause ${n}`, "x");
    assert.equal(logged.filter((line) => line.startsWith("notice {")).length, 101);
    held.resolve(new Response(null, { status: 204 }));
    await notifier.close();
    assert.ok(received.length <= 52, `${received.length} were sent`);
  });
});

Deno.test("without a channel a notice is a line of the log", async () => {
  await withServer(async ({ make, logged, received }) => {
    const notifier = make({ channels: [] });
    notifier.notify("claim failed", "x");
    await notifier.close();
    assert.ok(logged.some((line) => line.includes("claim failed")));
    assert.equal(received.length, 0);
  });
});

Deno.test("an issue that is open is not opened again, however many bugs and however long ones were opened since", async () => {
  await withServer(async (world) => {
    const others = Array.from({ length: 50 }, (_, n) => ({ title: `bug ${n}`, body: "x".repeat(60_000) }));
    const { make, received } = world;
    world.answer = ({ path }) =>
      Response.json(path.endsWith("&page=2") ? [{ title: "[host-runner@wsl1] clone failed" }] : others);
    const notifier = make({ channels: [github(world.url)] });
    notifier.notify("clone failed", "x");
    await notifier.close();
    assert.deepEqual(received.map(({ method }) => method), ["GET", "GET"]);
  });
});

function github(url: string): NoticeChannel {
  return githubChannel({ repo: "acme/infra", token: TOKEN, apiUrl: url });
}

Deno.test("a cause opens one issue labelled bug, with the token in its header alone", async () => {
  await withServer(async (world) => {
    const { make, received, url } = world;
    world.answer = ({ method }) => Response.json(method === "GET" ? [{ title: "another" }] : {}, { status: 200 });
    make({ channels: [github(url)] }).notify("clone failed", "git says:\n@acme no");
    await waitFor("the issue", () => received.length === 2);
    const [asked, opened] = received;
    assert.equal(asked?.path, "/repos/acme/infra/issues?state=open&labels=bug&per_page=50");
    assert.deepEqual([opened?.method, opened?.path], ["POST", "/repos/acme/infra/issues"]);
    assert.equal(opened?.headers.get("authorization"), `Bearer ${TOKEN}`);
    assert.deepEqual([opened?.body.title, opened?.body.labels], ["[host-runner@wsl1] clone failed", ["bug"]]);
    assert.match(opened?.body.body, /\n {4}git says:\n {4}@acme no\n/);
  });
});

Deno.test("while an issue of its cause is open none is opened, by whichever process", async () => {
  await withServer(async (world) => {
    const { make, received, url } = world;
    world.answer = () => Response.json([{ title: "[host-runner@wsl1] clone failed" }]);
    const notifier = make({ channels: [github(url)] });
    notifier.notify("clone failed", "x");
    await notifier.close();
    assert.deepEqual(received.map(({ method }) => method), ["GET"]);
  });
});

Deno.test("a channel that fails keeps no other from being told", async () => {
  await withServer(async (world) => {
    const { make, received, url } = world;
    world.answer = ({ path }) => new Response("[]", { status: path.startsWith("/repos") ? 401 : 200 });
    make({ channels: [github(url), webhookChannel(`${url}/hook`)] }).notify("clone failed", "x");
    await waitFor("the webhook", () => received.some(({ path }) => path === "/hook"));
  });
});
