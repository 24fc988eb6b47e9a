/**
 * The demo's receiver of webhooks: verifies each as a receiver should, remembers the ids it has accepted, and is at times
 * unwell, so that there is something to retry.
 *
 * @module
 */
import { Webhook } from "standardwebhooks";

/** One webhook that arrived. */
export interface Delivery {
  readonly webhookId: string;
  readonly shipmentId: string;
  /** For people: carrier, number and whom it goes to. */
  readonly label: string;
  /** What was answered. */
  readonly status: number;
  /** How often this id has come, this time included. */
  readonly tries: number;
  /** Whether it had been accepted before: a receiver drops it then. */
  readonly repeated: boolean;
}

/** A listening receiver. */
export interface Receiver {
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  readonly url: string;
  stop(): Promise<void>;
}

/** How the receiver is made. */
export interface ReceiverOptions {
  readonly secret: string;
  readonly onDelivery: (delivery: Delivery) => void;
}

/** Hosts that begin so have closed down: their webhooks are answered 410 for ever. */
export const CLOSED_PREFIX = "closed.";
// One shipment in so many is refused at first.
const UNWELL_ONE_IN = 7;
const MAX_BODY_BYTES = 64 * 1024;

interface Seen {
  tries: number;
  accepted: boolean;
}

interface Body {
  readonly data?: { readonly [field: string]: unknown };
}

/** Starts a receiver on a free port of this machine's loopback. Paths begin with the host that was meant. */
export function startReceiver(options: ReceiverOptions): Receiver {
  const webhook = new Webhook(options.secret);
  const seen = new Map<string, Seen>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const text = await request.text();
    const verified = verify(webhook, request, text);
    if (verified === null) return new Response("the signature does not fit\n", { status: 401 });
    const webhookId = request.headers.get("webhook-id") ?? "";
    const entry = seen.get(webhookId) ?? { tries: 0, accepted: false };
    entry.tries++;
    seen.set(webhookId, entry);
    const { data = {} } = verified;
    const shipmentId = String(data.id);
    const host = new URL(request.url).pathname.split("/")[1] ?? "";
    const answer = entry.accepted ? new Response(null, { status: 204 }) : decide(host, shipmentId, entry.tries);
    const repeated = entry.accepted;
    entry.accepted ||= answer.ok;
    const label = `${data.carrier} ${data.trackingNumber} to ${data.recipientName}, ${data.destination}`;
    options.onDelivery({ webhookId, shipmentId, label, status: answer.status, tries: entry.tries, repeated });
    return answer;
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, stop: () => server.shutdown() };
}

function verify(webhook: Webhook, request: Request, text: string): Body | null {
  if (request.method !== "POST" || text.length > MAX_BODY_BYTES) return null;
  try {
    return webhook.verify(text, Object.fromEntries(request.headers)) as Body;
  } catch {
    return null;
  }
}

/** The same shipment meets the same answers in every run. */
function decide(host: string, shipmentId: string, tries: number): Response {
  if (host.startsWith(CLOSED_PREFIX)) return new Response("closed down\n", { status: 410 });
  const luck = hash(shipmentId);
  if (tries > 1 || luck % UNWELL_ONE_IN !== 0) return new Response(null, { status: 204 });
  switch (Math.floor(luck / UNWELL_ONE_IN) % 3) {
    case 0:
      return new Response("out of order\n", { status: 500 });
    case 1:
      return new Response("busy\n", { status: 503 });
    default:
      return new Response("busy\n", { status: 503, headers: { "retry-after": "1" } });
  }
}

// FNV-1a, 32 bits: spreads ids that differ in their last digits.
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const char of text) value = Math.imul(value ^ char.charCodeAt(0), 0x01000193) >>> 0;
  return value;
}
