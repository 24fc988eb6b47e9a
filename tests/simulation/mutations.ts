/**
 * One-line faults of the product, each of which the simulation must find. `find` stands in `file` exactly once.
 *
 * @module
 */
import { type Mutation, STORAGE_MUTATIONS } from "./mutations_storage.ts";

const MANAGER = "src/work/work_manager.ts";
const KEEPER = "src/runtime/lease_keeper.ts";
const RUNS = "src/runtime/runs.ts";
const RUN = "src/runtime/run.ts";
const LOOP = "src/runtime/loop.ts";
const WORKER = "src/runtime/worker.ts";
const RELAY = "src/outbox/relay.ts";
const ENQUEUER = "src/work/enqueuer.ts";
const TENANCY = "src/tenancy/manager.ts";

const RULES: readonly Mutation[] = [
  [
    "src/work/rules.ts",
    "return attempts >= maxAttempts;",
    "return attempts > maxAttempts;",
    "attempts are exhausted one too late",
  ],
  [
    "src/work/rules.ts",
    "return attempts >= maxAttempts;",
    "return attempts >= maxAttempts - 1;",
    "attempts are exhausted one too early",
  ],
  [MANAGER, "isInstance(error, FinalError) || isExhausted", "isExhausted", "a final error is retried"],
  [
    MANAGER,
    'if (error instanceof UnavailableError && error.outcome === "unknown") this.#lost.remember(request);\n      throw error;',
    "throw error;",
    "a claim whose answer was lost is not looked for",
  ],
  [
    MANAGER,
    'if (error instanceof UnavailableError && error.outcome === "unknown") this.#lost.remember(request);\n      throw error;',
    "if (error instanceof UnavailableError) return await this.#claimBatch(rctx, options);\n      throw error;",
    "an unknown outcome is taken for not executed, and claimed again under a new token",
  ],
  [
    MANAGER,
    'await releaseAll(rows, "released: the contexts of its batch could not be read", this.#o);',
    "",
    "a batch whose contexts cannot be read is not released",
  ],
  [
    MANAGER,
    "      delayMs,\n      note: note === null ? null : describeError(note),\n      ran: true,",
    "      delayMs: delayMs + 1,\n      note: note === null ? null : describeError(note),\n      ran: true,",
    "a deferral is longer than asked for",
  ],
  [
    MANAGER,
    '      to: "back",\n      delayMs,\n      note: note === null ? null : describeError(note),\n      ran: true,\n    });',
    '      to: "retry",\n      delayMs,\n      error: String(note),\n    });',
    "defer spends an attempt",
  ],
  [
    MANAGER,
    '      to: "back",\n      delayMs,\n      note: note === null ? null : describeError(note),\n      ran: false,\n    });',
    '      to: "retry",\n      delayMs,\n      error: String(note),\n    });',
    "release spends an attempt",
  ],
  [
    MANAGER,
    "await audit.appendEntries(rctx, entries);\n    await this.#storage.clearAudit(rows);",
    "await this.#storage.clearAudit(rows);\n    await audit.appendEntries(rctx, entries);",
    "the audit id is cleared before its entry is written",
  ],
  [MANAGER, 'if (outcome === "ALREADY") return "DEAD_LETTERED";', "", "a repeated dead-lettering is audited twice"],
  [
    MANAGER,
    "if (ctx === undefined || ctx instanceof NotFoundError) orphaned.push(row);\n      else claimed",
    "if (ctx !== undefined && !(ctx instanceof NotFoundError)) claimed",
    "an orphan is neither failed nor handed out",
  ],
  [
    "src/work/lost_claims.ts",
    'return held.filter((_, i) => renewed[i] === "WRITTEN");',
    "return held.slice(0, renewed.length);",
    "a recovered claim is run though its renewal was refused",
  ],
  [
    "src/core/batch.ts",
    "const outcome = outcomes[i];",
    "const outcome = outcomes[0];",
    "each caller of a batch gets the first one's outcome",
  ],
  [
    "src/work/settler.ts",
    'return outcome === "REFUSED" ?',
    "return outcome === undefined ?",
    "a refused settlement is told as written",
  ],
  [
    "src/runtime/settle.ts",
    'doubt ||= error.outcome === "unknown";',
    'if (error.outcome === "unknown") return "completed";',
    "an outcome whose answer was lost is taken for written",
  ],
  [
    "src/runtime/settle.ts",
    "if (!(error instanceof UnavailableError)) {",
    "if (true) {",
    "an outcome is not written again once it failed",
  ],
  [
    "src/work/lost_claims.ts",
    "this.#lost = this.#lost.filter((request) => !matching.includes(request));",
    "",
    "a lost claim is found again and again",
  ],
  [
    "src/work/lost_claims.ts",
    "for (const left of matching.slice(i)) this.remember(left);",
    "",
    "a lost claim is forgotten when the look for it fails",
  ],
  ["src/work/rules.ts", "Math.max(attempt - 1, 0)", "Math.max(attempt + 3, 0)", "retries are spaced too widely"],
].map(([file = "", find = "", replace = "", what = ""]) => ({ file, find, replace, what }));

const RUNTIME: readonly Mutation[] = [
  [
    KEEPER,
    'run.abort("LEASE_LOST", `the lease of item ${item.id} was lost: ${why}`);',
    "",
    "a lost lease stops nothing",
  ],
  [KEEPER, "void this.#refused(run);", "", "a refused renewal is ignored"],
  [KEEPER, "if (renewed[i] === true) {", "if (renewed[i] !== undefined) {", "a refused renewal counts as a renewal"],
  [
    KEEPER,
    "if (run.unrenewedMs >= leaseMs / 2 &&",
    "if (run.unrenewedMs >= leaseMs * 2 &&",
    "a run is stopped long after its lease has passed",
  ],
  [
    KEEPER,
    'const finished = ours && (state.status === "done" || state.status === "failed");',
    "const finished = state !== null;",
    "a run goes on though another claim holds its item",
  ],
  [KEEPER, "const intervalMs = leaseMs / 3;", "const intervalMs = leaseMs * 2 / 3;", "leases are renewed too seldom"],
  [KEEPER, "leaseMs / RETRIES_A_LEASE", "leaseMs", "a failed renewal is not tried again soon"],
  [
    RUN,
    "return Math.max(this.#clock.monotonic() - this.#sentMonotonicMs, this.#clock.now() - this.#sentWallMs);",
    "return this.#clock.monotonic() - this.#sentMonotonicMs;",
    "a suspended machine trusts its leases",
  ],
  [
    RUN,
    "return Math.max(this.#clock.monotonic() - this.#sentMonotonicMs, this.#clock.now() - this.#sentWallMs);",
    "return this.#clock.now() - this.#sentWallMs;",
    "a clock set back trusts its leases",
  ],
  [
    RUN,
    "this.#sentMonotonicMs = sentAt.monotonicMs;\n    this.#sentWallMs = sentAt.wallMs;\n    this.onRenewed",
    "this.#sentMonotonicMs = this.#clock.monotonic();\n    this.#sentWallMs = this.#clock.now();\n    this.onRenewed",
    "a lease counts from a late answer, not from when it was asked for",
  ],
  [
    RUN,
    "if (run.cause !== null) return abortedVerdict(run.cause, timeoutMs);\n    return verdictOf(result);",
    "return verdictOf(result);",
    "a handler that returns after its signal fired completes",
  ],
  [
    RUN,
    'return { type: "release", note: "handed back: its worker was stopped" };',
    'return { type: "fail", error: new Error("stopped") };',
    "a drain spends an attempt",
  ],
  [
    RUNS,
    ": await runHandler(run, handler, clock);",
    ': (void runHandler(run, handler, clock), { type: "complete" } as const);',
    "an item is completed before its handler ends",
  ],
  [
    RUNS,
    "if (item.item.expiries > 0) suspects.push(item);",
    "if (item.item.expiries > 99) suspects.push(item);",
    "an item whose last claim expired does not run alone",
  ],
  [
    RUNS,
    "return item.expiries > 1 || item.attempts >= item.maxAttempts;",
    "return item.expiries > 99;",
    "an item that expired twice is not alone to its end",
  ],
  [RUNS, "if (this.#lone !== null) return 0;", "", "claims go on beside an item that runs alone"],
  [
    RUNS,
    "while (this.#running >= this.#o.capacity && run.cause",
    "while (this.#running > this.#o.capacity && run.cause",
    "an item that runs alone begins beyond the capacity",
  ],
  [RUNS, "const timeout = timeoutMs > 0 ?", "const timeout = timeoutMs < 0 ?", "runs never time out"],
  [RUNS, "if (!run.handlerSettled) run.abandoned = this.#abandon(run);", "", "a deaf handler keeps its item"],
  [
    RUNS,
    "if (this.#running < this.#o.capacity) this.#begin(run);",
    "if (this.#running <= this.#o.capacity) this.#begin(run);",
    "one handler too many runs",
  ],
  [
    RUNS,
    'if (run.cause !== "LEASE_LOST") await this.#returnUnstarted(run.claimed, note);',
    "",
    "what waited for a slot is dropped, not handed back",
  ],
  [
    LOOP,
    "return this.#unsure ? Math.max(room, 1) : room;",
    "return room;",
    "a full worker does not look for what its lost claim took",
  ],
  [LOOP, ">= leaseMs / 2) {", ">= leaseMs * 100) {", "a claim that was answered late is run"],
  [
    LOOP,
    "if (this.#stopClaiming.signal.aborted) {\n",
    "if (this.#stopClaiming.signal.aborted && claimed.length < 0) {\n",
    "what a claim brings after the stop begins",
  ],
  [LOOP, "this.#stopClaiming.abort();", "", "a worker that was told to stop goes on claiming"],
  [
    WORKER,
    "await this.#within(ABORT_GRACE_MS + RELEASE_BOUND_MS);",
    "",
    "a drain ends before what it stopped is released",
  ],
  [WORKER, "await this.#within(drainGraceMs, this.#skipGrace.signal);", "", "a drain gives no grace"],
  [WORKER, "runs.abortAll();", "", "a drain stops nothing"],
  [
    "src/runtime/sweep.ts",
    "for (const ctx of live) {",
    "for (const ctx of live.slice(1)) {",
    "the sweep leaves out an org",
  ],
  [
    RUNS,
    "        this.#freeSlot(run);\n        await this.#settle(run, verdict);",
    "        this.#freeSlot(run);\n        this.#o.keeper.remove(run);\n        await this.#settle(run, verdict);",
    "a lease is let go when the handler ends, before its outcome is written",
  ],
  [
    RUNS,
    "const run = new Run(claimed, this.#o.clock, sentAt);",
    "const run = new Run(claimed, this.#o.clock, { monotonicMs: this.#o.clock.monotonic(), wallMs: this.#o.clock.now() });",
    "a lease counts from the claim's answer, not from when it was sent",
  ],
  [
    LOOP,
    "await this.#second;\n  }\n\n  /**\n   * Claims, with",
    "this.runs.abortAll();\n    await this.#second;\n  }\n\n  /**\n   * Claims, with",
    "a stopping loop aborts its runs at once",
  ],
].map(([file = "", find = "", replace = "", what = ""]) => ({ file, find, replace, what }));

const OTHERS: readonly Mutation[] = [
  [
    RELAY,
    "const errors: string[] = [];\n",
    "await this.#options.storage.markDone(page.map(({ orgId, id }) => ({ orgId, id })));\n    const errors: string[] = [];\n",
    "the relay marks rows done before it hands them on",
  ],
  [
    RELAY,
    'errors.push(`${row.kind} ${row.id}: ${describeError(error)}`);\n        fates.set(row.id, "failed");',
    'fates.set(row.id, "relayed");',
    "the relay marks done what it could not hand on",
  ],
  [
    ENQUEUER,
    "id: row.id,\n      kind: name,\n      idempotencyKey: row.id,",
    "kind: name,\n      idempotencyKey: row.id,",
    "a relayed item has an id of its own",
  ],
  [
    ENQUEUER,
    "const { lane, ...payload } = row.payload;",
    "const { lane } = row.payload;\n    const payload = row.payload;",
    "a relayed item's lane stays in its payload",
  ],
  [
    ENQUEUER,
    'outcome === "ID_EXISTS" ? "INSERTED" : outcome) : outcomes;',
    'outcome) : outcomes.map(() => "INSERTED");',
    "an insert that is asked for again is told as inserted",
  ],
  [
    "src/audit/storage/sqlite.ts",
    "if (existing !== undefined) return { seq: Number(existing.seq), inserted: false };",
    "",
    "an event that is there is appended again",
  ],
  [
    TENANCY,
    "if (state === undefined || !state.orgLive) return orgGone(subject.orgId);",
    "if (state === undefined) return orgGone(subject.orgId);",
    "items of an ended org are run",
  ],
  [
    TENANCY,
    "const userId = state.memberLive ? subject.userId : EMPTY_UUID;",
    "const userId = subject.userId;",
    "items of a member who left run in their name",
  ],
  [
    TENANCY,
    'return mintOp(rctx, { orgId, userId, role: "SERVICE", causedByRequestId, traceparent });',
    'return mintOp(rctx, { orgId, userId, role: "SERVICE", traceparent });',
    "a run does not know which request caused it",
  ],
].map(([file = "", find = "", replace = "", what = ""]) => ({ file, find, replace, what }));

/** All of them. */
export const MUTATIONS: readonly Mutation[] = [...STORAGE_MUTATIONS, ...RULES, ...RUNTIME, ...OTHERS];
