/**
 * Reads items from the rows of `sqlite_sql.ts`.
 *
 * @module
 */
import type { SqliteParam } from "../../db/sqlite.ts";
import type { OwnedItem } from "../storage.ts";
import type { WorkStatus } from "../types.ts";

/** A row's values in the order of `ITEM_COLUMNS` in `sqlite_sql.ts`. */
type ItemValues = [
  orgId: string,
  id: string,
  createdAt: number,
  updatedAt: number,
  createdBy: string,
  updatedBy: string,
  kind: string,
  targetId: string | null,
  idempotencyKey: string,
  payload: string,
  lane: string,
  status: WorkStatus,
  priority: number,
  weight: string,
  hostPreference: string | null,
  availableAt: number,
  claimedBy: string | null,
  claimToken: string | null,
  leaseExpiresAt: number | null,
  attempts: number,
  maxAttempts: number,
  claims: number,
  expiries: number,
  lastError: string | null,
  note: string | null,
  auditId: string | null,
  requestId: string | null,
  traceparent: string | null,
];

/** The item of a row, with its org beside it. */
export function toOwned(row: SqliteParam[]): OwnedItem {
  const v = row as ItemValues;
  return {
    orgId: v[0],
    item: {
      id: v[1],
      createdAt: new Date(v[2]),
      updatedAt: new Date(v[3]),
      createdBy: v[4],
      updatedBy: v[5],
      kind: v[6],
      targetId: v[7],
      idempotencyKey: v[8],
      payload: JSON.parse(v[9]),
      lane: v[10],
      status: v[11],
      priority: v[12],
      weight: v[13],
      hostPreference: v[14],
      availableAt: new Date(v[15]),
      claimedBy: v[16],
      claimToken: v[17],
      leaseExpiresAt: v[18] === null ? null : new Date(v[18]),
      attempts: v[19],
      maxAttempts: v[20],
      claims: v[21],
      expiries: v[22],
      lastError: v[23],
      note: v[24],
      auditId: v[25],
      requestId: v[26],
      traceparent: v[27],
    },
  };
}
