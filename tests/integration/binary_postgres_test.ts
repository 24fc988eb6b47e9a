/**
 * The compiled notifier on Postgres, as an operator runs it: migrate, check, create, serve, killed mid-work, served again.
 */
import assert from "node:assert/strict";
import { newId } from "../../src/core/ids.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { startTestReceiver, type TestReceiver } from "../../workers/shipment-notifier/tests/receiver.ts";
import { newWebhookSecret } from "../../workers/shipment-notifier/settings.ts";
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { waitFor } from "../support/wait_for.ts";

const COUNT = 80;
const SERVE = [
  ...["--http-port", "0", "--log-format", "json", "--lease", "1s", "--poll", "50ms", "--sweep", "200ms"],
  ...["--lane", "default"],
];

Deno.test("the binary notifies on Postgres: killed mid-work and started again, each shipment is notified and marked once", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-binary-" });
  const database = await createEmptyDatabase();
  const admin = await PostgresClient.open(database.url("admin"));
  try {
    const binary = await buildBinary("shipment-notifier", folder);
    if (binary === null) return;
    const secret = newWebhookSecret();
    const env = {
      LANEWAY_DATABASE_URL: database.url("runtime"),
      LANEWAY_SYSTEM_DATABASE_URL: database.url("system"),
      LANEWAY_MIGRATE_DATABASE_URL: database.url("owner"),
      LANEWAY_WEBHOOK_SECRET: secret,
    };
    await refusesWhatIsNotThere(binary, env);
    await migratesAndChecks(binary, env);
    await notifiesThroughDeath({ binary, env, secret, folder, admin });
    await aNewerSchemaIsRefused(binary, env, admin);
  } finally {
    await admin.close(1_000);
    await database.drop();
    await Deno.remove(folder, { recursive: true });
  }
});

type Env = Readonly<Record<string, string>>;

/** Each is one line that names the trouble and the fix, without the password. */
async function refusesWhatIsNotThere(binary: string, env: Env): Promise<void> {
  const unmigrated = await runBinary(binary, SERVE, env);
  assert.equal(unmigrated.code, 1, unmigrated.errors);
  assert.match(unmigrated.errors, /migrate up/);
  const noStore = await runBinary(binary, ["--lane", "default"]);
  assert.equal(noStore.code, 2);
  assert.match(noStore.errors, /--store/);
  const tooMuch = await runBinary(binary, ["--capacity", "201"], env);
  assert.equal(tooMuch.code, 2);
  assert.match(tooMuch.errors, /capacity.*pool-size/);
  const url = new URL(env.LANEWAY_DATABASE_URL ?? "");
  url.pathname = "/no_such_database";
  const missing = await runBinary(binary, SERVE, { ...env, LANEWAY_DATABASE_URL: url.href });
  assert.equal(missing.code, 1, missing.errors);
  assert.match(missing.errors, /no_such_database/);
  for (const { errors } of [unmigrated, missing]) assert.equal(errors.includes(url.password), false, errors);
  for (const { errors } of [unmigrated, noStore, tooMuch, missing]) {
    assert.equal(errors.trim().split("\n").length, 1, `one line, not: ${errors}`);
  }
}

async function migratesAndChecks(binary: string, env: Env): Promise<void> {
  const migrated = await runBinary(binary, ["migrate", "up"], env);
  assert.equal(migrated.code, 0, migrated.errors);
  const again = await runBinary(binary, ["migrate", "up"], env);
  assert.equal(again.code, 0, again.errors);
  const status = await runBinary(binary, ["migrate", "status"], env);
  assert.equal(status.code, 0, status.errors);
  for (const chain of ["core", "queue", "activity", "shipments"]) assert.match(status.out, new RegExp(chain));
  const checked = await runBinary(binary, ["check"], env);
  assert.equal(checked.code, 0, checked.out + checked.errors);
}

interface Deaths {
  readonly binary: string;
  readonly env: Env;
  readonly secret: string;
  readonly folder: string;
  readonly admin: PostgresClient;
}

async function notifiesThroughDeath({ binary, env, secret, folder, admin }: Deaths): Promise<void> {
  const killed = Promise.withResolvers<void>();
  const half = Promise.withResolvers<void>();
  let answered = 0;
  // Half is answered; the rest is held, so that the kill meets webhooks on their way.
  const receiver = startTestReceiver(() => secret, async () => {
    if (++answered > COUNT / 2) {
      half.resolve();
      await killed.promise;
    }
    return new Response(null, { status: 204 });
  });
  const first = startBinary(binary, SERVE, env);
  let second: ReturnType<typeof startBinary> | null = null;
  try {
    const ids = await createsShipments(binary, env, folder, receiver);
    await Promise.race([half.promise, first.ended.then(() => assert.fail(`it ended: ${first.log()}`))]);
    first.kill("SIGKILL");
    assert.equal((await first.ended).signal, "SIGKILL");
    killed.resolve();
    assert.ok(await notified(admin) < COUNT, "the kill came before all was done");
    second = startBinary(binary, SERVE, env);
    const log = second.log;
    await waitFor("every shipment to be marked", async () => await notified(admin) === COUNT, { timeoutMs: 30_000 })
      .catch((error) => assert.fail(`${error}: ${log()}`));
    const checked = await runBinary(binary, ["check"], env);
    assert.match(checked.out, /is alive: shipment-notifier@\d\S+, lane default, NOTIFY_SHIPMENT, capacity 10/);
    second.kill("SIGTERM");
    assert.deepEqual(await second.ended, { code: 0, signal: null }, second.log());
    for (const id of ids) assert.equal(receiver.idsOf(id).length, 1, "never a second webhook-id for a shipment");
    assert.deepEqual(receiver.forged, []);
    const [row] = await admin.query("select count(*)::int as n from shipments.shipments where version = 2", []);
    assert.equal(row?.n, COUNT, "each marked once");
    const [items] = await admin.query("select count(*)::int as n from queue.work_items where status <> 'done'", []);
    assert.equal(items?.n, 0);
  } finally {
    killed.resolve();
    first.kill("SIGKILL");
    second?.kill("SIGKILL");
    await first.ended;
    await second?.ended;
    await receiver.stop();
  }
}

async function createsShipments(binary: string, env: Env, folder: string, receiver: TestReceiver): Promise<string[]> {
  const orgIds = [newId(), newId()];
  const lines = Array.from({ length: COUNT }, (_, i) => ({
    orgId: orgIds[i % 2],
    orgName: `Org ${i % 2}`,
    id: newId(),
    carrier: "DHL",
    trackingNumber: "00340434161094042557",
    recipientName: "山田 太郎",
    destination: "大阪市, JP",
    webhookUrl: receiver.url,
  }));
  const file = `${folder}/shipments.ndjson`;
  await Deno.writeTextFile(file, lines.map((line) => JSON.stringify(line)).join("\n"));
  const args = ["create-shipments", "--file", file, "--create-orgs"];
  const created = await runBinary(binary, args, env);
  assert.equal(created.code, 0, created.out + created.errors);
  const again = await runBinary(binary, args, env);
  assert.equal(again.code, 0, again.out + again.errors);
  return lines.map(({ id }) => id);
}

async function notified(admin: PostgresClient): Promise<number> {
  const [row] = await admin.query("select count(*)::int as n from shipments.shipments where status = 'notified'", []);
  return Number(row?.n);
}

async function aNewerSchemaIsRefused(binary: string, env: Env, admin: PostgresClient): Promise<void> {
  await admin.query(
    "insert into queue.schema_migrations (version, name, checksum) values (99, 'from_the_future', 'x')",
    [],
  );
  const newer = await runBinary(binary, SERVE, env);
  assert.equal(newer.code, 1, newer.errors);
  assert.match(newer.errors, /99/);
  assert.equal(newer.errors.trim().split("\n").length, 1, newer.errors);
}
