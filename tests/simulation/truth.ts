/**
 * What is known of a world apart from the product: who claimed what under which token, whose orgs have ended, and whether
 * an expired claim has anything that explains it.
 *
 * @module
 */
import type { Settlement } from "../../src/work/storage.ts";
import { type History, type ItemRow, keyOf, type OtherRow } from "./history.ts";
import type { SimProcess } from "./process.ts";
import type { RunRecord } from "./runs.ts";
import { type Trace, Violation } from "./trace.ts";

/** What becomes of a call on its way. */
export type Fate =
  /** Takes effect and is answered. */
  | "ok"
  /** Never takes effect, and says so. */
  | "refused"
  /** Takes effect; the answer is lost, which is soon noticed. */
  | "lost"
  /** Takes effect; nothing is heard until the connection breaks. */
  | "hung"
  /** Takes effect and is answered late. */
  | "late"
  /** Stuck on its way: takes effect late, and is answered then. */
  | "slow"
  /** Given up on, and takes effect afterwards. */
  | "delayed"
  /** Never takes effect, and nobody can tell. */
  | "vanished";

/** One call of a storage by one process. */
export interface SimCall {
  readonly process: SimProcess;
  readonly room: string;
  readonly method: string;
  readonly args: readonly unknown[];
  readonly fate: Fate;
  /** The caller's clocks when it was sent. */
  readonly sent: Marks;
  /** World time when it took effect; null when it did not. */
  executedMs: number | null;
}

/** A moment on a process's own clocks. */
export interface Marks {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** A claim by its token. */
export interface TokenRecord {
  readonly call: SimCall;
  readonly executedMs: number;
  /** When its rows reached whoever claimed them, on its own monotonic clock. */
  deliveredMs: number | null;
  /** When the last renewal that is known to have succeeded was sent, by item (its org and id). */
  readonly renewed: Map<string, Marks>;
  /** Items whose settlement was asked for. */
  readonly settled: Set<string>;
  /** Items that its holder did anything for. */
  readonly touched: Set<string>;
}

/** Collects. */
export class Truth {
  readonly history: History;
  readonly trace: Trace;
  readonly itemRetentionMs: number;
  readonly keyRetentionMs: number;
  /** World time. */
  readonly nowMs: () => number;
  readonly endedOrgs = new Map<string, number>();
  /** When members left, by org and user. */
  readonly leftMembers = new Map<string, number>();
  readonly tokens = new Map<string, TokenRecord>();
  /** Keys whose enqueue a producer was told of, with the id it was told. */
  readonly told = new Map<string, string>();
  /** Every item as it was inserted, by org and id. */
  readonly created = new Map<string, ItemRow>();
  /** Outbox rows whose write took effect. */
  readonly outboxRows = new Map<string, OtherRow>();
  /** Audit ids minted by dead letters, each with its item's org and id. */
  readonly auditIds = new Map<string, string>();
  /** Claims (token, org and id) under which an item was finished. */
  readonly finished = new Set<string>();
  /** How often each item was completed: never more than once. */
  readonly completions = new Map<string, number>();
  /** World time of the last turn of each sweep step. */
  readonly turns = new Map<string, number>();
  /** The run of a claim. */
  runOf: (token: string, key: string) => RunRecord | undefined = () => undefined;
  /** How often something was seen, for the report. */
  readonly seen = new Map<string, number>();

  constructor(
    history: History,
    options: {
      readonly trace: Trace;
      readonly itemRetentionMs: number;
      readonly keyRetentionMs: number;
      readonly nowMs: () => number;
    },
  ) {
    this.nowMs = options.nowMs;
    this.history = history;
    this.trace = options.trace;
    this.itemRetentionMs = options.itemRetentionMs;
    this.keyRetentionMs = options.keyRetentionMs;
  }

  name(row: ItemRow): string {
    return this.trace.name("item", row.id);
  }

  count(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  /** An item was inserted: under an id that was purged it is another one. */
  made(row: ItemRow): void {
    const key = keyOf(row.org_id, row.id);
    this.created.set(key, row);
    this.completions.delete(key);
  }

  /** A claim took effect. */
  minted(token: string, call: SimCall): void {
    if (this.tokens.has(token)) throw new Violation("claim token", "a token was used by two claims");
    const executedMs = call.executedMs ?? 0;
    this.tokens.set(token, {
      call,
      executedMs,
      deliveredMs: null,
      renewed: new Map(),
      settled: new Set(),
      touched: new Set(),
    });
  }

  /** A settlement was accepted. */
  settled(settlement: Settlement, before: ItemRow): void {
    this.count(`settled ${settlement.to}`);
    if (settlement.to === "failed") this.auditIds.set(settlement.auditId, keyOf(before.org_id, before.id));
    if (settlement.to !== "done" && settlement.to !== "failed") return;
    const key = keyOf(before.org_id, before.id);
    this.finished.add(`${settlement.token}/${key}`);
    const count = (this.completions.get(key) ?? 0) + 1;
    this.completions.set(key, count);
    if (count > 1) throw new Violation("one completion", `${this.name(before)} was finished ${count} times`);
  }

  /** A claim expired: something must have kept its holder from renewing it. */
  expired(before: ItemRow): void {
    this.count("expired");
    const token = this.tokens.get(String(before.claim_token));
    const after = this.history.items.get(keyOf(before.org_id, before.id));
    if (after?.status === "failed" && after.audit_id !== null) {
      this.auditIds.set(after.audit_id, keyOf(before.org_id, before.id));
    }
    if (token === undefined) throw new Violation("claim token", `${this.name(before)} was held under an unknown token`);
    const { process, fate } = token.call;
    this.#checkForgotten(before, token);
    if (fate !== "ok" && fate !== "lost") return;
    if (process.gone || process.draining || process.disturbedSince(token.executedMs)) return;
    throw new Violation(
      "unexplained expiry",
      `${this.name(before)} expired under ${this.trace.name("token", before.claim_token)} of ${process.name}, which ` +
        `lived, had its storage and was never held up (its claim's answer: ${fate})`,
    );
  }

  /** An expired claim of an org that has ended. */
  orphaned(before: ItemRow): void {
    const token = this.tokens.get(String(before.claim_token));
    if (token !== undefined) this.#checkForgotten(before, token);
  }

  /** What reached a worker that lived is run or handed back; what it ran, it tries to write until its lease is lost. */
  #checkForgotten(row: ItemRow, { call, deliveredMs, touched }: TokenRecord): void {
    const { process } = call;
    if (deliveredMs === null || process.gone || process.draining || process.held) return;
    const name = `${this.name(row)} under ${this.trace.name("token", row.claim_token)}`;
    const key = keyOf(row.org_id, row.id);
    // Its contexts may still be asked for, or a claim goes on past orphans beside it; or its lease was given up while it waited for a slot.
    const asks = ["readSubjects", "failOrphaned", "claim"].some((method) => process.isFlying(method));
    const excused = asks || process.lost.has(row.id);
    if (!excused && !touched.has(key) && !process.wokeSince(deliveredMs)) {
      throw new Violation("forgotten", `${name} reached ${process.name}, which neither ran it nor handed it back`);
    }
    const record = this.runOf(String(row.claim_token), key);
    if (record === undefined || record.own !== null || record.run.signal.aborted) return;
    // Held up meanwhile, it may have been refused already.
    if (process.wokeSince(record.started.monotonicMs)) return;
    const does = record.end === null ? "runs" : "has run";
    throw new Violation("forgotten", `${process.name} ${does} ${name}, let its lease pass and was not told to stop`);
  }
}
