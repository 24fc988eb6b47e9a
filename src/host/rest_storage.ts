/**
 * Work items over REST, as far as a host may: it claims, renews and settles under the fences of every worker. Whatever keeps
 * the house is left to workers with a database.
 *
 * @module
 */
import { type LanewayError, UnavailableError, ValidationError } from "../core/errors.ts";
import type {
  ClaimRef,
  ClaimRequest,
  ClaimState,
  OwnedItem,
  Promotion,
  Settlement,
  WorkStorage,
  WriteOutcome,
} from "../work/storage.ts";
import type { WorkStatus } from "../work/types.ts";
import type { DatabaseTime } from "./database_time.ts";
import { claimRows, refusedTime, unlessStopped } from "./rest_claims.ts";
import { type RestClient, RestRefusal } from "./rest_client.ts";
import { anyOf, eq, type Filter } from "./rest_filters.ts";
import { date, ITEM_COLUMNS, text, toOwned } from "./rest_rows.ts";
import { settleOne, signed } from "./rest_settlements.ts";
import type { ClaimAllowance, ClaimRefusal } from "./types.ts";

/** What is asked before each claim, and after it. */
export interface ClaimGate {
  /** What may be claimed now. @throws {UnavailableError} That cannot be known: nothing may. */
  allow(limit: number): ClaimAllowance | ClaimRefusal | Promise<ClaimAllowance | ClaimRefusal>;
  /** How many of what was claimed just now are above the host's cap: they are handed back, the last first. Never throws. */
  excess?(claimed: number): Promise<number>;
  /** Told when items were settled: there may be room under the cap again. Never throws. */
  settled?(): void;
}

/** What it is made of. */
export interface RestWorkStorageOptions {
  readonly client: RestClient;
  readonly gate: ClaimGate;
  /** The database's time as heartbeats and writes tell it. */
  readonly time: DatabaseTime;
  /** Aborts when nothing is to be claimed any more: a claim that has only read by then brings nothing. */
  readonly stop?: AbortSignal | undefined;
}

/** Settlements on their way at once. */
const AT_ONCE = 8;
/** Rows named in one URL. */
const ROWS_A_CALL = 30;
/** Settlements remembered that were written though their batch failed. */
const MAX_REMEMBERED = 1_000;

/** `WorkStorage` over PostgREST. */
export class RestWorkStorage implements WorkStorage {
  readonly engine = "postgres";
  readonly #o: RestWorkStorageOptions;
  readonly #written = new Map<string, WriteOutcome>();

  constructor(options: RestWorkStorageOptions) {
    this.#o = options;
  }

  async claim(request: ClaimRequest): Promise<OwnedItem[]> {
    const allowed = await unlessStopped(Promise.resolve(this.#o.gate.allow(request.limit)), this.#o.stop);
    if (allowed === null || !("limit" in allowed)) return [];
    if (this.#o.time.now() === null) {
      throw new UnavailableError("Cannot claim before a heartbeat told the database's time", "not-executed");
    }
    const owned = await claimRows(request, allowed, this.#o);
    const over = await this.#o.gate.excess?.(owned.length) ?? 0;
    return over > 0 ? await this.#handBack(owned, over) : owned;
  }

  async readClaimed(token: string): Promise<OwnedItem[]> {
    const held = [eq("status", "claimed"), eq("claim_token", token)];
    const { rows } = await this.#get([...held, ["order", "priority,available_at,id"], ["select", "org_id,id"]]);
    // One by one, as each payload may be as large as an answer.
    const all = await inTurns(rows, async (row) => {
      const filters = [...held, eq("org_id", text(row, "org_id")), eq("id", text(row, "id"))];
      return (await this.#get([...filters, ["select", ITEM_COLUMNS]])).rows.map(toOwned);
    });
    return all.flat();
  }

  /** One write an item. When one fails the others' outcomes are kept for the repeat, which must not meet itself. */
  async settle(settlements: readonly Settlement[]): Promise<WriteOutcome[]> {
    const told = await inTurns(settlements, (settlement) => this.#settleQuietly(settlement));
    this.#o.gate.settled?.();
    const failures = told.flatMap((one) => "error" in one ? [one.error] : []);
    if (failures.length === 0) return told.map((one) => "error" in one ? "REFUSED" : one.outcome);
    settlements.forEach((settlement, n) => {
      const one = told[n];
      if (one !== undefined && !("error" in one) && one.outcome === "WRITTEN") this.#remember(settlement, one.outcome);
    });
    throw failures.find((error) => error instanceof UnavailableError) ?? failures[0];
  }

  async extendLeases(refs: readonly ClaimRef[], leaseMs: number): Promise<WriteOutcome[]> {
    const chunks = chunksOf(refs);
    const renewed = new Set((await inTurns(chunks, (chunk) => this.#extend(chunk, leaseMs))).flat());
    return refs.map((ref) => renewed.has(keyOf(ref)) ? "WRITTEN" : "REFUSED");
  }

  async readClaims(refs: readonly { orgId: string; id: string }[]): Promise<ClaimState[]> {
    const all = await inTurns(chunksOf(refs), async (chunk): Promise<ClaimState[]> => {
      const these = anyOf(chunk.map(({ orgId, id }) => ({ org_id: orgId, id })));
      const select: Filter = ["select", "org_id,id,status,claim_token"];
      // Whether a lease lives is for the database's clock to say.
      const [{ rows }, live] = await Promise.all([
        this.#get([these, select]),
        this.#get([these, ["lease_expires_at", "gt.now"], select]),
      ]);
      const alive = new Set(live.rows.map((row) => `${row.id} ${row.claim_token}`));
      return rows.map((row) => ({
        orgId: text(row, "org_id"),
        id: text(row, "id"),
        status: text(row, "status") as WorkStatus,
        token: row.claim_token === null ? null : text(row, "claim_token"),
        leaseLive: alive.has(`${row.id} ${row.claim_token}`),
      }));
    });
    return all.flat();
  }

  /** Items become due by the sweep of workers with a database. */
  promote(_limit: number): Promise<Promotion> {
    return Promise.resolve({ promoted: 0, nextDueInMs: null });
  }

  createItems = notHere("create items");
  createItemIn = notHere("create items");
  readItem = notHere("read items");
  readItemByKey = notHere("read items");
  failOrphaned = notHere("fail items of ended orgs");
  requeueStale = notHere("take back expired claims");
  orgsWithStale = notHere("take back expired claims");
  failStaleOf = notHere("fail items of ended orgs");
  readUnaudited = notHere("write audit entries");
  clearAudit = notHere("write audit entries");
  purgeItems = notHere("purge");
  purgeKeys = notHere("purge");
  purgeAttempts = notHere("purge");
  archiveDone = notHere("archive");
  hostOrgs = notHere("change hosts");
  dropHostOrgs = notHere("change hosts");
  readHosts = notHere("read other hosts");
  readGauges = notHere("read the queue's gauges");
  takeSweepSteps = notHere("sweep");

  #get(filters: readonly Filter[]) {
    return this.#o.client.call({ method: "GET", path: "/work_items", filters });
  }

  async #extend(refs: readonly ClaimRef[], leaseMs: number): Promise<string[]> {
    const { client, time } = this.#o;
    const nowMs = time.now();
    if (nowMs === null) {
      throw new UnavailableError("Cannot renew before a heartbeat told the database's time", "not-executed");
    }
    const these = anyOf(refs.map(({ orgId, id, token }) => ({ org_id: orgId, id, claim_token: token })));
    const held: Filter[] = [these, eq("status", "claimed"), ["lease_expires_at", "gt.now"]];
    try {
      const { rows } = await client.call({
        method: "PATCH",
        path: "/work_items",
        filters: [...held, ["select", "org_id,id,claim_token,updated_at"]],
        body: signed({ lease_expires_at: new Date(nowMs + leaseMs) }),
        repeatable: true,
      });
      if (rows[0] !== undefined) time.note(date(rows[0], "updated_at").getTime());
      return rows.map((row) =>
        keyOf({ orgId: text(row, "org_id"), id: text(row, "id"), token: text(row, "claim_token") })
      );
    } catch (error) {
      throw error instanceof RestRefusal ? refusedTime(error) : error;
    }
  }

  async #settleQuietly(settlement: Settlement): Promise<{ outcome: WriteOutcome } | { error: unknown }> {
    const key = keyOf(settlement);
    const before = this.#written.get(key);
    this.#written.delete(key);
    if (before !== undefined) return { outcome: before };
    try {
      return { outcome: await settleOne(settlement, this.#o) };
    } catch (error) {
      return { error };
    }
  }

  #remember(ref: ClaimRef, outcome: WriteOutcome): void {
    this.#written.set(keyOf(ref), outcome);
    const oldest = this.#written.size > MAX_REMEMBERED ? this.#written.keys().next().value : undefined;
    if (oldest !== undefined) this.#written.delete(oldest);
  }

  /** What cannot be handed back stays held, and is run. */
  async #handBack(owned: readonly OwnedItem[], over: number): Promise<OwnedItem[]> {
    const keep = owned.slice(0, owned.length - over);
    const told = await inTurns(owned.slice(keep.length), async (one) => {
      const token = one.item.claimToken ?? "";
      const ref = { orgId: one.orgId, id: one.item.id, token };
      const note = "handed back: the host had as many items as its window allows";
      const back = await this.#settleQuietly({ ...ref, to: "back", delayMs: 0, note, ran: false });
      return "error" in back ? [one] : [];
    });
    return [...keep, ...told.flat()];
  }
}

function keyOf({ orgId, id, token }: ClaimRef): string {
  return `${orgId} ${id} ${token}`;
}

function chunksOf<T>(all: readonly T[]): T[][] {
  const count = Math.ceil(all.length / ROWS_A_CALL);
  return Array.from({ length: count }, (_, n) => all.slice(n * ROWS_A_CALL, (n + 1) * ROWS_A_CALL));
}

/** Runs over all, a few at once, in order; rejects with the first failure once none is on its way any more. */
async function inTurns<T, R>(all: readonly T[], run: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let next = 0; next < all.length; next += AT_ONCE) {
    const told = await Promise.allSettled(all.slice(next, next + AT_ONCE).map(run));
    for (const one of told) {
      if (one.status === "rejected") throw one.reason;
      results.push(one.value);
    }
  }
  return results;
}

function notHere(what: string): (...args: readonly unknown[]) => Promise<never> {
  return () => Promise.reject<never>(hostOnly(what));
}

function hostOnly(what: string): LanewayError {
  return new ValidationError("operation", `Cannot ${what} on a host runner: that is for workers with a database`);
}
