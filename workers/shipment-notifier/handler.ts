/**
 * Notifies of a shipment: posts its webhook, then marks the shipment.
 *
 * A crash between the two sends the webhook again, under the same `webhook-id`, so that its receiver drops it. The mark is
 * a compare-and-set on the shipment's version: the lease and the claim token guard the item, never the record.
 *
 * @module
 */
import {
  ConflictError,
  defer,
  type Deferral,
  FinalError,
  NotFoundError,
  type OpContext,
  type WorkHandler,
  type WorkItem,
  type WorkKind,
  type WorkRun,
} from "../../mod.ts";
import { NOTIFY_SHIPMENT, type NotifyShipmentPayload } from "./kind.ts";
import { NO_SECRET } from "./settings.ts";
import type { Shipment, ShipmentManager } from "./shipments/types.ts";
import { hostOf, type WebhookAnswer, type WebhookSender } from "./webhook.ts";

/** What the handler works with. */
export interface NotifyShipmentOptions {
  readonly shipments: ShipmentManager;
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
const MAX_MARKS = 5;
const NO_SECRET_WAIT_MS = 60_000;

/** Handles `NOTIFY_SHIPMENT`. */
export class NotifyShipmentHandler implements WorkHandler<NotifyShipmentPayload> {
  readonly kind: WorkKind<NotifyShipmentPayload>;
  readonly #shipments: ShipmentManager;
  readonly #webhooks: Pick<WebhookSender, "send"> | null;

  constructor(options: NotifyShipmentOptions) {
    this.kind = options.kind ?? NOTIFY_SHIPMENT;
    this.#shipments = options.shipments;
    this.#webhooks = options.webhooks;
  }

  /**
   * Posts the webhook unless the shipment is marked, then marks it. Safe to repeat.
   *
   * Answers: 2xx is delivered. 408, 425, 429, 5xx and no answer are tried again; a `Retry-After` with 429 or 503 is
   * obeyed, from 1 s to 1 h, at most 24 times an item. Anything else will not change by repeating.
   *
   * @throws {FinalError} The shipment does not exist, or the receiver refused for good.
   */
  async handle(
    ctx: OpContext,
    item: WorkItem<NotifyShipmentPayload>,
    run: WorkRun,
  ): Promise<void | Deferral> {
    const shipment = await this.#read(ctx, item.payload.shipmentId);
    if (shipment.status === "notified") return;
    // An unsigned webhook would be refused, a dead letter would be the receiver's loss: the shipment waits for its operator.
    if (this.#webhooks === null) return defer(NO_SECRET_WAIT_MS, NO_SECRET);
    const answer = await this.#webhooks.send(
      { id: item.idempotencyKey, url: shipment.webhookUrl, body: bodyOf(shipment, item) },
      run.signal,
    );
    const patience = judge(answer, shipment, run);
    if (patience !== null) return patience;
    await this.#mark(ctx, shipment);
  }

  async #read(ctx: OpContext, id: string): Promise<Shipment> {
    try {
      return await this.#shipments.read(ctx, id);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      throw new FinalError(`Cannot notify of a shipment that does not exist: ${error.message}`, { cause: error });
    }
  }

  /** Whoever wins marks it; a loser that finds it marked has nothing left to do. */
  async #mark(ctx: OpContext, delivered: Shipment): Promise<void> {
    let shipment = delivered;
    for (let tries = 1;; tries++) {
      try {
        await this.#shipments.markNotified(ctx, shipment, shipment.version);
        return;
      } catch (error) {
        if (!(error instanceof ConflictError) || tries === MAX_MARKS) throw error;
        shipment = await this.#read(ctx, shipment.id);
        if (shipment.status === "notified") return;
      }
    }
  }
}

/** What an answer means: null is delivered, a deferral is later; it throws for anything else. */
function judge(answer: WebhookAnswer, shipment: Shipment, run: WorkRun): Deferral | null {
  const { status, retryAfterMs } = answer;
  if (status >= 200 && status < 300) return null;
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

/** The body. The same bytes for every sending of one item: its time is the item's. */
function bodyOf(shipment: Shipment, item: WorkItem): string {
  const { id, carrier, trackingNumber, recipientName, destination } = shipment;
  return JSON.stringify({
    type: "shipment.notified",
    timestamp: item.createdAt.toISOString(),
    data: { id, carrier, trackingNumber, recipientName, destination },
  });
}
