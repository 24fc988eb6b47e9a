/**
 * The handler against a real receiver. Every item is run twice, as a crash after the webhook would have it.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  ConflictError,
  Deferral,
  describeError,
  FinalError,
  type OpContext,
  systemClock,
  type WorkItem,
} from "../../../mod.ts";
import { forTests, type TestContainer, type TestOptions } from "../container.ts";
import { NotifyShipmentHandler } from "../handler.ts";
import type { NotifyShipmentPayload } from "../kind.ts";
import type { Shipment, ShipmentManager } from "../shipments/types.ts";
import { WebhookSender } from "../webhook.ts";
import { type Answer, startTestReceiver, type TestReceiver } from "./receiver.ts";
import { claimOne, member, newShipment, runOf } from "./world.ts";

interface World {
  readonly container: TestContainer;
  readonly receiver: TestReceiver;
  readonly ctx: OpContext;
  readonly item: WorkItem<NotifyShipmentPayload>;
  readonly shipment: Shipment;
  /** Runs the item once and gives what it threw or returned. */
  run(fields?: Parameters<typeof runOf>[0]): Promise<unknown>;
  /** The shipment as it stands. */
  read(): Promise<Shipment>;
}

/** One created shipment whose item is claimed, and a receiver that answers so. */
async function withShipment(answer: Answer | undefined, test: (world: World) => Promise<void>, options?: TestOptions) {
  const container = await forTests(options);
  const receiver = startTestReceiver(() => container.secret, answer);
  try {
    const author = await member(container);
    const { shipment } = await container.shipments.create(author, newShipment(receiver.url));
    const { ctx, item } = await claimOne(container);
    const run: World["run"] = async (fields) => {
      try {
        return await container.handler.handle(ctx, item, runOf(fields));
      } catch (error) {
        return error;
      }
    };
    await test({
      container,
      receiver,
      ctx,
      item,
      shipment,
      run,
      read: () => container.shipments.read(ctx, shipment.id),
    });
  } finally {
    await receiver.stop();
    await container.close();
  }
}

function senderOf({ secret }: TestContainer): WebhookSender {
  return new WebhookSender({ secret, timeoutMs: 2_000, clock: systemClock });
}

function unmarked(shipments: ShipmentManager): Pick<ShipmentManager, "read" | "wasDeleted" | "park"> {
  return {
    read: (ctx, id) => shipments.read(ctx, id),
    wasDeleted: (ctx, id) => shipments.wasDeleted(ctx, id),
    park: (...args) => shipments.park(...args),
  };
}

Deno.test("an item run twice sends one webhook and marks the shipment once", async () => {
  await withShipment(undefined, async ({ receiver, item, shipment, run, read }) => {
    assert.equal(await run(), undefined);
    const marked = await read();
    assert.equal(await run(), undefined);
    assert.deepEqual(await read(), marked);
    assert.deepEqual([marked.status, marked.version], ["notified", 2]);
    const [sent, ...more] = receiver.received;
    assert.equal(more.length, 0);
    assert.deepEqual([sent?.webhookId, item.idempotencyKey], [shipment.notificationId, shipment.notificationId]);
    assert.ok(Math.abs(Number(sent?.timestamp) - Date.now() / 1_000) < 60);
    assert.deepEqual(JSON.parse(sent?.body ?? ""), {
      type: "shipment.notified",
      timestamp: shipment.createdAt.toISOString(),
      data: {
        id: shipment.id,
        carrier: "DHL",
        trackingNumber: "00340434161094042557",
        recipientName: "山田 太郎",
        destination: "大阪市, JP",
      },
    });
    assert.deepEqual(receiver.forged, []);
  });
});

Deno.test("a crash between the webhook and the mark repeats the webhook under its id, and marks once", async () => {
  await withShipment(undefined, async ({ container, ctx, item, receiver, run, read }) => {
    const dying = new NotifyShipmentHandler({
      shipments: { ...unmarked(container.shipments), markNotified: () => Promise.reject(new Error("killed")) },
      endpoints: container.endpoints,
      webhooks: senderOf(container),
    });
    await assert.rejects(async () => await dying.handle(ctx, item, runOf()), /killed/);
    assert.equal((await read()).status, "created");
    assert.equal(await run(), undefined);
    assert.equal((await read()).version, 2);
    assert.equal(receiver.received.length, 2);
    assert.deepEqual(new Set(receiver.received.map((one) => one.webhookId)), new Set([item.idempotencyKey]));
    assert.equal(receiver.received[0]?.body, receiver.received[1]?.body);
  });
});

Deno.test("a mark that lost its compare-and-set reads again: marked by another is fine, changed is marked anew", async () => {
  await withShipment(undefined, async ({ container, ctx, item, read }) => {
    let refusals = 1;
    const racing = new NotifyShipmentHandler({
      shipments: {
        ...unmarked(container.shipments),
        markNotified: (on, record, version) =>
          refusals-- > 0
            ? Promise.reject(new ConflictError("lost"))
            : container.shipments.markNotified(on, record, version),
      },
      endpoints: container.endpoints,
      webhooks: senderOf(container),
    });
    assert.equal(await racing.handle(ctx, item, runOf()), undefined);
    assert.equal((await read()).version, 2);
  });
  let meanwhile: () => Promise<void> = () => Promise.resolve();
  await withShipment(
    // Another run of the same item marks the shipment while this one's webhook is on its way.
    async (_received, times) => {
      if (times === 1) await meanwhile();
      return new Response(null, { status: 204 });
    },
    async ({ container, ctx, shipment, run, read }) => {
      meanwhile = async () => void await container.shipments.markNotified(ctx, shipment, 1);
      assert.equal(await run(), undefined);
      assert.equal(await run(), undefined);
      assert.equal((await read()).version, 2);
    },
  );
});

for (const status of [301, 302, 307, 400, 401, 404, 410, 422]) {
  Deno.test(`a receiver that answers ${status} has refused for good`, async () => {
    const away = { location: "http://127.0.0.1:1/elsewhere" };
    await withShipment(() => new Response(null, { status, headers: away }), async ({ receiver, run, read }) => {
      for (let i = 1; i <= 2; i++) {
        const thrown = await run();
        assert.ok(thrown instanceof FinalError, String(thrown));
        assert.match(thrown.message, new RegExp(`127\\.0\\.0\\.1:\\d+ answered ${status}`));
        assert.equal(receiver.received.length, i);
      }
      assert.equal((await read()).status, "created");
    });
  });
}

for (const status of [408, 425, 429, 500, 502, 503, 504]) {
  Deno.test(`a receiver that answers ${status} is tried again, and is then told once`, async () => {
    const answer: Answer = (_received, times) => new Response("why", { status: times === 1 ? status : 200 });
    await withShipment(answer, async ({ receiver, run, read }) => {
      const thrown = await run();
      assert.ok(thrown instanceof Error && !(thrown instanceof FinalError), String(thrown));
      assert.equal(await run(), undefined);
      assert.equal((await read()).version, 2);
      assert.equal(new Set(receiver.received.map((one) => one.webhookId)).size, 1);
    });
  });
}

Deno.test("Retry-After is obeyed within bounds, with 429 and 503 alone, and not for ever", async () => {
  const cases: [number, string, number | null][] = [
    [503, "7", 7_000],
    [429, "0", 1_000],
    [503, "999999999", 3_600_000],
    [503, "soon", null],
    [500, "7", null],
  ];
  for (const [status, header, delayMs] of cases) {
    const answer: Answer = () => new Response(null, { status, headers: { "retry-after": header } });
    await withShipment(answer, async ({ run }) => {
      for (let i = 0; i < 2; i++) {
        const ended = await run();
        assert.equal(ended instanceof Deferral ? ended.delayMs : null, delayMs, `${status} with ${header}`);
      }
      assert.ok(await run({ attempt: 1, fence: 25 }) instanceof Error, "the 25th claim is charged");
    }, { endpointPolicy: { downAfter: 100 } });
  }
});

Deno.test("a receiver that never answers is left at the timeout, or as soon as the run is told to stop", async () => {
  const stuck: Answer = (_received, _times, request) =>
    new Promise((resolve) => request.signal.addEventListener("abort", () => resolve(new Response()), { once: true }));
  await withShipment(stuck, async ({ run }) => {
    const thrown = await run();
    assert.match(String(thrown), /127\.0\.0\.1:\d+ was not reached: it gave no answer within 100 ms/);
  }, { webhookTimeoutMs: 100 });
  const stop = new AbortController();
  await withShipment((...given) => (stop.abort(new Error("drained")), stuck(...given)), async ({ run, read }) => {
    assert.match(String(await run({ signal: stop.signal })), /drained/);
    assert.equal((await read()).status, "created");
  }, { webhookTimeoutMs: 60_000 });
});

Deno.test("an endless body is read to a bound only", async () => {
  const chunk = new Uint8Array(16 * 1024);
  let sent = 0;
  const endless: Answer = () =>
    new Response(new ReadableStream({ pull: (to) => (sent += chunk.length, to.enqueue(chunk)) }), { status: 200 });
  await withShipment(endless, async ({ run, read }) => {
    assert.equal(await run(), undefined);
    assert.equal((await read()).status, "notified");
    assert.ok(sent < 50_000_000, `${sent} bytes were taken`);
  });
});

Deno.test("no answer at all is tried again, and tells the host but neither path, query nor secret", async () => {
  const container = await forTests();
  try {
    const author = await member(container);
    const url = "http://127.0.0.1:1/hooks/key-of-the-receiver?token=very-secret";
    const { shipment } = await container.shipments.create(author, newShipment(url));
    const { ctx, item } = await claimOne(container);
    for (let i = 0; i < 2; i++) {
      await assert.rejects(async () => await container.handler.handle(ctx, item, runOf()), (error: Error) => {
        assert.ok(!(error instanceof FinalError));
        assert.match(error.message, /receiver 127\.0\.0\.1:1 was not reached/);
        assert.doesNotMatch(error.message, /key-of-the-receiver|very-secret|whsec/);
        assert.doesNotMatch(describeError(error), /key-of-the-receiver|very-secret|whsec/);
        return true;
      });
    }
    assert.equal((await container.shipments.read(ctx, shipment.id)).status, "created");
  } finally {
    await container.close();
  }
});

Deno.test("an item whose shipment does not exist, or is another org's, is a dead letter at once", async () => {
  await withShipment(undefined, async ({ container, item, receiver }) => {
    const stranger = await member(container);
    for (let i = 0; i < 2; i++) {
      await assert.rejects(async () => await container.handler.handle(stranger, item, runOf()), FinalError);
    }
    assert.equal(receiver.received.length, 0);
  });
});

Deno.test("without a secret nothing is sent and nothing is lost: the item waits, uncharged, and says for what", async () => {
  await withShipment(undefined, async ({ container, receiver, ctx, item, read }) => {
    const handler = new NotifyShipmentHandler({ ...container, webhooks: null });
    for (let run = 0; run < 2; run++) {
      const waits = await handler.handle(ctx, item, runOf());
      assert.ok(waits instanceof Deferral);
      assert.match(waits.note ?? "", /LANEWAY_WEBHOOK_SECRET/);
    }
    assert.deepEqual([receiver.received.length, (await read()).status], [0, "created"]);
  });
});

const QUICK = { endpointPolicy: { downAfter: 3, probeMs: 60_000, probeCapMs: 600_000, probeHoldMs: 90_000 } };

/** The endpoint of a world's receiver. */
function hostOf({ receiver }: World): string {
  return new URL(receiver.url).host;
}

Deno.test("failures in a row past the bound park the shipment, whose item then completes without sending", async () => {
  await withShipment(() => new Response(null, { status: 502 }), async (world) => {
    const { receiver, run, read, item } = world;
    for (let i = 0; i < 2; i++) assert.ok(await run() instanceof Error);
    assert.equal((await read()).parking, null);
    assert.equal(await run(), undefined);
    const parked = await read();
    assert.match(parked.parking?.reason ?? "", /is down after 3 failures in a row; the last: .* answered 502/);
    assert.deepEqual(parked.parking?.cursor, { lane: item.lane });
    assert.ok(Number(parked.parking?.resumeAt) > Date.now());
    assert.equal(await run(), undefined);
    assert.deepEqual(await read(), parked);
    assert.equal(receiver.received.length, 3);
  }, QUICK);
});

Deno.test("while an endpoint is down other shipments park unsent, each once however often its item runs", async () => {
  await withShipment(undefined, async (world) => {
    const { container, ctx, receiver, run, read } = world;
    for (let i = 0; i < 3; i++) await container.endpoints.failed(ctx, hostOf(world), false);
    assert.equal(await run(), undefined);
    const parked = await read();
    assert.equal(await run(), undefined);
    assert.deepEqual(await read(), parked);
    assert.deepEqual([parked.version, receiver.received.length], [2, 0]);
  }, QUICK);
});

for (const [answer, notified] of [[503, false], [204, true]] as const) {
  Deno.test(`a probe answered ${answer} ${notified ? "marks its shipment and clears" : "parks it again and keeps"} the endpoint`, async () => {
    const busy = () => new Response(null, { status: answer, headers: { "retry-after": "7" } });
    await withShipment(busy, async (world) => {
      const { container, ctx, receiver, run, read } = world;
      for (let i = 0; i < 3; i++) await container.endpoints.failed(ctx, hostOf(world), false);
      for (let i = 0; i < 2; i++) assert.equal(await run(), undefined);
      const now = await read();
      assert.deepEqual([now.status === "notified", now.parking === null], [notified, notified]);
      const endpoint = await container.endpoints.read(ctx, hostOf(world));
      assert.equal(endpoint?.failures ?? 0, notified ? 0 : 4);
      assert.equal(receiver.received.length, 1, "one probe");
    }, { endpointPolicy: { ...QUICK.endpointPolicy, probeMs: 0 } });
  });
}

Deno.test("a refusal for good, and one that asks for patience, show that the endpoint is up", async () => {
  for (const status of [410, 429, 404]) {
    const answer: Answer = () => new Response(null, { status, headers: { "retry-after": "7" } });
    await withShipment(answer, async (world) => {
      const { container, ctx, run } = world;
      for (let i = 0; i < 2; i++) await container.endpoints.failed(ctx, hostOf(world), false);
      for (let i = 0; i < 2; i++) await run();
      assert.equal(await container.endpoints.read(ctx, hostOf(world)), null, String(status));
    }, QUICK);
  }
});

Deno.test("a run cut off from this side says nothing of its endpoint", async () => {
  const stop = new AbortController();
  const stuck: Answer = (_received, _times, request) => {
    stop.abort(new Error("drained"));
    return new Promise((resolve) => request.signal.addEventListener("abort", () => resolve(new Response())));
  };
  await withShipment(stuck, async (world) => {
    for (let i = 0; i < 2; i++) assert.match(String(await world.run({ signal: stop.signal })), /drained/);
    assert.equal(await world.container.endpoints.read(world.ctx, hostOf(world)), null);
  }, { ...QUICK, webhookTimeoutMs: 60_000 });
});

Deno.test("a shipment deleted before or while it is sent: its item completes, a second time too, and nothing is marked", async () => {
  await withShipment(undefined, async ({ container, ctx, shipment, receiver, run }) => {
    await container.shipments.deleteShipment(ctx, shipment, 1);
    for (let i = 0; i < 2; i++) assert.equal(await run(), undefined);
    assert.equal(receiver.received.length, 0);
  });
  let meanwhile: () => Promise<void> = () => Promise.resolve();
  await withShipment(
    async () => {
      await meanwhile();
      return new Response(null, { status: 204 });
    },
    async ({ container, ctx, shipment, receiver, run }) => {
      meanwhile = () => container.shipments.deleteShipment(ctx, shipment, 1);
      for (let i = 0; i < 2; i++) assert.equal(await run(), undefined);
      assert.equal(receiver.received.length, 1);
      assert.equal(await container.shipments.wasDeleted(ctx, shipment.id), true);
    },
  );
});

Deno.test("an item of a resumed shipment waits for its turn once, uncharged", async () => {
  await withShipment(undefined, async ({ container, ctx, item, receiver, read }) => {
    const resumed = { ...item, payload: { ...item.payload, startMs: 700 } };
    const first = await container.handler.handle(ctx, resumed, runOf({ fence: 1 }));
    assert.ok(first instanceof Deferral && first.delayMs === 700);
    assert.equal(receiver.received.length, 0);
    for (let i = 0; i < 2; i++) {
      assert.equal(await container.handler.handle(ctx, resumed, runOf({ fence: 2 + i })), undefined);
    }
    assert.equal((await read()).status, "notified");
    assert.equal(receiver.received.length, 1);
  });
});
