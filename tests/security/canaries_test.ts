/**
 * Secrets are planted everywhere a worker is given one, things are made to go wrong, and all that comes out of it is searched.
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { startTestReceiver } from "../../workers/shipment-notifier/tests/receiver.ts";
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { startCollector } from "../support/otlp_collector.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

/** A secret nobody else would write. */
function canary(): string {
  return `canary${newId().replaceAll("-", "")}`;
}

/** What a secret may look like once somebody wrote it down. */
function disguises(secret: string): string[] {
  const base64 = btoa(secret);
  return [secret, encodeURIComponent(secret), base64, base64.replace(/=+$/, ""), JSON.stringify(secret).slice(1, -1)];
}

/** A URL with a password of its own. The test's server trusts whoever is on loopback, so that any will do. */
function withPassword(url: string, password: string): string {
  const changed = new URL(url);
  changed.password = password;
  return changed.href;
}

interface Scene {
  readonly binary: string;
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly admin: PostgresClient;
  /** Everything that came out so far. */
  readonly out: string[];
}

async function run(
  { binary, env, out }: Scene,
  args: readonly string[],
  changed: Record<string, string> = {},
): Promise<void> {
  const { out: said, errors } = await runBinary(binary, args, { ...env, ...changed });
  out.push(said, errors);
}

/** Commands that work, and commands that fail over what they were given. */
async function speak(scene: Scene, secrets: Readonly<Record<string, string>>): Promise<void> {
  const { env } = scene;
  await run(scene, ["migrate", "up"]);
  await run(scene, ["migrate", "status"]);
  await run(scene, ["check"]);
  const url = new URL(env.LANEWAY_DATABASE_URL ?? "");
  url.pathname = "/no_such_database";
  await run(scene, ["check"], { LANEWAY_DATABASE_URL: url.href });
  url.hostname = "no-such-host.invalid";
  await run(scene, ["check"], { LANEWAY_DATABASE_URL: url.href });
  await run(scene, ["check"], { LANEWAY_DATABASE_URL: `not a url ${secrets.runtime}` });
  await run(scene, ["serve"], { LANEWAY_WEBHOOK_SECRET: `bad-${secrets.webhook}` });
  await run(scene, ["check"], { LANEWAY_MISSPELLED_SECRET: secrets.misspelled ?? "" });
  await run(scene, ["check", "--health"]);
}

/** Serves, is given work that succeeds and work that fails, loses its database, and is asked by probes. */
async function work(scene: Scene, secrets: Readonly<Record<string, string>>): Promise<void> {
  const { binary, env, folder, admin, out } = scene;
  const receiver = startTestReceiver(() => env.LANEWAY_WEBHOOK_SECRET ?? "", () => new Response("no", { status: 500 }));
  const lines = [`${receiver.url}/hooks?key=${secrets.hook}`, `http://127.0.0.1:1/?token=${secrets.hook}`].map((
    webhookUrl,
  ) =>
    JSON.stringify({
      ...{ orgId: newId(), orgName: "Łódź", id: newId(), carrier: "DHL", trackingNumber: "0034 0434 1610" },
      ...{ recipientName: "Ada", destination: "Łódź, PL", webhookUrl },
    })
  );
  await Deno.writeTextFile(`${folder}/lines.ndjson`, `${lines.join("\n")}\n`);
  await run(scene, ["create-shipments", "--create-orgs", "--file", `${folder}/lines.ndjson`]);
  const flags = [
    "--http-port",
    "0",
    "--log-format",
    "json",
    "--log-level",
    "debug",
    "--traces",
    "on",
    "--poll",
    "50ms",
  ];
  const running = startBinary(binary, [...flags, "--sweep", "200ms", "--lease", "1s"], env);
  try {
    await waitFor("failures", () => running.log().split('"work.').length > 3, { timeoutMs: 20_000 });
    const url = /"url":"([^"]+)"/.exec(running.log())?.[1] ?? "";
    const probe = async () => {
      for (const path of ["/", "/healthz", "/readyz", "/livez", "/metrics", "/debug", "/healthz?verbose=1"]) {
        out.push(await (await fetch(url + path)).text());
      }
    };
    await probe();
    await admin.query("alter table queue.work_items rename to gone", []);
    await waitFor("the outage to be told", () => running.log().includes('"database.out_of_reach"'), {
      timeoutMs: 20_000,
    });
    await probe();
    await admin.query("alter table queue.gone rename to work_items", []);
    const pid = /"worker":"[^"]*\/(\d+)"/.exec(running.log())?.[1];
    out.push(await Deno.readTextFile(`/proc/${pid}/cmdline`));
  } finally {
    running.kill("SIGTERM");
    await running.ended;
    await receiver.stop();
  }
  out.push(running.log());
}

Deno.test("no secret is in a log, an error, a probe, a metric, a trace, a command line or a row of the queue", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-canaries-" });
  const database = await createEmptyDatabase();
  const admin = await PostgresClient.open(database.url("admin"));
  const collector = startCollector();
  try {
    const binary = await buildBinary("shipment-notifier", folder);
    if (binary === null) return;
    const [runtime, system, owner, hook, misspelled] = [canary(), canary(), canary(), canary(), canary()];
    // 32 bytes, as a webhook's secret is.
    const webhook = btoa(canary().slice(0, 32));
    const secrets = { runtime, system, owner, hook, misspelled, webhook };
    const env = {
      ...collector.env,
      LANEWAY_DATABASE_URL: withPassword(database.url("runtime"), runtime),
      LANEWAY_SYSTEM_DATABASE_URL: withPassword(database.url("system"), system),
      LANEWAY_MIGRATE_DATABASE_URL: withPassword(database.url("owner"), owner),
      LANEWAY_WEBHOOK_SECRET: `whsec_${webhook}`,
    };
    const scene = { binary, env, folder, admin, out: [] as string[] };
    await speak(scene, secrets);
    await work(scene, secrets);
    const rows = await admin.query("select last_error, note from queue.work_items", []);
    scene.out.push(JSON.stringify(rows), JSON.stringify(collector.ours()));
    assert.ok(collector.ours().length > 0, "spans were collected");
    assert.ok(rows.length > 0, "failures were kept");
    const text = scene.out.join("\n");
    assert.ok(text.length > 5_000, `only ${text.length} characters came out`);
    // The engine's own spans hold the whole URL of each request that a handler makes; README says so.
    const engine = JSON.stringify(collector.spans.filter(({ scope }) => scope !== "laneway"));
    for (const [name, secret] of Object.entries(secrets)) {
      if (name !== "hook") assert.ok(!engine.includes(secret), `${name} in a span of the engine's`);
      for (const disguise of disguises(secret)) {
        const at = text.indexOf(disguise);
        assert.equal(at, -1, `${name}: …${text.slice(Math.max(0, at - 200), at + 100)}…`);
      }
    }
  } finally {
    await collector.stop();
    await admin.close();
    await database.drop();
    await Deno.remove(folder, { recursive: true });
  }
});
