/**
 * Our pool of single-connection clients. Two shapes of work: one auto-committed statement, and the pipelined unit of one
 * tenant. A client that met doubt (anything but a plain SQLSTATE, or a deadline) is thrown away, and a new one is made
 * when somebody needs it; nothing is ever repaired.
 *
 * @module
 */
import { type LanewayError, UnavailableError } from "../core/errors.ts";
import { type PipelineStep, PostgresClient, type StepResult } from "./client.ts";
import type { Param, Row, StatementOptions } from "./database.ts";
import { Deadline } from "./deadline.ts";
import { isConnectionDoubt, sqlState, translateError } from "./sqlstate.ts";

/** Whether a transaction-mode pooler (pgbouncer and its like) stands between; it cannot keep prepared statements. */
export type Pooler = "none" | "transaction";

/** How a pool runs. */
export interface PoolOptions {
  /** The most clients at once, 1–1 000. They are opened when needed. Default 10. */
  max?: number;
  /** How long one statement may take, the wait for a client included, milliseconds. Default 10 000. */
  deadlineMs?: number;
  /** How many calls may wait for a client before further ones are refused. Default 1 000. */
  maxWaiting?: number;
  /** How long opening a client may take, milliseconds. Default 5 000. */
  connectTimeoutMs?: number;
  /** A client older than this is replaced when it comes back, milliseconds. Default 3 600 000. */
  maxAgeMs?: number;
  /** Default `none`. */
  pooler?: Pooler;
  /** Shown in `pg_stat_activity`. Default `laneway`. */
  applicationName?: string;
}

/** What a pool has done and holds now. */
export interface PoolCounts {
  /** Clients at work. */
  readonly inUse: number;
  /** Clients open and idle. */
  readonly idle: number;
  /** Calls that wait for a client. */
  readonly waiting: number;
  /** Clients opened since the start. */
  readonly opened: number;
  /** Clients thrown away because of doubt or age since the start. */
  readonly retired: number;
}

// To open a client keeps this process and the server busy for ten milliseconds, and the first statements on it take as
// long again. Opened for calls that would have waited for one, nine in the first tenth of a second of a load, they made it
// wait for fifty. So calls wait as long together as the opening costs, or one of them for as long as it may notice.
const OPENING_COSTS_MS = 20;
const PATIENCE_MS = 5;

interface Waiter {
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
  resolve(client: PostgresClient): void;
  reject(error: unknown): void;
}

type Verdict = { readonly rows: Row[] } | { readonly error: LanewayError } | { readonly again: true };

/** A bounded pool over one database URL. */
export class Pool {
  readonly max: number;
  readonly #url: string;
  readonly #options: PoolOptions;
  readonly #idle: PostgresClient[] = [];
  readonly #working = new Set<PostgresClient>();
  readonly #waiting = new Set<Waiter>();
  readonly #farewells = new Set<Promise<void>>();
  readonly #ended = new AbortController();
  #opening = 0;
  /** How long calls have waited, in all, since a client was last opened. */
  #waitedMs = 0;
  /** Set while calls wait beside open clients. */
  #lookAgain: ReturnType<typeof setTimeout> | undefined;
  #opened = 0;
  #retired = 0;
  #closing: Promise<void> | undefined;
  #drained: (() => void) | undefined;

  constructor(url: string, options: PoolOptions = {}) {
    this.max = options.max ?? 10;
    this.#url = url;
    this.#options = options;
  }

  get counts(): PoolCounts {
    return {
      inUse: this.#working.size + this.#opening,
      idle: this.#idle.length,
      waiting: this.#waiting.size,
      opened: this.#opened,
      retired: this.#retired,
    };
  }

  /**
   * Runs ONE auto-committed statement.
   *
   * @throws As `Database.system`.
   */
  run<R extends Row = Row>(sql: string, params: readonly Param[], options: StatementOptions = {}): Promise<R[]> {
    const step = { sql, params, asValues: options.asValues };
    return this.#work([step], judgeStatement, options) as Promise<R[]>;
  }

  /**
   * Runs ONE statement inside one tenant: `begin · set_config · statement · commit` sent at once on one client.
   *
   * @throws As `Database.tenant`.
   */
  unit<R extends Row = Row>(
    orgId: string,
    statement: { readonly sql: string; readonly params: readonly Param[] },
    options: StatementOptions = {},
  ): Promise<R[]> {
    const steps: PipelineStep[] = [
      { sql: "begin isolation level read committed" },
      { sql: "select set_config('laneway.org_id', $1, true)", params: [orgId] },
      statement,
      { sql: "commit" },
    ];
    return this.#work(steps, judgeUnit, options) as Promise<R[]>;
  }

  /**
   * Refuses further calls, lets those under way finish for at most `timeoutMs`, then closes every client. What is left
   * is rejected. Bounded, also with the database out of reach; closing twice is one closing.
   *
   * @param timeoutMs Default 5 000.
   */
  close(timeoutMs = 5_000): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #close(timeoutMs: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#drained = resolve;
        this.#checkDrained();
      }),
      new Promise<void>((resolve) => timer = setTimeout(resolve, timeoutMs)),
    ]);
    clearTimeout(timer);
    this.#ended.abort();
    for (const waiter of [...this.#waiting]) waiter.reject(closedError());
    for (const client of this.#working) client.destroy();
    for (const client of this.#idle.splice(0)) this.#dismiss(client);
    await Promise.all(this.#farewells);
  }

  #checkDrained(): void {
    if (this.#working.size + this.#opening + this.#waiting.size === 0) this.#drained?.();
  }

  async #work(
    steps: readonly PipelineStep[],
    judge: (results: readonly StepResult[]) => Verdict,
    options: StatementOptions,
  ): Promise<Row[]> {
    const deadline = new Deadline(options.deadlineMs ?? this.#options.deadlineMs ?? 10_000);
    try {
      for (let round = 0;; round++) {
        const client = await this.#acquire(deadline);
        const verdict = await this.#runOn(client, { steps, judge, deadline });
        if ("rows" in verdict) return verdict.rows;
        if ("error" in verdict) throw verdict.error;
        if (round === 1) throw new UnavailableError("The statement's plan kept changing: retry it", "not-executed");
      }
    } finally {
      deadline.clear();
    }
  }

  async #runOn(
    client: PostgresClient,
    work: {
      readonly steps: readonly PipelineStep[];
      readonly judge: (results: readonly StepResult[]) => Verdict;
      readonly deadline: Deadline;
    },
  ): Promise<Verdict> {
    const results = await Promise.race([client.pipeline(work.steps), work.deadline.passed]);
    if (results === undefined) {
      this.#farewell(client.cancel());
      this.#retire(client);
      return { error: work.deadline.error("the statement was under way", "unknown") };
    }
    const verdict = work.judge(results);
    const doubt = results.some((result) => !result.ok && isDoubtful(result.error));
    if (doubt || client.gone || this.#tooOld(client)) this.#retire(client);
    else this.#release(client);
    return verdict;
  }

  #tooOld(client: PostgresClient): boolean {
    return performance.now() - client.openedAtMs > (this.#options.maxAgeMs ?? 3_600_000);
  }

  async #acquire(deadline: Deadline): Promise<PostgresClient> {
    if (this.#closing !== undefined) throw closedError();
    for (let client = this.#idle.pop(); client !== undefined; client = this.#idle.pop()) {
      if (!client.gone) {
        this.#working.add(client);
        return client;
      }
      this.#retired++;
    }
    const maxWaiting = this.#options.maxWaiting ?? 1_000;
    if (this.#waiting.size >= maxWaiting) {
      throw new UnavailableError(
        `Cannot run a statement as ${maxWaiting} already wait for a connection`,
        "not-executed",
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<PostgresClient>();
    const waiter: Waiter = {
      sinceMs: performance.now(),
      resolve: (client) => {
        this.#waitedMs += performance.now() - waiter.sinceMs;
        this.#leaveQueue(waiter);
        resolve(client);
      },
      reject: (error) => {
        this.#leaveQueue(waiter);
        reject(error);
      },
    };
    this.#waiting.add(waiter);
    this.#openForWaiters();
    deadline.passed.then(() => {
      // In time or not, a waiter that was served is no longer in the set.
      if (this.#waiting.has(waiter)) waiter.reject(deadline.error("waiting for a connection", "not-executed"));
      this.#checkDrained();
    });
    return await promise;
  }

  /**
   * Opens as many clients as calls wait, within the bound. Each failure is one waiter's error. Beside open clients, only for
   * calls that have waited for `PATIENCE_MS`, and one for all that waited less; and no more at once than are open.
   */
  #openForWaiters(): void {
    const open = this.#working.size + this.#idle.length;
    const sinceMs = open === 0 ? Infinity : performance.now() - PATIENCE_MS;
    let wanted = this.#waitedMs >= OPENING_COSTS_MS && this.#waiting.size > 0 ? 1 : 0;
    // In the order they came.
    for (const waiter of this.#waiting) {
      if (waiter.sinceMs > sinceMs || wanted >= this.max) break;
      wanted++;
    }
    const most = Math.min(this.max - open, open === 0 ? this.max : open);
    while (this.#opening < wanted && this.#opening < most) {
      this.#opening++;
      this.#waitedMs = 0;
      this.#open();
    }
    if (wanted < this.#waiting.size && open < this.max) {
      this.#lookAgain ??= setTimeout(this.#onPatienceOver, PATIENCE_MS);
    }
  }

  readonly #onPatienceOver = () => {
    this.#lookAgain = undefined;
    this.#openForWaiters();
  };

  #leaveQueue(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    if (this.#waiting.size > 0) return;
    clearTimeout(this.#lookAgain);
    this.#lookAgain = undefined;
  }

  async #open(): Promise<void> {
    let client: PostgresClient | undefined;
    let failure: unknown;
    try {
      client = await PostgresClient.open(this.#url, {
        applicationName: this.#options.applicationName,
        connectTimeoutMs: this.#options.connectTimeoutMs,
        prepare: this.#options.pooler !== "transaction",
        indexPlans: this.#options.pooler !== "transaction",
        signal: this.#ended.signal,
      });
      this.#opened++;
    } catch (error) {
      failure = error;
    }
    this.#opening--;
    if (client !== undefined && this.#ended.signal.aborted) {
      client.destroy();
    } else if (client !== undefined) {
      this.#working.add(client);
      this.#release(client);
      this.#openForWaiters();
    } else {
      const [first] = this.#waiting;
      first?.reject(failure);
      this.#openForWaiters();
      this.#checkDrained();
    }
  }

  #release(client: PostgresClient): void {
    if (client.gone) return this.#retire(client);
    const [first] = this.#waiting;
    if (first !== undefined) return first.resolve(client);
    this.#working.delete(client);
    this.#idle.push(client);
    this.#checkDrained();
  }

  #retire(client: PostgresClient): void {
    this.#working.delete(client);
    this.#retired++;
    if (client.gone) client.destroy();
    else this.#dismissOrCut(client);
    this.#openForWaiters();
    this.#checkDrained();
  }

  // A client that only grew old takes leave; one in doubt is cut, as its server may never answer a farewell.
  #dismissOrCut(client: PostgresClient): void {
    if (this.#tooOld(client)) this.#dismiss(client);
    else client.destroy();
  }

  #dismiss(client: PostgresClient): void {
    this.#farewell(client.close());
  }

  #farewell(leaving: Promise<void>): void {
    const farewell = leaving.catch(() => {}).finally(() => this.#farewells.delete(farewell));
    this.#farewells.add(farewell);
  }
}

function closedError(): UnavailableError {
  return new UnavailableError("The database pool is closed", "not-executed");
}

// 25006: the server turned into a standby; a new connection may find the new primary.
function isDoubtful(error: unknown): boolean {
  return isConnectionDoubt(error) || sqlState(error) === "25006";
}

function judgeStatement(results: readonly StepResult[]): Verdict {
  const [result] = results;
  if (result?.ok) return { rows: result.rows };
  return { error: translateError(result?.error) };
}

/**
 * Decides what became of a unit.
 *
 * - A step refused with a plain SQLSTATE aborted the transaction before its commit: nothing was kept, whatever became of
 *   the connection afterwards. The first refusal is the reason (later ones are 25P02).
 * - Any doubt about the connection otherwise: unknown.
 * - The driver sends a statement again when its cached plan no longer fits (after a migration). Inside a unit that second
 *   try comes after the commit, without its tenant, where it changes nothing: the whole unit runs again.
 * - All answered: the commit must say COMMIT.
 */
function judgeUnit(results: readonly StepResult[]): Verdict {
  const [begin, , statement, commit] = results;
  if (results.some((result) => result.ok && result.retried)) return { again: true };
  if (begin?.ok) {
    const refusal = results.find((result) => !result.ok && !isConnectionDoubt(result.error));
    if (refusal !== undefined && !refusal.ok) {
      if (isStalePlan(refusal.error)) return { again: true };
      return { error: translateError(refusal.error) };
    }
  }
  const doubt = results.find((result) => !result.ok);
  if (doubt !== undefined && !doubt.ok) {
    const cause = translateError(doubt.error);
    return {
      error: new UnavailableError(`${cause.message}; whether the write landed is unknown`, "unknown", { cause }),
    };
  }
  if (statement?.ok && commit?.ok && commit.command === "COMMIT") return { rows: statement.rows };
  return { error: new UnavailableError("The transaction was rolled back without a reason", "unknown") };
}

// "cached plan must not change result type"
function isStalePlan(error: unknown): boolean {
  return sqlState(error) === "0A000" && (error as { routine?: unknown }).routine === "RevalidateCachedQuery";
}
