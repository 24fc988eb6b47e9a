/**
 * Fair claims on Postgres: a statement a priority, until there is enough. Old snapshots are not stepped over
 * (`claim_floors.ts`): behind one each org's finished items are read again by its turn.
 *
 * @module
 */
import { UnavailableError } from "../../core/errors.ts";
import type { Database, Row } from "../../db/database.ts";
import type { ClaimRequest, OwnedItem } from "../storage.ts";
import { FairTurns } from "./fair_turns.ts";
import { toClaimed } from "./postgres_rows.ts";
import type { WorkSql } from "./sql.ts";

/** What is left after so many is claimed in the order of priorities and times alone: in one statement. */
const MAX_PRIORITIES = 4;

/** Claims that take turns of orgs. */
export class FairClaims {
  readonly #db: Database;
  readonly #sql: WorkSql;
  readonly #claimDue: (request: ClaimRequest) => Promise<OwnedItem[]>;
  readonly #turns = new FairTurns();

  /** @param claimDue The claim in the other order. */
  constructor(db: Database, sql: WorkSql, claimDue: (request: ClaimRequest) => Promise<OwnedItem[]>) {
    this.#db = db;
    this.#sql = sql;
    this.#claimDue = claimDue;
  }

  /**
   * Claims. All of it is held under the request's token.
   *
   * @throws {UnavailableError} Outcome `unknown` where a part was claimed: it is found by the token.
   */
  async claim(request: ClaimRequest): Promise<OwnedItem[]> {
    const owned: OwnedItem[] = [];
    try {
      let from: number | null = 0;
      for (let n = 0; from !== null && owned.length < request.limit; n++) {
        const left = { ...request, limit: request.limit - owned.length };
        if (n === MAX_PRIORITIES) return owned.concat(await this.#claimDue(left));
        const found = await this.#claimPriority(left, from);
        owned.push(...found.owned);
        from = found.next;
      }
      return owned;
    } catch (error) {
      if (owned.length === 0) throw error;
      throw new UnavailableError(
        "Cannot tell what a claim holds as it broke off midway: look by its token",
        "unknown",
        {
          cause: error,
        },
      );
    }
  }

  /** Claims of the best priority not below `from`. `next`: where a further one may have something. */
  async #claimPriority(
    request: ClaimRequest,
    from: number,
  ): Promise<{ readonly owned: OwnedItem[]; readonly next: number | null }> {
    const { lane, kinds, limit, worker, token, leaseMs } = request;
    const text = kinds.length === 1 ? this.#sql.claimFairlyOneKind : this.#sql.claimFairlyKinds;
    const turns = JSON.stringify(this.#turns.of(lane));
    const params = [lane, JSON.stringify(kinds), limit, worker, token, leaseMs, turns, from];
    const rows = await this.#db.system(text, params);
    const claimed = rows.filter((row) => row.id !== null);
    const last = claimed.reduce<Row | null>((a, b) => Number(b.turn ?? 0) > Number(a?.turn ?? 0) ? b : a, null);
    const level = Number(rows[0]?.level);
    if (last !== null) this.#turns.served(lane, level, String(last.org_id));
    return {
      owned: claimed.map((row) => ({ orgId: String(row.org_id), item: toClaimed(row, request) })),
      next: rows[0]?.more === true ? level + 1 : null,
    };
  }
}
