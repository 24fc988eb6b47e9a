/**
 * What must hold once the faults have stopped: everything ends, nothing was lost, nothing is there twice.
 *
 * @module
 */
import { EMPTY_UUID } from "../../src/core/ids.ts";
import { type ItemRow, keyOf, keyOfRow } from "./history.ts";
import { must } from "./transitions.ts";
import type { Truth } from "./truth.ts";

/** What has not ended yet; empty when all has. */
export function unfinished(truth: Truth): string[] {
  const { history, trace } = truth;
  const left: string[] = [];
  for (const row of history.items.values()) {
    if (row.status === "queued" || row.status === "claimed") {
      left.push(`${trace.name("item", row.id)} is ${row.status}, attempt ${row.attempts} of ${row.max_attempts}`);
    } else if (row.audit_id !== null) {
      left.push(`${trace.name("item", row.id)} is a dead letter without its audit entry`);
    }
  }
  for (const [key, row] of truth.outboxRows) {
    const now = history.others.outbox.get(key);
    if (now !== undefined && now.done_at === null) left.push(`outbox ${trace.name("row", String(row.id))} is pending`);
  }
  return left;
}

/** Judges a world that has come to its end. */
export function checkEnd(truth: Truth): void {
  const { history, trace } = truth;
  const left = unfinished(truth);
  must(left.length === 0, "liveness", () => `not everything has ended: ${left.slice(0, 5).join("; ")}`);
  const byKey = new Map<string, ItemRow>();
  for (const row of history.everItems.values()) {
    const key = keyOf(row.org_id, row.idempotency_key);
    const other = byKey.get(key);
    const twice = other !== undefined && truth.keyRetentionMs > 3_600_000;
    must(!twice, "one item a key", () => `${truth.name(row)} and ${trace.name("item", other?.id)} have one key`);
    byKey.set(key, row);
  }
  for (const key of truth.told.keys()) {
    must(byKey.has(key), "nothing lost", () => `an enqueue was acknowledged and its item was never there`);
  }
  checkOutboxEnd(truth);
  for (const [auditId, key] of truth.auditIds) {
    const row = history.everItems.get(key);
    const entry = row === undefined ? undefined : history.others.entry.get(keyOf(row.org_id, auditId));
    must(entry !== undefined, "audit", () => `dead letter ${trace.name("item", row?.id)} has no audit entry`);
  }
  must(
    history.others.entry.size === truth.auditIds.size,
    "audit",
    () => `${history.others.entry.size} audit entries for ${truth.auditIds.size} dead letters`,
  );
}

/** Each outbox row became one item or one event, of its own org, as it stands. */
function checkOutboxEnd(truth: Truth): void {
  const { history, trace } = truth;
  for (const [key, row] of truth.outboxRows) {
    const name = `outbox ${trace.name("row", String(row.id))}`;
    if (!String(row.kind).startsWith("work.")) {
      must(history.others.event.has(key), "outbox", () => `${name} became no event`);
      continue;
    }
    const item = history.everItems.get(key);
    must(item !== undefined && keyOfRow(item) === key, "outbox", () => `${name} became no item of its org`);
    const { lane = "default", ...payload } = JSON.parse(String(row.payload)) as Record<string, unknown>;
    must(
      item.idempotency_key === row.id && item.created_by === row.actor_id && item.request_id === row.request_id,
      "outbox",
      () => `${name} became an item of another key, actor or request`,
    );
    must(
      item.lane === lane && item.payload === JSON.stringify(payload) && item.created_by !== EMPTY_UUID,
      "outbox",
      () => `${name} became an item of another lane or payload`,
    );
  }
}
