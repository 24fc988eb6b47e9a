/**
 * Claims whose answer was lost. Their rows are held under a token that only this process knows, so they are looked for,
 * renewed and run, instead of left to expire with their attempts spent.
 *
 * @module
 */
import { describeError } from "../core/describe_error.ts";
import type { Logger } from "../core/log.ts";
import type { ClaimRequest, OwnedItem, WorkStorage } from "./storage.ts";
import { claimRef } from "./settler.ts";

// More are left to their leases: with a claim lost at each poll they could not be run in time anyway.
const MAX_LOST = 20;

/** Remembers lost claims, each for whoever asks next for what it asked for. */
export class LostClaims {
  readonly #storage: WorkStorage;
  readonly #logger: Logger;
  #lost: ClaimRequest[] = [];

  constructor(storage: WorkStorage, logger: Logger) {
    this.#storage = storage;
    this.#logger = logger;
  }

  /** Notes a claim that may have taken effect. */
  remember(request: ClaimRequest): void {
    this.#lost.push(request);
    if (this.#lost.length > MAX_LOST) this.#lost.shift();
  }

  /**
   * Rows of lost claims of the lane, and of no kinds but those asked for, renewed; at most `limit`, what is over is
   * handed back. A token is taken before it is asked for, so two callers at once never get the same rows; one that
   * could not be asked for is kept.
   *
   * @throws {UnavailableError} Nothing was found as the storage could not be asked.
   */
  async recover(wanted: Omit<ClaimRequest, "token">): Promise<OwnedItem[]> {
    const matching = this.#lost.filter(({ lane, kinds }) =>
      lane === wanted.lane && kinds.every((kind) => wanted.kinds.includes(kind))
    );
    if (matching.length === 0) return [];
    this.#lost = this.#lost.filter((request) => !matching.includes(request));
    const rows: OwnedItem[] = [];
    for (const [i, request] of matching.entries()) {
      try {
        rows.push(...await this.#renewed(request.token, wanted.leaseMs));
      } catch (error) {
        for (const left of matching.slice(i)) this.remember(left);
        if (rows.length === 0) throw error;
        break;
      }
    }
    if (rows.length > 0) this.#logger.info("work.claim_recovered", { items: rows.length });
    const over = rows.splice(wanted.limit);
    await releaseAll(over, "released: found after a lost answer, beyond the free slots", {
      storage: this.#storage,
      logger: this.#logger,
    });
    return rows;
  }

  async #renewed(token: string, leaseMs: number): Promise<OwnedItem[]> {
    const held = await this.#storage.readClaimed(token);
    if (held.length === 0) return [];
    const renewed = await this.#storage.extendLeases(held.map(({ orgId, item }) => claimRef(orgId, item)), leaseMs);
    return held.filter((_, i) => renewed[i] === "WRITTEN");
  }
}

/** Hands rows back uncharged. Best effort: what cannot be handed back waits for its lease to expire. */
export async function releaseAll(
  rows: readonly OwnedItem[],
  note: string,
  { storage, logger }: { readonly storage: WorkStorage; readonly logger: Logger },
): Promise<void> {
  if (rows.length === 0) return;
  try {
    await storage.settle(rows.map(({ orgId, item }) => ({
      ...claimRef(orgId, item),
      to: "back",
      delayMs: 0,
      note,
      ran: false,
    })));
  } catch (error) {
    logger.warn("work.batch_not_released", { items: rows.length, error: describeError(error) });
  }
}
