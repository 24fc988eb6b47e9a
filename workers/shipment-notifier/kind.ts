/**
 * The kind of work this worker does.
 *
 * @module
 */
import * as z from "zod";
import { defineKind, type Payload, type RetryPolicy, type WorkKind } from "../../mod.ts";

/** What a notification's item carries. Shapes only gain optional fields. */
export interface NotifyShipmentPayload extends Payload {
  readonly shipmentId: string;
  /** Of a shipment that resumed with others: how long it waits for its turn, milliseconds. */
  readonly startMs?: number;
}

// A webhook that took a minute would have been cut by its own timeout long before.
const TIMEOUT_MS = 60_000;

/** Makes the kind. `retry` spaces its retries; default 1 s doubling to 1 h. */
export function notifyShipmentKind(retry?: Partial<RetryPolicy>): WorkKind<NotifyShipmentPayload> {
  const schema = z.object({
    shipmentId: z.guid(),
    startMs: z.number().int().min(0).max(3_600_000).optional(),
  });
  return defineKind("NOTIFY_SHIPMENT", { schema, timeoutMs: TIMEOUT_MS, ...(retry === undefined ? {} : { retry }) });
}

/** Tells a shipment's receiver of it, by a webhook. */
export const NOTIFY_SHIPMENT: WorkKind<NotifyShipmentPayload> = notifyShipmentKind();
