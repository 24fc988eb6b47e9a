/**
 * Checks what one storage call did to the rows against the rules of work, written down here a second time: which row may
 * go where, under which token, and what an attempt costs.
 *
 * @module
 */
import type { ClaimRef, ClaimRequest, Settlement, WriteOutcome } from "../../src/work/storage.ts";
import { type Change, type ItemRow, keyOf } from "./history.ts";
import type { SimCall, Truth } from "./truth.ts";
import { Violation } from "./trace.ts";

type ItemChange = Extract<Change, { table: "item" }>;

/** What a checker looks at: a call that took effect, and what came of it. */
export interface Effect {
  readonly call: SimCall;
  readonly changes: readonly Change[];
  /** What the storage answered. */
  readonly answer: unknown;
  /** Database time, whole milliseconds. */
  readonly nowMs: number;
}

/** Throws unless `condition` holds. */
export function must(condition: boolean, checker: string, message: () => string): asserts condition {
  if (!condition) throw new Violation(checker, message());
}

/** Judges the items' part of an effect. */
export function checkItems(effect: Effect, truth: Truth): void {
  const items = effect.changes.filter((change) => change.table === "item");
  for (const { after } of items) if (after !== null) checkRow(after, truth);
  const check = CHECKS[effect.call.method];
  if (check !== undefined) return check(effect, items, truth);
  must(items.length === 0, "no write", () => `${effect.call.method} changed ${items.length} items and may change none`);
}

type Check = (effect: Effect, items: readonly ItemChange[], truth: Truth) => void;

const CHECKS: Readonly<Record<string, Check>> = {
  createItems: checkCreated,
  claim: checkClaimed,
  settle: checkSettled,
  extendLeases: checkRenewed,
  requeueStale: checkRequeued,
  failStaleOf: checkStaleOfEnded,
  failOrphaned: checkOrphaned,
  promote: checkPromoted,
  purgeItems: checkPurged,
  clearAudit: checkCleared,
};

/** What holds of every row at every moment. */
function checkRow(row: ItemRow, truth: Truth): void {
  const name = truth.name(row);
  const held = row.status === "claimed";
  must(row.attempts >= 0, "attempts", () => `${name} has ${row.attempts} attempts`);
  must(row.attempts <= row.max_attempts, "attempts", () => `${name} has more attempts than ${row.max_attempts}`);
  must(row.attempts <= row.claims, "attempts", () => `${name} has more attempts than claims`);
  must(
    held === (row.lease_expires_at !== null) && held === (row.claimed_by !== null),
    "claim fields",
    () => `${name} is ${row.status} with holder ${row.claimed_by} and lease ${row.lease_expires_at}`,
  );
  must(!held || row.claim_token !== null, "claim fields", () => `${name} is claimed without a token`);
  must(
    row.status !== "queued" || row.claim_token === null,
    "claim fields",
    () => `${name} is queued and still carries a token`,
  );
}

function checkCreated({ call, answer, nowMs }: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [orgId, inserts] = call.args as [string, readonly { item: { id: string } }[]];
  const inserted = (answer as readonly string[]).filter((outcome) => outcome === "INSERTED").length;
  must(items.length === inserted, "create", () => `told ${inserted} inserts and made ${items.length}`);
  for (const { before, after } of items) {
    must(before === null && after !== null, "create", () => "an insert changed a row that was there");
    truth.made(after);
    const asked = inserts.some(({ item }) => item.id === after.id);
    must(asked && after.org_id === orgId, "isolation", () => `${truth.name(after)} was made for another org`);
    must(
      after.status === "queued" && after.attempts === 0 && after.claims === 0 && after.claim_token === null,
      "create",
      () => `${truth.name(after)} was made as ${after.status}`,
    );
    must(
      after.ready === 0 || after.available_at <= nowMs,
      "create",
      () => `${truth.name(after)} is ready before its time`,
    );
  }
}

function checkClaimed({ call, answer, nowMs }: Effect, items: readonly ItemChange[], truth: Truth): void {
  const request = call.args[0] as ClaimRequest;
  must(items.length <= request.limit, "claim", () => `${items.length} claimed, ${request.limit} asked for`);
  const told = new Set((answer as { orgId: string; item: { id: string } }[]).map((r) => keyOf(r.orgId, r.item.id)));
  for (const { before, after } of items) {
    must(before !== null && after !== null, "claim", () => "a claim made or deleted a row");
    const name = truth.name(after);
    must(before.status === "queued", "claim", () => `${name} was ${before.status} when it was claimed`);
    must(before.available_at <= nowMs, "claim", () => `${name} was claimed before its time`);
    must(after.status === "claimed", "claim", () => `${name} is ${after.status} after its claim`);
    must(after.claim_token === request.token, "claim token", () => `${name} carries another token than its claim's`);
    must(after.lease_expires_at === nowMs + request.leaseMs, "lease", () => `${name} has another lease than asked for`);
    must(after.attempts === before.attempts + 1, "attempts", () => `${name} was claimed and not charged one attempt`);
    must(after.claims === before.claims + 1, "attempts", () => `${name} was claimed and its claims are not one more`);
    must(
      before.lane === request.lane && request.kinds.includes(before.kind),
      "claim",
      () => `${name} is of another lane or kind than asked for`,
    );
    must(told.has(keyOf(after.org_id, after.id)), "claim", () => `${name} was claimed and not told of`);
  }
  must(told.size === items.length, "claim", () => `${told.size} rows told of, ${items.length} claimed`);
  truth.minted(request.token, call);
  checkClaimOrder(request, items, { nowMs, truth });
}

/** Nothing that is due is passed over for what comes behind it. */
function checkClaimOrder(
  request: ClaimRequest,
  items: readonly ItemChange[],
  { nowMs, truth }: { readonly nowMs: number; readonly truth: Truth },
): void {
  const waiting = [...truth.history.items.values()].filter((row) =>
    row.status === "queued" && row.ready === 1 && row.available_at <= nowMs && row.lane === request.lane &&
    request.kinds.includes(row.kind)
  );
  if (waiting.length === 0) return;
  must(items.length === request.limit, "claim", () => `${waiting.length} due items left, ${items.length} claimed`);
  const first = waiting.reduce((a, b) => byClaimOrder(a, b) < 0 ? a : b);
  for (const { before } of items) {
    if (before !== null && byClaimOrder(before, first) > 0) {
      must(false, "claim order", () => `${truth.name(before)} was claimed before ${truth.name(first)}`);
    }
  }
}

function byClaimOrder(a: ItemRow, b: ItemRow): number {
  return a.priority - b.priority || a.available_at - b.available_at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

function isHeld(row: ItemRow | null | undefined, ref: ClaimRef, nowMs: number): boolean {
  return row !== null && row !== undefined && row.status === "claimed" && row.claim_token === ref.token &&
    row.lease_expires_at !== null && row.lease_expires_at > nowMs;
}

/** Goes through guarded writes one by one, each against the row as it stood when its turn came. */
function checkGuarded<R extends ClaimRef>(
  effect: Effect,
  { refs, items, truth }: { refs: readonly R[]; items: readonly ItemChange[]; truth: Truth },
  judge: (ref: R, before: ItemRow, after: ItemRow | null) => void,
): void {
  const answer = effect.answer as readonly WriteOutcome[];
  const left = [...items];
  const seen = new Set<string>();
  must(answer.length === refs.length, "outcomes", () => "a guarded write has not one outcome a row");
  refs.forEach((ref, i) => {
    const key = keyOf(ref.orgId, ref.id);
    const at = left.findIndex(({ before }) => before !== null && keyOf(before.org_id, before.id) === key);
    const change = answer[i] === "WRITTEN" ? left.splice(at, at < 0 ? 0 : 1)[0] : undefined;
    const now = truth.history.items.get(key);
    const name = truth.trace.name("item", ref.id);
    const how = `${effect.call.method} of ${name} under ${truth.trace.name("token", ref.token)}`;
    if (answer[i] === "WRITTEN") {
      must(
        change !== undefined && change.before !== null,
        "write",
        () => `${how} was told written and changed nothing`,
      );
      must(isHeld(change.before, ref, effect.nowMs), "stale token", () => `${how} was accepted and is not the claim`);
      judge(ref, change.before, change.after);
    } else if (!seen.has(key)) {
      must(!isHeld(now, ref, effect.nowMs), "refusal", () => `${how} was ${answer[i]} though the claim holds`);
    }
    seen.add(key);
    if (answer[i] === "ALREADY") {
      const to = (ref as { to?: string }).to ?? "failed";
      must(
        now?.status === to && now.claim_token === ref.token,
        "already",
        () => `${how} was told ALREADY, the row is ${now?.status}`,
      );
    }
  });
  must(
    left.length === 0,
    "stale token",
    () => `${effect.call.method} changed ${left.length} rows that it says it did not`,
  );
}

function checkSettled(effect: Effect, items: readonly ItemChange[], truth: Truth): void {
  const refs = effect.call.args[0] as readonly Settlement[];
  checkGuarded(effect, { refs, items, truth }, (settlement, before, after) => {
    const name = truth.name(before);
    truth.settled(settlement, before);
    if (settlement.to === "done" && settlement.keep === false) {
      return must(after === null, "settle", () => `${name} was completed to leave no row and stays`);
    }
    must(after !== null, "settle", () => `${name} was settled and is gone`);
    const status = settlement.to === "done" || settlement.to === "failed" ? settlement.to : "queued";
    must(after.status === status, "settle", () => `${name} was settled as ${settlement.to} and is ${after.status}`);
    const charged = settlement.to === "back" ? before.attempts - 1 : before.attempts;
    must(after.attempts === charged, "attempts", () => `${name} has ${after.attempts} attempts, not ${charged}`);
    must(after.claims === before.claims, "attempts", () => `${name} was settled and its claims changed`);
    if (status !== "queued") {
      must(after.claim_token === before.claim_token, "settle", () => `${name} is ${status} and lost its token`);
    }
    if (settlement.to === "failed") {
      must(after.audit_id === settlement.auditId, "audit", () => `${name} is a dead letter without its audit id`);
    }
    if (settlement.to === "retry" || settlement.to === "back") {
      // What never ran to an end keeps its place.
      const inPlace = settlement.to === "back" && !settlement.ran && settlement.delayMs === 0;
      const at = inPlace ? before.available_at : effect.nowMs + settlement.delayMs;
      must(after.available_at === at, "delay", () => `${name} is due at ${after.available_at}, not ${at}`);
    }
    const kept = settlement.to === "failed" || (settlement.to === "back" && !settlement.ran) ? before.expiries : 0;
    must(after.expiries === kept, "expiries", () => `${name} has ${after.expiries} expiries, not ${kept}`);
  });
}

function checkRenewed(effect: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [refs, leaseMs] = effect.call.args as [readonly ClaimRef[], number];
  checkGuarded(effect, { refs, items, truth }, (_ref, before, after) => {
    const name = truth.name(before);
    must(after !== null && after.status === "claimed", "renew", () => `${name} was renewed and is not claimed`);
    must(after.lease_expires_at === effect.nowMs + leaseMs, "lease", () => `${name} has another lease than asked for`);
    must(after.attempts === before.attempts, "attempts", () => `${name} was renewed and charged`);
    must(after.claim_token === before.claim_token, "renew", () => `${name} was renewed and its token changed`);
  });
}

function checkRequeued({ call, nowMs }: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [orgId, limit, policy] = call.args as [string, number, { capMs: number }];
  for (const { before, after } of items) {
    must(before !== null && after !== null, "requeue", () => "the sweep made or deleted a row");
    const name = truth.name(before);
    must(before.org_id === orgId, "isolation", () => `${name} was requeued for another org`);
    must(before.status === "claimed", "requeue", () => `${name} was ${before.status} and was requeued`);
    must(
      (before.lease_expires_at ?? Infinity) <= nowMs,
      "live claim",
      () => `${name} was requeued while its lease holds`,
    );
    must(after.attempts === before.attempts, "attempts", () => `${name} expired and its attempts changed`);
    must(after.expiries === before.expiries + 1, "expiries", () => `${name} expired and it was not counted`);
    must(after.claim_token === null, "requeue", () => `${name} was requeued and keeps its token`);
    const exhausted = before.attempts >= before.max_attempts;
    must(
      after.status === (exhausted ? "failed" : "queued"),
      "attempts",
      () => `${name} expired at attempt ${before.attempts} of ${before.max_attempts} and is ${after.status}`,
    );
    must(!exhausted || after.audit_id !== null, "audit", () => `${name} is a dead letter without an audit id`);
    const delayMs = after.available_at - nowMs;
    const inPlace = after.available_at === before.available_at;
    const fits = before.expiries === 0 ? inPlace : delayMs >= 100 && delayMs <= policy.capMs;
    must(exhausted || fits, "delay", () => `${name} expired for time ${after.expiries} and waits ${delayMs} ms`);
    truth.expired(before);
  }
  const stale = [...truth.history.items.values()].filter((row) =>
    row.org_id === orgId && row.status === "claimed" && (row.lease_expires_at ?? Infinity) <= nowMs
  );
  must(items.length >= limit || stale.length === 0, "requeue", () => `${stale.length} expired claims were left`);
}

function checkStaleOfEnded({ call, nowMs }: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [orgIds] = call.args as [readonly string[]];
  for (const { before, after } of items) {
    must(before !== null && after !== null, "orphans", () => "orphans were made or deleted");
    const name = truth.name(before);
    const named = orgIds.includes(before.org_id) && truth.endedOrgs.has(before.org_id);
    must(named, "orphans", () => `${name} was failed as an orphan and its org lives`);
    must(before.status === "claimed", "orphans", () => `${name} was ${before.status} and was failed as an orphan`);
    must(
      (before.lease_expires_at ?? Infinity) <= nowMs,
      "live claim",
      () => `${name} was failed while its lease holds`,
    );
    must(after.status === "failed" && after.audit_id === null, "orphans", () => `${name} is ${after.status}`);
    truth.orphaned(before);
  }
}

function checkOrphaned(effect: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [refs] = effect.call.args as [readonly ClaimRef[]];
  checkGuarded(effect, { refs, items, truth }, (ref, before, after) => {
    must(truth.endedOrgs.has(ref.orgId), "orphans", () => `${truth.name(before)} was failed and its org lives`);
    must(after?.status === "failed", "orphans", () => `${truth.name(before)} is ${after?.status}`);
  });
}

function checkPromoted({ call, nowMs }: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [limit] = call.args as [number];
  for (const { before, after } of items) {
    must(before !== null && after !== null, "promote", () => "a promotion made or deleted a row");
    const same = JSON.stringify({ ...before, ready: 1 }) === JSON.stringify(after);
    must(same && before.ready === 0, "promote", () => `${truth.name(before)} was changed by its promotion`);
    must(
      before.status === "queued" && before.available_at <= nowMs,
      "promote",
      () => `${truth.name(before)} is not due`,
    );
  }
  const left = [...truth.history.items.values()].filter((row) =>
    row.status === "queued" && row.ready === 0 && row.available_at <= nowMs
  );
  must(items.length >= limit || left.length === 0, "promote", () => `${left.length} due items were left out of reach`);
}

function checkPurged({ call, nowMs }: Effect, items: readonly ItemChange[], truth: Truth): void {
  const [olderThanMs] = call.args as [number];
  for (const { before, after } of items) {
    must(before !== null && after === null, "purge", () => "a purge changed a row in place");
    const name = truth.name(before);
    must(
      before.status === "done" || before.status === "failed",
      "purge",
      () => `${name} was ${before.status} and is gone`,
    );
    must(before.audit_id === null, "purge", () => `${name} was purged before its audit entry`);
    const due = before.updated_at + truth.itemRetentionMs;
    must(olderThanMs === truth.itemRetentionMs && due <= nowMs, "purge", () => `${name} was purged before its time`);
  }
}

function checkCleared(_effect: Effect, items: readonly ItemChange[], truth: Truth): void {
  for (const { before, after } of items) {
    must(before !== null && after !== null, "audit", () => "clearing an audit id made or deleted a row");
    const entry = truth.history.others.entry.get(keyOf(before.org_id, String(before.audit_id)));
    must(entry !== undefined, "audit", () => `${truth.name(before)} was cleared before its audit entry was written`);
    const same = JSON.stringify({ ...before, audit_id: null }) === JSON.stringify(after);
    must(same, "audit", () => `${truth.name(before)} was changed beside its audit id`);
  }
}
