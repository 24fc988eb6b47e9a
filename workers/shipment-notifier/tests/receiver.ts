/**
 * A receiver in a test's hands: a real HTTP server that verifies signatures and answers as told.
 *
 * @module
 */
import { Webhook } from "standardwebhooks";

/** One request that came, with its signature verified. */
export interface Received {
  readonly webhookId: string;
  readonly shipmentId: string;
  readonly timestamp: string;
  readonly body: string;
  readonly path: string;
}

/** A listening receiver. */
export interface TestReceiver {
  /** Where to post to. */
  readonly url: string;
  /** What came, in order; requests with a wrong signature are in `forged` instead. */
  readonly received: readonly Received[];
  readonly forged: readonly string[];
  /** How many ids each shipment was sent under. */
  idsOf(shipmentId: string): string[];
  stop(): Promise<void>;
}

/** What the next request is answered. Default 204. */
export type Answer = (received: Received, times: number, request: Request) => Response | Promise<Response>;

/** Starts a receiver on a free port. `times` counts requests under one id, from 1. */
export function startTestReceiver(secret: () => string, answer?: Answer): TestReceiver {
  const received: Received[] = [];
  const forged: string[] = [];
  const abort = new AbortController();
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {}, signal: abort.signal };
  const server = Deno.serve(options, async (request) => {
    const body = await request.text();
    let verified: { data: { id: string } };
    try {
      verified = new Webhook(secret()).verify(body, Object.fromEntries(request.headers)) as typeof verified;
    } catch (error) {
      forged.push(String(error));
      return new Response(null, { status: 401 });
    }
    const one: Received = {
      webhookId: request.headers.get("webhook-id") ?? "",
      shipmentId: verified.data.id,
      timestamp: request.headers.get("webhook-timestamp") ?? "",
      body,
      path: new URL(request.url).pathname,
    };
    received.push(one);
    const times = received.filter((other) => other.webhookId === one.webhookId).length;
    return await answer?.(one, times, request) ?? new Response(null, { status: 204 });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/hooks`,
    received,
    forged,
    idsOf: (id) => [...new Set(received.filter((one) => one.shipmentId === id).map((one) => one.webhookId))],
    async stop() {
      abort.abort();
      await server.finished;
    },
  };
}
