/**
 * Notifies of a shipment: posts its webhook, then marks the shipment. While its endpoint is down the shipment parks.
 *
 * A crash between the two sends the webhook again, under the same `webhook-id`, so that its receiver drops it. Every write
 * is a compare-and-set on the shipment's version: the lease and the claim token guard the item, never the record.
 *
 * @module
 */
import {
  ConflictError,
  defer,
  type Deferral,
  describeError,
  FinalError,
  NotFoundError,
  type OpContext,
  type WorkHandler,
  type WorkItem,
  type WorkKind,
  type WorkRun,
} from "../../mod.ts";
import { hostOf } from "./endpoints/rules.ts";
import type { Endpoint, EndpointManager } from "./endpoints/types.ts";
import { NOTIFY_SHIPMENT, type NotifyShipmentPayload } from "./kind.ts";
import { NO_SECRET } from "./settings.ts";
import type { Shipment, ShipmentManager } from "./shipments/types.ts";
import type { WebhookAnswer, WebhookSender } from "./webhook.ts";

/** What the handler works with. */
export interface NotifyShipmentOptions {
  readonly shipments: Pick<ShipmentManager, "read" | "wasDeleted" | "markNotified" | "park">;
  readonly endpoints: EndpointManager;
  /** Null while no secret is set: items then wait, uncharged. */
  readonly webhooks: Pick<WebhookSender, "send"> | null;
  /** Default `NOTIFY_SHIPMENT`. */
  readonly kind?: WorkKind<NotifyShipmentPayload>;
}

// A receiver may ask for patience, but neither for a day nor for ever.
const MAX_RETRY_AFTER_MS = 3_600_000;
const MIN_RETRY_AFTER_MS = 1_000;
const MAX_DEFERRALS = 24;
// Answers that say "later" with a status of the 4xx class.
const LATER: readonly number[] = [408, 425, 429];
const MAX_TRIES = 5;
const MAX_REASON = 500;
const NO_SECRET_WAIT_MS = 60_000;

/** One try at an endpoint. */
interface Try {
  readonly ctx: OpContext;
  readonly item: WorkItem<NotifyShipmentPayload>;
  readonly shipment: Shipment;
  readonly host: string;
  /** How the endpoint fared before; null when well. */
  readonly endpoint: Endpoint | null;
  /** Whether it is down and this try is the one that finds out whether it still is. */
  readonly probe: boolean;
}

/** Handles `NOTIFY_SHIPMENT`. */
export class NotifyShipmentHandler implements WorkHandler<NotifyShipmentPayload> {
  readonly kind: WorkKind<NotifyShipmentPayload>;
  readonly #o: NotifyShipmentOptions;

  constructor(options: NotifyShipmentOptions) {
    this.kind = options.kind ?? NOTIFY_SHIPMENT;
    this.#o = options;
  }

  /**
   * Posts the webhook unless the shipment is marked, deleted or parked, then marks it. Safe to repeat.
   *
   * Answers: 2xx is delivered. 408, 425, 429, 5xx and no answer are tried again; a `Retry-After` with 429 or 503 is
   * obeyed, from 1 s to 1 h, at most 24 times an item. Anything else will not change by repeating. 5xx and no answer,
   * too often in a row, mean that the endpoint is down: then the shipment parks and the item completes.
   *
   * @throws {FinalError} The shipment does not exist, or the receiver refused for good.
   */
  async handle(
    ctx: OpContext,
    item: WorkItem<NotifyShipmentPayload>,
    run: WorkRun,
  ): Promise<void | Deferral> {
    const shipment = await this.#read(ctx, item.payload.shipmentId);
    // A parked one is taken up by another item, once it resumes.
    if (shipment === null || isSettled(shipment)) return;
    // An unsigned webhook would be refused, a dead letter would be the receiver's loss: the shipment waits for its operator.
    if (this.#o.webhooks === null) return defer(NO_SECRET_WAIT_MS, NO_SECRET);
    const { startMs = 0 } = item.payload;
    if (startMs > 0 && run.fence === 1) return defer(startMs, "It waits for its turn among shipments that resumed");
    const host = hostOf(shipment.webhookUrl);
    const endpoint = await this.#o.endpoints.read(ctx, host);
    const probe = isDown(endpoint) && await this.#o.endpoints.takeProbe(ctx, host);
    const attempt = { ctx, item, shipment, host, endpoint, probe };
    if (isDown(endpoint) && !probe) return await this.#park(attempt, endpoint, "");
    return await this.#send(attempt, this.#o.webhooks, run);
  }

  async #send(attempt: Try, webhooks: Pick<WebhookSender, "send">, run: WorkRun): Promise<void | Deferral> {
    const { ctx, shipment, host, endpoint, probe } = attempt;
    const message = { id: shipment.notificationId, url: shipment.webhookUrl, body: bodyOf(shipment) };
    let answer: WebhookAnswer;
    try {
      answer = await webhooks.send(message, run.signal);
    } catch (error) {
      // Cut off from this side: that says nothing of the endpoint.
      if (run.signal.aborted) throw error;
      return await this.#unwell(attempt, error);
    }
    if (answer.status >= 200 && answer.status < 300) return await this.#mark(ctx, shipment);
    if (answer.status < 500 && endpoint !== null) await this.#o.endpoints.answered(ctx, host);
    let patience: Deferral;
    try {
      patience = judge(answer, shipment, run);
    } catch (error) {
      if (answer.status < 500) throw error;
      return await this.#unwell(attempt, error);
    }
    // It asks for patience, but so it did when it went down: the next probe tells more.
    return probe && answer.status >= 500 ? await this.#unwell(attempt, patience.note) : patience;
  }

  /** Null when it was deleted. */
  async #read(ctx: OpContext, id: string): Promise<Shipment | null> {
    try {
      return await this.#o.shipments.read(ctx, id);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      if (await this.#o.shipments.wasDeleted(ctx, id)) return null;
      throw new FinalError(`Cannot notify of a shipment that does not exist: ${error.message}`, { cause: error });
    }
  }

  /** Whoever wins marks it; a loser that finds it marked has nothing left to do. */
  async #mark(ctx: OpContext, delivered: Shipment): Promise<void> {
    await this.#compareAndSet(ctx, delivered, {
      write: (shipment) => this.#o.shipments.markNotified(ctx, shipment, shipment.version),
      // Parked meanwhile by another run, and told all the same.
      isOver: ({ status }) => status === "notified",
    });
  }

  /** Notes a failure: the endpoint is down and the shipment parks, or `error` is thrown for the item to be tried again. */
  async #unwell(attempt: Try, error: unknown): Promise<void> {
    const { ctx, host, probe } = attempt;
    const endpoint = await this.#o.endpoints.failed(ctx, host, probe);
    const why = typeof error === "string" ? error : describeError(error);
    if (!isDown(endpoint)) throw error instanceof Error ? error : new Error(why);
    await this.#park(attempt, endpoint, `; the last: ${why}`);
  }

  async #park({ ctx, item, shipment, host }: Try, endpoint: Endpoint & { probeAt: Date }, last: string): Promise<void> {
    const reason = `Its endpoint ${host} is down after ${endpoint.failures} failures in a row${last}`;
    const request = {
      reason: [...reason].slice(0, MAX_REASON).join(""),
      resumeAt: endpoint.probeAt,
      // What its next item must know of this one.
      cursor: { lane: item.lane },
      host,
    };
    await this.#compareAndSet(ctx, shipment, {
      write: (found) => this.#o.shipments.park(ctx, found, found.version, request),
      isOver: isSettled,
    });
  }

  /** Writes under the version that was read; where another was faster reads again, unless that leaves nothing to do. */
  async #compareAndSet(
    ctx: OpContext,
    read: Shipment,
    { write, isOver }: { write: (shipment: Shipment) => Promise<unknown>; isOver: (shipment: Shipment) => boolean },
  ): Promise<void> {
    let shipment: Shipment | null = read;
    for (let tries = 1; shipment !== null; tries++) {
      try {
        await write(shipment);
        return;
      } catch (error) {
        if (error instanceof NotFoundError && await this.#o.shipments.wasDeleted(ctx, read.id)) return;
        if (!(error instanceof ConflictError) || tries === MAX_TRIES) throw error;
        shipment = await this.#read(ctx, read.id);
        if (shipment !== null && isOver(shipment)) return;
      }
    }
  }
}

function isDown(endpoint: Endpoint | null): endpoint is Endpoint & { readonly probeAt: Date } {
  return endpoint !== null && endpoint.probeAt !== null;
}

function isSettled({ status, parking }: Shipment): boolean {
  return status === "notified" || parking !== null;
}

/** What an answer other than 2xx means: a deferral is later; it throws for anything else. */
function judge(answer: WebhookAnswer, shipment: Shipment, run: WorkRun): Deferral {
  const { status, retryAfterMs } = answer;
  const said = `The webhook's receiver ${hostOf(shipment.webhookUrl)} answered ${status}`;
  if (status < 500 && !LATER.includes(status)) {
    throw new FinalError(status === 410 ? `${said}: it is gone for good` : `${said}: repeating will not change that`);
  }
  // Claims that were not charged: deferrals, and hand-backs of workers that were stopped.
  const uncharged = run.fence - run.attempt;
  if (retryAfterMs === null || (status !== 429 && status !== 503) || uncharged >= MAX_DEFERRALS) throw new Error(said);
  const delayMs = Math.min(Math.max(retryAfterMs, MIN_RETRY_AFTER_MS), MAX_RETRY_AFTER_MS);
  return defer(delayMs, `${said} and asked for ${Math.round(retryAfterMs / 1_000)} s`);
}

/** The body. The same bytes for every sending of one shipment, whichever item carries it: its time is the shipment's. */
function bodyOf(shipment: Shipment): string {
  const { id, carrier, trackingNumber, recipientName, destination } = shipment;
  return JSON.stringify({
    type: "shipment.notified",
    timestamp: shipment.createdAt.toISOString(),
    data: { id, carrier, trackingNumber, recipientName, destination },
  });
}
