/**
 * Checks what one storage call did to keys, outbox rows, events and audit entries.
 *
 * @module
 */
import { keyOf, keyOfRow, type OtherRow } from "./history.ts";
import { type Effect, must } from "./transitions.ts";
import { Violation } from "./trace.ts";
import type { Truth } from "./truth.ts";

type Rows = { readonly before: OtherRow | null; readonly after: OtherRow | null };

/** Which calls may write which rows. */
const WRITERS: Readonly<Record<string, readonly string[]>> = {
  key: ["createItems", "purgeKeys"],
  outbox: ["writeRows", "markDone", "purgeDone"],
  event: ["appendEvent"],
  entry: ["createEntries"],
};

/** Judges everything of an effect but its items. */
export function checkOthers(effect: Effect, truth: Truth): void {
  for (const change of effect.changes) {
    if (change.table === "item") continue;
    const { table } = change;
    const { method } = effect.call;
    must(WRITERS[table]?.includes(method) === true, "no write", () => `${method} changed a row of ${table}`);
    if (table === "key") checkKey(change, effect, truth);
    if (table === "outbox") checkOutbox(change, effect, truth);
    if (table === "event") checkEvent(change, truth);
    if (table === "entry") checkEntry(change, truth);
  }
  if (effect.call.method === "takeSweepSteps") checkTurns(effect, truth);
}

function checkKey({ before, after }: Rows, { call, nowMs }: Effect, truth: Truth): void {
  if (before === null) return;
  must(after === null && call.method === "purgeKeys", "keys", () => `a key was changed by ${call.method}`);
  const item = truth.history.items.get(keyOf(String(before.org_id), String(before.item_id)));
  must(
    item === undefined,
    "keys",
    () => `the key of ${truth.trace.name("item", String(before.item_id))} was freed too early`,
  );
  const due = Number(before.created_at) + truth.keyRetentionMs;
  must(due <= nowMs, "keys", () => `a key was freed ${due - nowMs} ms before its time`);
}

function checkOutbox({ before, after }: Rows, { call, nowMs }: Effect, truth: Truth): void {
  if (before === null && after !== null) {
    truth.outboxRows.set(keyOfRow(after), after);
    return;
  }
  if (before === null || call.method === "purgeDone") {
    return must(
      after === null && before?.done_at !== null,
      "outbox",
      () => "an outbox row was purged before it was done",
    );
  }
  must(after !== null && before.done_at === null, "outbox", () => "an outbox row was marked twice");
  must(after.done_at === nowMs, "outbox", () => "an outbox row was not marked with database time");
  const key = keyOfRow(before);
  const work = String(before.kind).startsWith("work.");
  const arrived = work ? truth.history.everItems.has(key) : truth.history.others.event.has(key);
  const name = truth.trace.name("row", String(before.id));
  must(arrived, "outbox", () => `outbox ${name} was marked done before it arrived`);
}

function checkEvent({ before, after }: Rows, truth: Truth): void {
  must(before === null && after !== null, "events", () => "an event was changed or deleted");
  const row = truth.outboxRows.get(keyOfRow(after));
  const known = row !== undefined && row.kind === after.kind && row.actor_id === after.actor_id;
  must(known, "outbox", () => `event ${after.kind} stands for no outbox row of its org`);
  const seqs = [...truth.history.others.event.values()].filter((event) => event.org_id === after.org_id).length;
  must(after.seq === seqs, "events", () => `an event has place ${after.seq} and is number ${seqs}`);
}

function checkEntry({ before, after }: Rows, truth: Truth): void {
  must(before === null && after !== null, "audit", () => "an audit entry was changed or deleted");
  const item = truth.auditIds.get(String(after.id));
  must(
    item === keyOf(String(after.org_id), String(after.subject_id)),
    "audit",
    () => `an audit entry stands under an id that no dead letter minted`,
  );
}

/** Each turn goes to one caller an interval. */
function checkTurns({ call, answer, nowMs }: Effect, truth: Truth): void {
  const [steps, intervalMs] = call.args as [readonly string[], number];
  for (const step of answer as readonly string[]) {
    must(steps.includes(step), "turns", () => `a turn nobody asked for was given: ${step}`);
    const lastMs = truth.turns.get(step) ?? -Infinity;
    if (nowMs - lastMs < intervalMs) {
      throw new Violation(
        "turns",
        `step ${step} was taken twice within ${nowMs - lastMs} ms, its interval is ${intervalMs}`,
      );
    }
    truth.turns.set(step, nowMs);
  }
}
