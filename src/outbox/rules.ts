/**
 * The pure rules of the outbox: what a kind may be, and what a row becomes.
 *
 * @module
 */
import { ValidationError } from "../core/errors.ts";
import type { OutboxRow } from "./types.ts";

/** What a row's kind begins with when it becomes a work item. */
export const WORK_PREFIX = "work.";

/** The largest payload of a row, bytes of encoded JSON: as large as an item's may be by default. */
export const MAX_OUTBOX_BYTES = 262_144;

const WORK_KIND = /^work\.[a-z][a-z0-9_]{0,62}$/;
const ENTITY_KIND = /^[a-z][a-z0-9_]{0,62}\.[a-z][a-z0-9_]{0,62}\.[a-z][a-z0-9_]{0,62}$/;

/** Whether a row becomes a work item. */
export function isWork(row: OutboxRow): boolean {
  return row.kind.startsWith(WORK_PREFIX);
}

/**
 * Checks the kind of a row to be written.
 *
 * @throws {ValidationError} Neither `work.<kind>` nor `<room>.<entity>.<what>`, in lower snake case.
 */
export function checkKind(kind: string): string {
  const form = kind.startsWith(WORK_PREFIX) ? WORK_KIND : ENTITY_KIND;
  if (form.test(kind)) return kind;
  throw new ValidationError(
    "kind",
    `Cannot use outbox kind "${kind}": write work.<kind> or <room>.<entity>.<what> in lower snake case`,
  );
}

/** The entity a change names: `shipments.shipment.created` with an `id` gives `shipment` and that id; else null. */
export function changedEntity(row: OutboxRow): { readonly entity: string; readonly entityId: string } | null {
  const entity = row.kind.split(".")[1];
  const entityId = row.payload.id;
  return entity === undefined || typeof entityId !== "string" ? null : { entity, entityId };
}

/** Whether a pending row is older than the keys are kept: relaying it could run finished work a second time. */
export function isTooOld(ageSeconds: number, keyRetentionMs: number): boolean {
  return ageSeconds * 1_000 > keyRetentionMs;
}
