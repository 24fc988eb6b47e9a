/**
 * The append-only log that handlers write, and what must hold of it: whose item runs where, under which claim, beside what,
 * and whether the settlement that follows is the one the handler's end asks for.
 *
 * @module
 */
import type { OpContext } from "../../src/core/context.ts";
import { EMPTY_UUID } from "../../src/core/ids.ts";
import type { Settlement } from "../../src/work/storage.ts";
import type { WorkItem, WorkRun } from "../../src/work/types.ts";
import { keyOf } from "./history.ts";
import { RETRY } from "./plan.ts";
import type { SimProcess } from "./process.ts";
import { must } from "./transitions.ts";
import type { Marks, TokenRecord, Truth } from "./truth.ts";

/** How a handler ended. */
export type End = "returned" | "threw" | "final" | "deferred";

/** One run, as its handler saw it. */
export interface RunRecord {
  readonly process: SimProcess;
  readonly item: WorkItem;
  /** The item's org and id. */
  readonly key: string;
  readonly token: string;
  readonly run: WorkRun;
  readonly timeoutMs: number;
  readonly started: Marks;
  /** Database time at its start. */
  readonly startedMs: number;
  end: End | null;
  /** Whether the signal had fired when the handler ended. */
  abortedAtEnd: boolean;
  /** Why and when the signal fired, where the handler listened. */
  cause: string | null;
  abortedMs: number | null;
  /** What the handler wrote of its own accord. */
  own: "done" | "back" | null;
  /** The delay it asked for. */
  deferMs: number;
}

/** The log. */
export class Runs {
  readonly records: RunRecord[] = [];
  readonly #truth: Truth;
  readonly #byClaim = new Map<string, RunRecord>();
  readonly #active = new Set<RunRecord>();

  constructor(truth: Truth) {
    this.#truth = truth;
    truth.runOf = (token, key) => this.of(token, key);
  }

  /** Runs that have not ended and whose process lives. */
  active(process?: SimProcess): RunRecord[] {
    for (const record of this.#active) if (record.process.gone) this.#active.delete(record);
    return [...this.#active].filter((record) => process === undefined || record.process === process);
  }

  /** The run of a claim of an item (its org and id). */
  of(token: string, key: string): RunRecord | undefined {
    return this.#byClaim.get(`${token}/${key}`);
  }

  /** A handler was called. */
  begin(record: RunRecord, ctx: OpContext): void {
    const { item, process, token } = record;
    const trace = this.#truth.trace;
    const name = `${trace.name("item", item.id)} under ${trace.name("token", token)} on ${process.name}`;
    trace.note(`${process.name} begins ${name} attempt ${item.attempts}`);
    const claim = this.#truth.tokens.get(token);
    must(
      claim !== undefined && claim.call.process === process,
      "claims",
      () => `${name} runs under no claim of its process`,
    );
    must(this.of(token, record.key) === undefined, "one run a claim", () => `${name} runs twice`);
    must(!process.draining, "drain", () => `${name} begins although its worker was told to stop`);
    this.#checkTenant(record, ctx, { name, claim });
    this.#checkBeside(record, { name, claim });
    this.#checkFence(record, name);
    this.#byClaim.set(`${token}/${record.key}`, record);
    claim.touched.add(record.key);
    this.records.push(record);
    this.#active.add(record);
    this.#truth.count("runs");
    const beside = this.active(process).length;
    must(beside <= process.capacity, "capacity", () => `${beside} handlers run at once on ${process.name}`);
  }

  #checkTenant(record: RunRecord, ctx: OpContext, { name, claim }: { name: string; claim: TokenRecord }): void {
    const { item } = record;
    const row = this.#truth.history.everItems.get(keyOf(ctx.orgId, item.id));
    must(row !== undefined, "isolation", () => `${name} runs under the context of another org`);
    must(row.payload === JSON.stringify(item.payload), "isolation", () => `${name} runs with another item's payload`);
    const leftMs = this.#truth.leftMembers.get(keyOf(ctx.orgId, item.createdBy)) ?? Infinity;
    const whom = ctx.userId === item.createdBy
      ? claim.executedMs < leftMs
      : ctx.userId === EMPTY_UUID && leftMs <= this.#truth.nowMs();
    must(whom, "isolation", () => `${name} runs for another user than its creator, or for one who had left`);
    must(ctx.role === "SERVICE", "isolation", () => `${name} runs in another role`);
    const cause = ctx.causedByRequestId ?? null;
    must(cause === row.request_id, "isolation", () => `${name} runs under another request than it was caused by`);
    const endedMs = this.#truth.endedOrgs.get(ctx.orgId) ?? Infinity;
    must(claim.executedMs < endedMs, "orphans", () => `${name} runs and its org had ended when it was claimed`);
    must(
      record.run.attempt === item.attempts && record.run.fence === item.claims,
      "attempts",
      () => `${name} is told attempt ${record.run.attempt} and fence ${record.run.fence}`,
    );
  }

  /** An item whose last claim expired runs alone at first. */
  #checkBeside(record: RunRecord, { name, claim }: { name: string; claim: TokenRecord }): void {
    const { process, item } = record;
    const beside = this.active(process);
    if (item.expiries > 0 && beside.some((other) => !this.#isLetGo(other))) {
      const waitedMs = process.marks().monotonicMs - (claim.deliveredMs ?? 0);
      must(
        waitedMs >= process.leaseMs - 1,
        "alone",
        () => `${name} begins beside others although its last claim expired`,
      );
    }
    const lone = beside.find((other) => other.item.expiries > 0 && !this.#isLetGo(other) && !this.#isProven(other));
    must(
      lone === undefined || item.expiries > 0 && lone === record,
      "alone",
      () => `${name} begins beside ${this.#truth.trace.name("item", lone?.item.id)}, which is to run alone`,
    );
  }

  /** A worker claims: beside an item that runs alone it has no use for more, unless it looks for a lost claim. */
  claiming(process: SimProcess): void {
    if (process.claimFailed) return;
    const lone = this.active(process).find((record) =>
      record.item.expiries > 0 && !this.#isLetGo(record) && !this.#isProven(record)
    );
    const name = this.#truth.trace.name("item", lone?.item.id);
    must(lone === undefined, "alone", () => `${process.name} claims beside ${name}, which is to run alone`);
  }

  #isLetGo(record: RunRecord): boolean {
    return record.run.signal.aborted || record.own !== null ||
      this.#truth.tokens.get(record.token)?.settled.has(record.key) === true;
  }

  #isProven({ item, key, token, started, process }: RunRecord): boolean {
    if (item.expiries > 1 || item.attempts >= item.maxAttempts) return false;
    const sent = this.#truth.tokens.get(token)?.renewed.get(key);
    return sent !== undefined && sent.monotonicMs >= started.monotonicMs + process.leaseMs / 6 - 1;
  }

  /** Nobody else runs the item, but those who were told to stop; and its own lease can be trusted. */
  #checkFence(record: RunRecord, name: string): void {
    for (const other of this.active()) {
      if (other.key !== record.key || other.own !== null || other.run.signal.aborted) continue;
      if (other.process.held || other.process.wokeLately()) continue;
      must(
        false,
        "two runs at once",
        () => `${name} begins while ${other.process.name} runs it and was not told to stop`,
      );
    }
    this.#checkTrust(record, `${name} begins`);
  }

  /** Runs of a process that were not told to stop are within the half of their lease that can be trusted. */
  trusted(process: SimProcess): void {
    for (const record of this.active(process)) {
      this.#checkTrust(record, `${this.#truth.trace.name("item", record.item.id)} runs on ${process.name}`);
    }
  }

  #checkTrust(record: RunRecord, what: string): void {
    const { process, run, own, started } = record;
    if (run.signal.aborted || own !== null || process.wokeLately()) return;
    const unrenewedMs = this.unrenewedMs(record);
    // A run that has just begun is first looked at within a twelfth of its lease.
    const fresh = process.marks().monotonicMs - started.monotonicMs < process.leaseMs / 12 + 30;
    const limitMs = process.leaseMs / 2 + (fresh ? process.leaseMs / 12 : 0) + 30;
    must(unrenewedMs <= limitMs, "own fence", () => `${what}, ${Math.round(unrenewedMs)} ms after it was renewed`);
  }

  /** How long ago the last renewal known to have succeeded was sent, on the worker's own clocks. */
  unrenewedMs({ process, token, key }: RunRecord): number {
    const claim = this.#truth.tokens.get(token);
    const now = process.marks();
    const sent = claim?.renewed.get(key) ?? claim?.call.sent ?? now;
    return Math.max(now.monotonicMs - sent.monotonicMs, now.wallMs - sent.wallMs);
  }

  /** A handler ended. */
  end(record: RunRecord, end: End): void {
    const { process, item, run } = record;
    record.end = end;
    record.abortedAtEnd = run.signal.aborted;
    this.#active.delete(record);
    const name = `${this.#truth.trace.name("item", item.id)} on ${process.name}`;
    this.#truth.trace.note(`${process.name} ends ${name}: ${end}${record.abortedAtEnd ? ", aborted" : ""}`);
    this.#checkDeaf(record, name);
    if (record.abortedAtEnd || record.own !== null || process.wokeLately()) return;
    const tookMs = process.marks().monotonicMs - record.started.monotonicMs;
    must(
      tookMs <= record.timeoutMs + 300,
      "timeout",
      () => `${name} ran for ${Math.round(tookMs)} ms and was not told to stop`,
    );
    this.#checkTrust(record, `${name} ends`);
  }

  /** A deaf handler keeps its slot and not its item: that was handed back two seconds after it was told to stop. */
  #checkDeaf({ process, key, token, own, cause, abortedMs }: RunRecord, name: string): void {
    if (abortedMs === null || own !== null || (cause !== "TIMED_OUT" && cause !== "DRAINED")) return;
    const deafMs = process.marks().monotonicMs - abortedMs;
    if (deafMs < 2_500 || process.wokeWithin(2_500)) return;
    const asked = this.#truth.tokens.get(token)?.settled.has(key) === true;
    must(asked, "deaf", () => `${name} was told to stop ${Math.round(deafMs)} ms ago and still holds its item`);
  }

  /** Where nothing but settlements is struck, a lease is kept until its outcome is written. */
  #checkLetGo(record: RunRecord): void {
    const { item, key, token, process } = record;
    if (causeOf(record) !== "LEASE_LOST") return;
    const row = this.#truth.history.items.get(key);
    const held = row?.status === "claimed" && row.claim_token === token;
    const kept = !held || !process.onlySettlementsFail || process.draining;
    must(
      kept,
      "forgotten",
      () => `${process.name} lost ${this.#truth.trace.name("item", item.id)} while it wrote its outcome`,
    );
  }

  /** A handler that listens was told to stop. */
  aborted(record: RunRecord): void {
    const { process, item } = record;
    // Its outcome was on its way, and the renewal beside it was refused for it.
    if (record.end !== null) return this.#checkLetGo(record);
    const cause = String((record.run.signal.reason as { abortCause?: unknown })?.abortCause);
    record.cause = cause;
    record.abortedMs = process.marks().monotonicMs;
    const name = `${this.#truth.trace.name("item", item.id)} on ${process.name}`;
    this.#truth.trace.note(`${process.name} is told to stop ${name}: ${cause}`);
    this.#truth.count(`aborted ${cause}`);
    if (cause === "TIMED_OUT") {
      const tookMs = process.marks().monotonicMs - record.started.monotonicMs;
      must(tookMs >= record.timeoutMs - 1, "timeout", () => `${name} timed out after ${tookMs} ms`);
    }
    if (cause === "DRAINED") {
      must(process.draining, "drain", () => `${name} was stopped for a drain that nobody asked for`);
      must(process.graceIsOver(), "drain", () => `${name} was stopped before its worker's grace was over`);
    }
    if (cause === "LEASE_LOST" && record.own === null) {
      const claim = this.#truth.tokens.get(record.token);
      // A claim is counted from before the look for lost ones that went ahead of it.
      const disturbed = process.disturbedSince((claim?.executedMs ?? 0) - process.leaseMs / 2) ||
        claim?.call.fate !== "ok";
      must(disturbed || process.draining, "unexplained loss", () => `${name} lost its lease for no reason`);
    }
  }

  /** A worker asks for a settlement: is it what the handler's end calls for? Called as the call leaves, once for each row. */
  asked(process: SimProcess, settlement: Settlement): void {
    const { orgId, token, id, to } = settlement;
    const key = keyOf(orgId, id);
    const claim = this.#truth.tokens.get(token);
    const name = `${to} of ${this.#truth.trace.name("item", id)} by ${process.name}`;
    must(
      claim !== undefined && claim.call.process === process,
      "claims",
      () => `${name} is asked for under no claim of its own`,
    );
    claim.settled.add(key);
    claim.touched.add(key);
    const record = this.of(token, key);
    if (record?.own !== null && record?.own === to) return;
    const ended = record !== undefined && record.end !== null && !record.abortedAtEnd;
    const fits = {
      done: () => ended && record.end === "returned",
      retry: () =>
        this.#failsRightly(record, ended) && record?.end !== "final" && !isLast(record) && isSpaced(record, settlement),
      failed: () => this.#failsRightly(record, ended) && (isLast(record) || (ended && record.end === "final")),
      back: () => this.#isGivenBackRightly(record, settlement, ended),
    }[to];
    must(fits(), "outcome", () => `${name} is asked for; its handler: ${record?.end ?? "not ended"}, ${record?.cause}`);
  }

  #failsRightly(record: RunRecord | undefined, ended: boolean): boolean {
    if (record === undefined) return false;
    if (ended) return record.end === "threw" || record.end === "final";
    return record.run.signal.aborted && causeOf(record) === "TIMED_OUT";
  }

  #isGivenBackRightly(record: RunRecord | undefined, settlement: Settlement, ended: boolean): boolean {
    if (settlement.to !== "back") return false;
    if (settlement.ran) return ended && record?.end === "deferred" && record.deferMs === settlement.delayMs;
    return record === undefined || (record.run.signal.aborted && causeOf(record) === "DRAINED");
  }
}

/** Between the floor and the exponential bound of its kind. */
function isSpaced(record: RunRecord | undefined, settlement: Settlement): boolean {
  if (record === undefined || settlement.to !== "retry") return false;
  const mostMs = Math.min(RETRY.capMs, RETRY.baseMs * 2 ** (record.item.attempts - 1));
  return settlement.delayMs >= 100 && settlement.delayMs <= mostMs;
}

function causeOf(record: RunRecord): string {
  return String((record.run.signal.reason as { abortCause?: unknown })?.abortCause);
}

function isLast(record: RunRecord | undefined): boolean {
  return record !== undefined && record.item.attempts >= record.item.maxAttempts;
}
