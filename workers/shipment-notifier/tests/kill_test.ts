/**
 * A worker process that is killed mid-work, and started again.
 *
 * @module
 */
import assert from "node:assert/strict";
import { CHAINS, migrateSqliteUp, SqliteDatabase, type Store } from "../../../mod.ts";
import { createTestDatabase } from "../../../tests/support/postgres.ts";
import { waitFor } from "../../../tests/support/wait_for.ts";
import { forTests } from "../container.ts";
import { newWebhookSecret } from "../settings.ts";
import { SHIPMENTS_CHAIN } from "../shipments/chain.ts";
import type { Shipment } from "../shipments/types.ts";
import { startChild } from "./child.ts";
import { startTestReceiver } from "./receiver.ts";
import { member, newShipment } from "./world.ts";

const COUNT = 60;
const FLAGS = ["--http", "off", "--lease", "1s", "--poll", "50ms", "--sweep", "200ms", "--log-level", "error"];

interface Place {
  /** How the child finds the store. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The same store, for the test. */
  readonly store: Store;
}

async function onSqliteFile(test: (place: Place) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-kill-" });
  const db = new SqliteDatabase(`${folder}/work.db`);
  try {
    await migrateSqliteUp(db, [...CHAINS, SHIPMENTS_CHAIN]);
    await test({ args: ["--store", `sqlite:${folder}/work.db`], env: {}, store: { engine: "sqlite", db } });
  } finally {
    db.close();
    await Deno.remove(folder, { recursive: true });
  }
}

async function onPostgres(test: (place: Place) => Promise<void>): Promise<void> {
  const db = await createTestDatabase([...CHAINS, SHIPMENTS_CHAIN]);
  const env = { LANEWAY_DATABASE_URL: db.url("runtime"), LANEWAY_SYSTEM_DATABASE_URL: db.url("system") };
  try {
    await test({ args: ["--store", "postgres"], env, store: { engine: "postgres", databases: db.databases } });
  } finally {
    await db.drop();
  }
}

for (const [name, on] of [["a SQLite file", onSqliteFile], ["postgres", onPostgres]] as const) {
  Deno.test(`after SIGKILL mid-work and a restart every shipment is notified and marked once, on ${name}`, async () => {
    await on(notifyThroughDeath);
  });
}

async function notifyThroughDeath({ args, env, store }: Place): Promise<void> {
  const secret = newWebhookSecret();
  const container = await forTests({ store });
  const killed = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  let answered = 0;
  // A third is answered; the rest is held, so that the kill meets a full house.
  const receiver = startTestReceiver(() => secret, async () => {
    if (++answered > COUNT / 3) {
      if (answered >= COUNT / 3 + 5) reached.resolve();
      await killed.promise;
    }
    return new Response(null, { status: 204 });
  });
  const childEnv = { ...env, LANEWAY_WEBHOOK_SECRET: secret };
  const first = startChild([...args, ...FLAGS], childEnv);
  let second: ReturnType<typeof startChild> | null = null;
  try {
    const ctx = await member(container);
    const created: Shipment[] = [];
    for (let i = 0; i < COUNT; i++) {
      created.push((await container.shipments.create(ctx, newShipment(receiver.url))).shipment);
    }
    await Promise.race([
      reached.promise,
      first.ended.then(({ code }) => Promise.reject(new Error(`It ended with ${code}: ${first.stderr()}`))),
    ]);
    first.kill("SIGKILL");
    assert.equal((await first.ended).signal, "SIGKILL");
    killed.resolve();
    const marked = async () =>
      (await Promise.all(created.map(({ id }) => container.shipments.read(ctx, id))))
        .filter(({ status }) => status === "notified");
    const before = (await marked()).length;
    assert.ok(before > 0 && before < COUNT, `${before} of ${COUNT} were marked before the kill`);
    second = startChild([...args, ...FLAGS], childEnv);
    await waitFor("every shipment to be marked", async () => (await marked()).length === COUNT, { timeoutMs: 30_000 });
    second.kill("SIGTERM");
    assert.deepEqual(await second.ended, { code: 0, signal: null }, second.stderr());
    for (const shipment of await marked()) {
      assert.equal(shipment.version, 2);
      assert.deepEqual(receiver.idsOf(shipment.id), [shipment.notificationId]);
    }
    assert.ok(receiver.received.length > COUNT, "nothing was sent again: the kill met no webhook on its way");
    assert.deepEqual(receiver.forged, []);
    await container.managers.outbox.relayPending(
      container.managers.tenancy.requestContext({
        type: "WORKER",
        version: "test",
      }),
      1_000,
    );
    const events = await container.managers.audit.readEvents(ctx, { afterSeq: 0, limit: 1_000 });
    assert.equal(events.filter((event) => event.kind === "shipments.shipment.notified").length, COUNT);
  } finally {
    killed.resolve();
    first.kill("SIGKILL");
    second?.kill("SIGKILL");
    await first.ended;
    await second?.ended;
    await receiver.stop();
    await container.close();
  }
}
