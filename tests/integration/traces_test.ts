/**
 * What a worker process exports, from source and as a binary: spans of its own that link to their cause.
 */
import assert from "node:assert/strict";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext } from "../../src/core/context.ts";
import { newId } from "../../src/core/ids.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { migrateSqliteUp } from "../../src/db/sqlite_migrator.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { insertOutboxRows, newOutboxRow } from "../../src/outbox/rows.ts";
import { createStorages } from "../../src/storages.ts";
import { newWebhookSecret } from "../../workers/shipment-notifier/settings.ts";
import { startTestReceiver } from "../../workers/shipment-notifier/tests/receiver.ts";
import { buildBinary, runBinary, startBinary } from "../support/binary.ts";
import { type CollectedSpan, type OtlpCollector, startCollector } from "../support/otlp_collector.ts";
import { waitFor } from "../support/wait_for.ts";
import { OK, THROW, TRIAL_KINDS } from "../trials/kinds.ts";
import { WorkerProcess } from "../trials/worker_process.ts";

const CONSUMER = 5;

interface World {
  readonly path: string;
  readonly db: SqliteDatabase;
  readonly managers: Managers;
  /** A member's context, of the given request. */
  member(traceparent?: string): Promise<OpContext>;
  readonly collector: OtlpCollector;
}

/** A store in a file, for a worker process beside this one, and a collector. */
async function withWorld(check: (world: World) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-traces-" });
  const path = `${folder}/store.db`;
  const db = new SqliteDatabase(path, { clock: systemClock, synchronous: "NORMAL" });
  const collector = startCollector();
  try {
    await migrateSqliteUp(db, CHAINS);
    const managers = createManagers({
      storages: createStorages({ engine: "sqlite", db }),
      topics: new MemoryTopics(),
      clock: systemClock,
      logger: silentLogger,
      metrics: noMetrics,
      kinds: TRIAL_KINDS,
      itemRetentionMs: 3_600_000,
      keyRetentionMs: 7_200_000,
      outboxRetentionMs: 3_600_000,
      markerRetentionMs: 86_400_000,
    });
    const { tenancy } = managers;
    const app = { type: "SERVICE", version: "traces@1" } as const;
    const [org, user] = [
      await tenancy.createOrg(tenancy.requestContext(app), { name: "Org" }),
      await tenancy.createUser(tenancy.requestContext(app), { name: "Ana" }),
    ];
    await tenancy.addMember(tenancy.requestContext(app), { orgId: org.id, userId: user.id, role: "MEMBER" });
    const member = (traceparent?: string) =>
      tenancy.memberContext(tenancy.requestContext(app, { traceparent }), org.id, user.id);
    await check({ path, db, managers, member, collector });
  } finally {
    db.close();
    await collector.stop();
    await Deno.remove(folder, { recursive: true });
  }
}

/** A trace of somebody's request, as a header and as what a link shows of it. */
function cause(): { header: string; link: { traceId: string; spanId: string } } {
  const hex = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes)).toHex();
  const link = { traceId: hex(16), spanId: hex(8) };
  return { header: `00-${link.traceId}-${link.spanId}-01`, link };
}

/** Four items: by enqueue, by the relay, without a trace, and one that fails for good. Their ids, by what they are. */
async function makeWork({ db, managers, member }: World, causes: Record<"asked" | "relayed" | "failing", string>) {
  const { work } = managers;
  const enqueue = async (traceparent: string | undefined, kind: string, fields = {}) => {
    const item = { kind, idempotencyKey: newId(), payload: {}, ...fields };
    return (await work.enqueue(await member(traceparent), item)).id;
  };
  const row = newOutboxRow(await member(causes.relayed), "work.ok", {});
  await db.write((session) => insertOutboxRows(session, [row]));
  return {
    asked: await enqueue(causes.asked, OK.name),
    relayed: row.id,
    uncaused: await enqueue(undefined, OK.name),
    failing: await enqueue(causes.failing, THROW.name, { payload: { code: "number" }, maxAttempts: 1 }),
  };
}

/** Runs a worker until the four are through, and stops it: at its end it has exported all it had. */
async function runWorker({ path, managers, member, collector }: World, args: string[], ids: string[]): Promise<void> {
  const store = ["--store", `sqlite:${path}`, "--poll", "20ms", "--sweep", "100ms"];
  const worker = await WorkerProcess.start([...store, ...args], collector.env);
  try {
    assert.equal((await worker.probe("/livez", 5_000)).status, 200);
    const ctx = await member();
    for (const id of ids) {
      await waitFor(`item ${id} to be through`, async () => {
        const item = await managers.work.read(ctx, id).catch(() => null);
        return item !== null && ["done", "failed"].includes(item.status) ? true : undefined;
      }, { timeoutMs: 20_000 });
    }
    assert.equal(await worker.stop(), 0);
    worker.assertNoStray();
    assert.deepEqual(worker.logged("settings.warning"), []);
  } finally {
    await worker.kill();
  }
}

function spanOf(collector: OtlpCollector, item: string): CollectedSpan {
  const found = collector.ours().filter(({ attributes }) => attributes["laneway.item.id"] === item);
  assert.equal(found.length, 1, `one span of item ${item}`);
  return found[0] as CollectedSpan;
}

Deno.test("each run is the root of a trace of its own that links to its cause: the context's, or the outbox row's", async () => {
  await withWorld(async (world) => {
    const [asked, relayed, failing] = [cause(), cause(), cause()];
    const causes = { asked: asked.header, relayed: relayed.header, failing: failing.header };
    const ids = await makeWork(world, causes);
    await runWorker(world, ["--traces", "on"], Object.values(ids));
    const { collector } = world;
    const { orgId } = await world.member();
    const spans = {
      asked: spanOf(collector, ids.asked),
      relayed: spanOf(collector, ids.relayed),
      uncaused: spanOf(collector, ids.uncaused),
      failing: spanOf(collector, ids.failing),
    };
    assert.deepEqual(spans.asked.links, [asked.link]);
    assert.deepEqual(spans.relayed.links, [relayed.link]);
    assert.deepEqual(spans.uncaused.links, []);
    assert.deepEqual(spans.failing.links, [failing.link]);
    const traces = new Set([asked, relayed, failing].map(({ link }) => link.traceId));
    for (const [which, span] of Object.entries(spans)) {
      assert.equal(span.parentSpanId, "", `${which} has no parent`);
      assert.equal(traces.has(span.traceId), false, `${which} is not of its cause's trace`);
      assert.equal(span.kind, CONSUMER, which);
      assert.equal(span.attributes["laneway.org.id"], orgId);
      assert.equal(Number(span.attributes["laneway.item.attempt"]), 1);
      assert.equal(span.attributes["laneway.item.kind"], which === "failing" ? "THROW" : "OK");
    }
    assert.equal(new Set(Object.values(spans).map(({ traceId }) => traceId)).size, 4, "a trace a run");
    assert.equal(collector.ours().length, 4, "and nothing else is a span of ours");
    assert.deepEqual(spans.failing.status, { code: 2, message: "42 was thrown" });
    assert.equal(spans.failing.attributes["laneway.run.outcome"], "fail");
    assert.equal(spans.asked.status.code, 0);
    assert.equal(spans.asked.attributes["laneway.run.outcome"], "complete");
  });
});

Deno.test("without --traces on no run is a span, though the process exports", async () => {
  await withWorld(async (world) => {
    const causes = { asked: cause().header, relayed: cause().header, failing: cause().header };
    const ids = await makeWork(world, causes);
    await runWorker(world, [], Object.values(ids));
    assert.ok(world.collector.spans.length > 0, "Deno's own spans came, so the exporter works");
    assert.deepEqual(world.collector.ours(), []);
  });
});

Deno.test("--traces on in a process without an exporter says so, once, and works on", async () => {
  await withWorld(async ({ path }) => {
    const args = ["--store", `sqlite:${path}`, "--traces", "on"];
    const worker = await WorkerProcess.start(args, { OTEL_DENO: "false" });
    try {
      const said = worker.logged("settings.warning").map(({ warning }) => String(warning));
      assert.deepEqual(said.map((text) => /--traces on.*OTEL_DENO=true/.test(text)), [true]);
      assert.equal(await worker.stop(), 0);
    } finally {
      await worker.kill();
    }
  });
});

Deno.test("the binary exports a span a notification with --traces on, and none without", async () => {
  const folder = await Deno.makeTempDir({ prefix: "laneway-traces-" });
  try {
    const binary = await buildBinary("shipment-notifier", folder);
    if (binary === null) return;
    const on = await notifyOnce(binary, `${folder}/on`, ["--traces", "on"]);
    assert.deepEqual(on.map(({ name, parentSpanId }) => [name, parentSpanId]), [["work NOTIFY_SHIPMENT", ""]]);
    assert.deepEqual(await notifyOnce(binary, `${folder}/off`, []), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** Lets a binary notify of one shipment, stops it, and returns its spans of ours. */
async function notifyOnce(binary: string, folder: string, args: string[]): Promise<CollectedSpan[]> {
  await Deno.mkdir(folder);
  const secret = newWebhookSecret();
  const collector = startCollector();
  const receiver = startTestReceiver(() => secret);
  const store = ["--store", `sqlite:${folder}/store.db`];
  const { OTEL_DENO: _baked, ...endpoint } = collector.env;
  const env = { ...endpoint, LANEWAY_WEBHOOK_SECRET: secret };
  let child: ReturnType<typeof startBinary> | null = null;
  try {
    await Deno.writeTextFile(`${folder}/shipments.ndjson`, shipmentLine(receiver.url));
    const file = ["--file", `${folder}/shipments.ndjson`, "--create-orgs"];
    const created = await runBinary(binary, ["create-shipments", ...file, ...store], env);
    assert.equal(created.code, 0, created.out + created.errors);
    child = startBinary(binary, [...store, "--http-port", "0", "--poll", "20ms", "--sweep", "100ms", ...args], env);
    const { log } = child;
    await waitFor("the webhook", () => receiver.received.length > 0 ? true : undefined, { timeoutMs: 20_000 })
      .catch((error) => assert.fail(`${error}: ${log()}`));
    child.kill("SIGTERM");
    assert.deepEqual(await child.ended, { code: 0, signal: null }, log());
    assert.ok(collector.spans.length > 0, "a binary exports, at least what is Deno's own");
    return collector.ours();
  } finally {
    child?.kill("SIGKILL");
    await child?.ended;
    await receiver.stop();
    await collector.stop();
  }
}

function shipmentLine(webhookUrl: string): string {
  return JSON.stringify({
    orgId: newId(),
    orgName: "Org",
    id: newId(),
    carrier: "DHL",
    trackingNumber: "00340434161094042557",
    recipientName: "山田 太郎",
    destination: "大阪市, JP",
    webhookUrl,
  });
}
