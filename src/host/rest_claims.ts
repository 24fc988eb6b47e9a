/**
 * Claiming over REST: reads what is due by the claim's filter, then takes row after row by a write whose filter repeats every
 * guard. Whoever lost a race for a row writes none.
 *
 * @module
 */
import { eitherOf } from "../core/either.ts";
import { invariant, isInstance, UnavailableError } from "../core/errors.ts";
import { EMPTY_UUID } from "../core/ids.ts";
import type { ClaimRequest, OwnedItem } from "../work/storage.ts";
import type { DatabaseTime } from "./database_time.ts";
import { type RestClient, RestRefusal, type RestRow } from "./rest_client.ts";
import { eq, type Filter, nullOr, oneOf } from "./rest_filters.ts";
import { date, ITEM_COLUMNS, number, text, toOwned } from "./rest_rows.ts";
import type { ClaimAllowance } from "./types.ts";

/** What claims are made with. */
export interface ClaimParts {
  readonly client: RestClient;
  readonly time: DatabaseTime;
  /** Aborts when nothing is to be claimed any more. */
  readonly stop?: AbortSignal | undefined;
}

/** A row that was due when it was read. */
interface Candidate {
  readonly orgId: string;
  readonly id: string;
  readonly attempts: number;
  readonly claims: number;
  readonly priority: number;
  readonly availableAtMs: number;
  /** The same to the microsecond, as text that sorts like it among those of one millisecond. */
  readonly availableAt: string;
}

// Others may take some of what was read before its turn comes.
const SPARE = 10;
/** Orgs named in one URL: gateways take 8 KiB of it. */
const ORGS_A_CALL = 100;
const AT_ONCE = 4;
const WAITING: readonly Filter[] = [eq("status", "queued"), ["ready", "is.true"], ["available_at", "lte.now"]];

/**
 * Claims up to the allowance's limit, in order of priority, time and id.
 *
 * @throws {UnavailableError} `unknown` where something may be held: it is found by the request's token.
 */
export async function claimRows(
  request: ClaimRequest,
  allowed: ClaimAllowance,
  parts: ClaimParts,
): Promise<OwnedItem[]> {
  const due = await unlessStopped(readDue(request, allowed, parts.client), parts.stop) ?? [];
  const owned: OwnedItem[] = [];
  let failure: unknown = null;
  for (let next = 0; next < due.length && owned.length < allowed.limit && failure === null;) {
    const batch = due.slice(next, next + Math.min(AT_ONCE, allowed.limit - owned.length));
    next += batch.length;
    const told = await Promise.allSettled(batch.map((row) => take(row, { request, allowed, ...parts })));
    for (const one of told) {
      if (one.status === "rejected") failure = worse(failure, one.reason);
      else if (one.value !== null) owned.push(one.value);
    }
  }
  // What is held for sure is run; what is in doubt is looked for by its token, and with it all that is held under it.
  if (failure === null || (owned.length > 0 && !inDoubt(failure))) return owned;
  throw failure;
}

/** What `reading` brings, or null once `stop` aborts: a server that does not answer must not hold up the end. */
export async function unlessStopped<T>(reading: Promise<T>, stop: AbortSignal | undefined): Promise<T | null> {
  using either = eitherOf(stop);
  const { signal } = either;
  const stopped = new Promise<null>((resolve) => {
    if (signal.aborted) resolve(null);
    else signal.addEventListener("abort", () => resolve(null), { once: true });
  });
  return await Promise.race([reading, stopped]);
}

/** Of two failures the one that leaves more in doubt. */
function worse(a: unknown, b: unknown): unknown {
  return a === null || (inDoubt(b) && !inDoubt(a)) ? b : a;
}

function inDoubt(error: unknown): boolean {
  return !isInstance(error, UnavailableError) || error.outcome === "unknown";
}

/**
 * A read a kind, merged: with several kinds in one filter the claim's index keeps no order, and the whole backlog would be
 * read and sorted. Of a host with very many orgs a read a hundred of them.
 */
async function readDue(
  { lane, kinds }: ClaimRequest,
  allowed: ClaimAllowance,
  client: RestClient,
): Promise<Candidate[]> {
  const asked = kinds.filter((kind) => allowed.kinds.includes(kind));
  if (asked.length === 0 || allowed.orgIds.length === 0 || allowed.weights.length === 0) return [];
  const orgs = Array.from(
    { length: Math.ceil(allowed.orgIds.length / ORGS_A_CALL) },
    (_, n) => allowed.orgIds.slice(n * ORGS_A_CALL, (n + 1) * ORGS_A_CALL),
  );
  const reads = asked.flatMap((kind) => orgs.map((orgIds) => ({ kind, orgIds })));
  const read = async ({ kind, orgIds }: { readonly kind: string; readonly orgIds: readonly string[] }) => {
    const { rows } = await client.call({
      method: "GET",
      path: "/work_items",
      filters: [
        ...WAITING,
        // The same said twice: older servers use the index of what is ready for this form only.
        eq("ready", "true"),
        eq("lane", lane),
        eq("kind", kind),
        oneOf("org_id", orgIds),
        oneOf("weight", allowed.weights),
        ["priority", `gte.${allowed.priorityFloor}`],
        nullOr("host_preference", allowed.host),
        ["order", "priority.asc,available_at.asc,id.asc"],
        ["limit", String(allowed.limit + SPARE)],
        ["select", "org_id,id,attempts,claims,priority,available_at"],
      ],
    });
    return rows.map(toCandidate);
  };
  const heads: Candidate[] = [];
  for (let next = 0; next < reads.length; next += AT_ONCE) {
    heads.push(...(await Promise.all(reads.slice(next, next + AT_ONCE).map(read))).flat());
  }
  return heads.sort(inClaimOrder).slice(0, allowed.limit + SPARE);
}

function toCandidate(row: RestRow): Candidate {
  return {
    orgId: text(row, "org_id"),
    id: text(row, "id"),
    attempts: number(row, "attempts"),
    claims: number(row, "claims"),
    priority: number(row, "priority"),
    availableAtMs: date(row, "available_at").getTime(),
    availableAt: text(row, "available_at"),
  };
}

function inClaimOrder(a: Candidate, b: Candidate): number {
  const byTime = a.availableAtMs - b.availableAtMs || inOrder(a.availableAt, b.availableAt);
  return a.priority - b.priority || byTime || inOrder(a.id, b.id);
}

function inOrder(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

interface Taking extends ClaimParts {
  readonly request: ClaimRequest;
  readonly allowed: ClaimAllowance;
}

/** Takes one row; null when another claimer was first. @throws {UnavailableError} */
async function take(row: Candidate, { request, allowed, client, time }: Taking): Promise<OwnedItem | null> {
  const nowMs = time.now();
  invariant(nowMs !== null, "the database's time is known before a claim");
  const body = {
    status: "claimed",
    ready: false,
    claimed_by: request.worker,
    claim_token: request.token,
    lease_expires_at: new Date(nowMs + request.leaseMs),
    attempts: row.attempts + 1,
    claims: row.claims + 1,
    host: allowed.host,
    updated_at: "now",
    updated_by: EMPTY_UUID,
  };
  const guards = [eq("org_id", row.orgId), eq("id", row.id)];
  const filters = [
    ...guards,
    ...WAITING,
    eq("attempts", row.attempts),
    eq("claims", row.claims),
    ["select", ITEM_COLUMNS] as const,
  ];
  let doubt = new UnavailableError(`Cannot tell whether item ${row.id} was claimed`, "unknown");
  try {
    const { rows } = await client.call({ method: "PATCH", path: "/work_items", filters, body });
    const owned = noted(rows[0], time);
    if (owned !== null) return owned;
  } catch (error) {
    if (isInstance(error, RestRefusal)) throw refusedTime(error);
    if (!isInstance(error, UnavailableError) || error.outcome !== "unknown") throw error;
    doubt = error;
  }
  // No row does not say that the race was lost either: a proxy may have sent the write twice, and the second met the first.
  return await readBack(guards, request.token, client).catch(() => Promise.reject(doubt));
}

/** The row a write brought back, and the time it was written at. */
function noted(row: RestRow | undefined, time: DatabaseTime): OwnedItem | null {
  if (row === undefined) return null;
  const owned = toOwned(row);
  time.note(owned.item.updatedAt.getTime());
  return owned;
}

/** Whether a claim whose answer was lost took effect. */
async function readBack(guards: readonly Filter[], token: string, client: RestClient): Promise<OwnedItem | null> {
  const { rows: [row] } = await client.call({
    method: "GET",
    path: "/work_items",
    filters: [...guards, eq("status", "claimed"), eq("claim_token", token), ["select", ITEM_COLUMNS]],
  });
  return row === undefined ? null : toOwned(row);
}

/** The policy refuses a lease that has passed already, or is too far ahead: what is known of the database's time is old. */
export function refusedTime(error: RestRefusal): unknown {
  if (!error.byPolicy) return error;
  const text =
    "Cannot write an item as the database's row policy refuses it: its time as it was read last may be too old, " +
    "which the next heartbeat mends; else the rights of this host's key are not those of the migrations";
  return new UnavailableError(text, "not-executed", { cause: error });
}
