/**
 * Settling over REST: one guarded write an item, and reading back what became of it where that is in doubt.
 *
 * @module
 */
import { isInstance, UnavailableError } from "../core/errors.ts";
import { EMPTY_UUID } from "../core/ids.ts";
import type { ClaimRef, Settlement, WriteOutcome } from "../work/storage.ts";
import { refusedTime } from "./rest_claims.ts";
import type { DatabaseTime } from "./database_time.ts";
import { type RestClient, RestRefusal, type RestRow } from "./rest_client.ts";
import { eq, type Filter } from "./rest_filters.ts";
import { date, number } from "./rest_rows.ts";

/** What settlements are made with. */
export interface SettleParts {
  readonly client: RestClient;
  readonly time: DatabaseTime;
}

/** A write's columns. */
type Body = Readonly<Record<string, unknown>>;

const MAX_TRIES = 3;

/** The fence: no write after a claim is without it. */
function fence({ orgId, id, token }: ClaimRef): Filter[] {
  return [
    eq("org_id", orgId),
    eq("id", id),
    eq("status", "claimed"),
    eq("claim_token", token),
    ["lease_expires_at", "gt.now"],
  ];
}

/** What every write after a claim says. */
export function signed(body: Body): Body {
  return { ...body, updated_at: "now", updated_by: EMPTY_UUID };
}

/**
 * Settles one claim.
 *
 * @throws {UnavailableError} As `WorkStorage.settle`.
 */
export async function settleOne(settlement: Settlement, parts: SettleParts): Promise<WriteOutcome> {
  const body = await bodyOf(settlement, parts);
  if (body === null) return "REFUSED";
  for (let tries = 1;; tries++) {
    const wrote = await write(settlement, body, parts);
    if (wrote === "WRITTEN") return wrote;
    const met = await readBack(settlement, body, parts).catch((error) => {
      if (wrote === "REFUSED" || !isInstance(error, UnavailableError)) throw error;
      // What was asked in vain is only what became of the write.
      throw new UnavailableError(error.message, "unknown", { cause: error });
    });
    // Still held, so the write whose answer was lost did not take effect.
    if (met !== "HELD") return met;
    if (wrote === "REFUSED") return wrote;
    if (tries === MAX_TRIES) {
      throw new UnavailableError(`Cannot settle item ${settlement.id}: no answer to ${tries} writes`, "unknown");
    }
  }
}

async function write(ref: ClaimRef, body: Body, { client, time }: SettleParts): Promise<WriteOutcome | "UNSURE"> {
  try {
    const filters = [...fence(ref), ["select", "id,updated_at"] as const];
    const { rows: [row], unsure } = await client.call({ method: "PATCH", path: "/work_items", filters, body });
    if (row === undefined) return unsure ? "UNSURE" : "REFUSED";
    time.note(date(row, "updated_at").getTime());
    return "WRITTEN";
  } catch (error) {
    if (isInstance(error, RestRefusal)) throw refusedTime(error);
    if (isInstance(error, UnavailableError) && error.outcome === "unknown") return "UNSURE";
    throw error;
  }
}

/** The columns to write; null when the claim is not held any more. */
async function bodyOf(settlement: Settlement, parts: SettleParts): Promise<Body | null> {
  switch (settlement.to) {
    case "done":
      return signed({ status: "done", lease_expires_at: null, claimed_by: null });
    case "failed": {
      const { error, auditId } = settlement;
      return signed({
        status: "failed",
        lease_expires_at: null,
        claimed_by: null,
        audit_id: auditId,
        last_error: error,
      });
    }
    case "retry":
      return signed({ ...waiting(settlement.delayMs, parts), expiries: 0, last_error: settlement.error });
    case "back": {
      const { note, ran, delayMs } = settlement;
      // While the claim is held nobody else changes its attempts.
      const [row] = await readRow(settlement, parts.client);
      if (row === undefined) return null;
      return signed({
        ...waiting(delayMs, parts),
        attempts: number(row, "attempts") - 1,
        ...(ran ? { expiries: 0 } : {}),
        ...(note === null ? {} : { note }),
      });
    }
  }
}

function waiting(delayMs: number, { time }: SettleParts): Body {
  const nowMs = time.now();
  if (nowMs === null) {
    throw new UnavailableError("Cannot hand an item back before a heartbeat told the database's time", "not-executed");
  }
  return {
    status: "queued",
    ready: delayMs <= 0,
    available_at: new Date(nowMs + Math.max(delayMs, 0)).toISOString(),
    claimed_by: null,
    claim_token: null,
    lease_expires_at: null,
  };
}

async function readRow(
  { orgId, id }: { readonly orgId: string; readonly id: string },
  client: RestClient,
): Promise<readonly RestRow[]> {
  const select = "status,claim_token,attempts,available_at,updated_at";
  const filters: Filter[] = [eq("org_id", orgId), eq("id", id), ["select", select]];
  return (await client.call({ method: "GET", path: "/work_items", filters })).rows;
}

/**
 * What became of an item that a write did not find, or of which no answer came. Finished under this claim it is, in whatever
 * way: a command may have done so itself. A row that is gone was archived long after, or is another's.
 */
async function readBack(
  settlement: Settlement,
  body: Body,
  { client }: SettleParts,
): Promise<Exclude<WriteOutcome, "WRITTEN"> | "WRITTEN" | "HELD"> {
  const [row] = await readRow(settlement, client);
  if (row === undefined) return "REFUSED";
  const ours = row.claim_token === settlement.token;
  if (ours && (row.status === "done" || row.status === "failed")) return "ALREADY";
  if (ours && row.status === "claimed") return "HELD";
  const waits = row.status === "queued" && body.status === "queued" && row.claim_token === null;
  return waits && date(row, "available_at").getTime() === Date.parse(String(body.available_at)) ? "WRITTEN" : "REFUSED";
}
