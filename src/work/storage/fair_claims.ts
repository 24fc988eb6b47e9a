/**
 * Fair claims on Postgres: a statement a priority, until there is enough. Old snapshots are not stepped over
 * (`claim_floors.ts`): behind one each org's finished items are read again by its turn.
 *
 * @module
 */
import { UnavailableError } from "../../core/errors.ts";
import type { Database } from "../../db/database.ts";
import type { ClaimRequest, OwnedItem } from "../storage.ts";
import type { ClaimPlaces } from "./claim_places.ts";
import { FairTurns } from "./fair_turns.ts";
import { type ClaimedRow, placeOf, toClaimed } from "./postgres_rows.ts";
import type { WorkSql } from "./sql.ts";

/** What is left after so many is claimed in the order of priorities and times alone: in one statement. */
const MAX_PRIORITIES = 4;

/** What fair claims share with the storage they are part of. */
export interface FairParts {
  readonly sql: WorkSql;
  readonly places: ClaimPlaces;
  /** The claim in the other order. */
  readonly claimDue: (request: ClaimRequest) => Promise<OwnedItem[]>;
}

/** Why a claim of several statements failed when some of them had claimed: as one whose answer was lost. */
export function brokeOff(cause: unknown): UnavailableError {
  const text = "Cannot tell what a claim holds as it broke off midway: look by its token";
  return new UnavailableError(text, "unknown", { cause });
}

/** Claims that take turns of orgs. */
export class FairClaims {
  readonly #db: Database;
  readonly #parts: FairParts;
  readonly #turns = new FairTurns();

  constructor(db: Database, parts: FairParts) {
    this.#db = db;
    this.#parts = parts;
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
        if (n === MAX_PRIORITIES) return owned.concat(await this.#parts.claimDue(left));
        const found = await this.#claimPriority(left, from);
        owned.push(...found.owned);
        from = found.next;
      }
      return owned;
    } catch (error) {
      throw owned.length === 0 ? error : brokeOff(error);
    }
  }

  /** Claims of the best priority not below `from`. `next`: where a further one may have something. */
  async #claimPriority(
    request: ClaimRequest,
    from: number,
  ): Promise<{ readonly owned: OwnedItem[]; readonly next: number | null }> {
    const { lane, kinds, limit, worker, token, leaseMs } = request;
    const text = kinds.length === 1 ? this.#parts.sql.claimFairlyOneKind : this.#parts.sql.claimFairlyKinds;
    const turns = JSON.stringify(this.#turns.of(lane));
    const params = [lane, JSON.stringify(kinds), limit, worker, token, leaseMs, turns, from];
    const rows = (await this.#db.system(text, params, { asValues: true })) as unknown as FairRow[];
    const stamped = rows.filter(isClaimed);
    this.#parts.places.remember(token, stamped.map(placeOf));
    const claimed = stamped.map((row) => ({ turn: turnOf(row), owned: toClaimed(row, request) }));
    const [, level, more] = rows[0]?.slice(-TOLD) ?? [];
    const lastTurn = Math.max(0, ...claimed.map(({ turn }) => turn));
    const last = claimed.find(({ turn }) => turn > 0 && turn === lastTurn);
    if (last !== undefined) this.#turns.served(lane, Number(level), last.owned.orgId);
    return { owned: claimed.map(({ owned }) => owned), next: more === true ? Number(level) + 1 : null };
  }
}

/** A claimed row, or one of nulls alone; behind it what the statement tells of its work: turn, priority, more. */
type FairRow = readonly unknown[];
const TOLD = 3;

function isClaimed(row: FairRow): row is ClaimedRow {
  return row[0] !== null;
}

/** Which org's share it is of, in the order of turns from 1; 0 of what filled up. */
function turnOf(row: FairRow): number {
  return Number(row[row.length - TOLD] ?? 0);
}
