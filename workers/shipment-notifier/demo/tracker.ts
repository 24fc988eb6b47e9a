/**
 * Follows the demo's shipments to their end. What counts stands in the store; the receiver only says where to look.
 *
 * @module
 */
import { type Managers, NotFoundError, type OpContext, type RequestContext, type WorkItem } from "../../../mod.ts";
import type { Shipment, ShipmentManager } from "../shipments/types.ts";
import type { DemoCounts } from "./progress.ts";

interface Followed {
  readonly ctx: OpContext;
  readonly shipment: Shipment;
  /** Whether an earlier run created it. */
  readonly older: boolean;
}

/** What a tracker looks at. */
export interface TrackerOptions {
  readonly shipments: ShipmentManager;
  readonly managers: Managers;
  readonly rctx: RequestContext;
  readonly counts: DemoCounts;
  readonly onDeadLetter: (shipment: Shipment) => void;
}

type End = "NOTIFIED" | "DEAD" | "DEAD_BEFORE";

/** Follows shipments until each is notified or given up. */
export class Tracker {
  readonly #options: TrackerOptions;
  readonly #open = new Map<string, Followed>();
  readonly #touched = new Set<string>();

  constructor(options: TrackerOptions) {
    this.#options = options;
  }

  /** How many have not come to their end. */
  get open(): number {
    return this.#open.size;
  }

  /** Follows one more shipment. */
  async follow(ctx: OpContext, shipment: Shipment, older: boolean): Promise<void> {
    const { counts } = this.#options;
    if (shipment.status === "notified") counts.already++;
    else if (older && await this.#endOf({ ctx, shipment, older }) === "DEAD_BEFORE") counts.deadBefore++;
    else {
      counts.wanted++;
      this.#open.set(shipment.id, { ctx, shipment, older });
    }
  }

  /** Notes that something happened to a shipment. */
  touch(shipmentId: string): void {
    this.#touched.add(shipmentId);
  }

  /** Looks at the shipments that were touched, or at all. */
  async look(all: boolean): Promise<void> {
    const ids = all ? [...this.#open.keys()] : [...this.#touched];
    for (const id of ids) {
      const followed = this.#open.get(id);
      if (followed === undefined) this.#touched.delete(id);
      else await this.#settle(followed);
    }
  }

  async #settle(followed: Followed): Promise<void> {
    const { counts } = this.#options;
    const end = await this.#endOf(followed);
    if (end === null || !this.#open.delete(followed.shipment.id)) return;
    this.#touched.delete(followed.shipment.id);
    if (end === "NOTIFIED") {
      counts.delivered++;
      // Null where the item retention is so short that it is purged already.
      const item = await this.#item(followed);
      if (item !== null && item.claims > 1) counts.retried++;
    } else {
      counts.deadLettered++;
      this.#options.onDeadLetter(followed.shipment);
    }
  }

  async #endOf(followed: Followed): Promise<End | null> {
    const now = await this.#options.shipments.read(followed.ctx, followed.shipment.id);
    if (now.status === "notified") return "NOTIFIED";
    if (now.parking !== null) return null;
    const item = await this.#item({ ...followed, shipment: now });
    const over = item === null ? await this.#isPurged(followed) : item.status === "failed";
    if (!over) return null;
    // It may have been notified of since it was first looked at.
    if (await this.#isNotified(followed)) return "NOTIFIED";
    return followed.older ? "DEAD_BEFORE" : "DEAD";
  }

  async #isNotified({ ctx, shipment }: Followed): Promise<boolean> {
    return (await this.#options.shipments.read(ctx, shipment.id)).status === "notified";
  }

  /** No item: its row waits in the outbox for the sweep, or it was given up and is purged already. */
  async #isPurged(followed: Followed): Promise<boolean> {
    const { managers, rctx } = this.#options;
    if ((await managers.outbox.readLag(rctx)).pending > 0) return false;
    // The row may have been handed on just before the lag was read.
    return await this.#item(followed) === null;
  }

  async #item({ ctx, shipment }: Followed): Promise<WorkItem | null> {
    try {
      return await this.#options.managers.work.read(ctx, shipment.itemId);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }
}
