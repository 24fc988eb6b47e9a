/**
 * `enqueue`: creates items from flags or from NDJSON, and says line by line what became of each.
 *
 * @module
 */
import type { AppContext, OpContext, RequestContext } from "../core/context.ts";
import { describeError, oneLine } from "../core/describe_error.ts";
import { NotFoundError, UnavailableError } from "../core/errors.ts";
import { EMPTY_UUID } from "../core/ids.ts";
import type { Managers } from "../managers.ts";
import type { EnqueueResult } from "../work/types.ts";
import { type EnqueueRequest, type LineDefaults, parseLine } from "./enqueue_request.ts";
import { type InputLine, readLines } from "./line_reader.ts";

/** What `enqueue` needs. */
export interface EnqueueDeps {
  readonly managers: Managers;
  readonly app: AppContext;
  print(line: string): void;
}

/** What became of the input. */
export interface EnqueueSummary {
  inserted: number;
  existing: number;
  refused: number;
}

// One statement each; small enough that a broken connection leaves little to look up again.
const BATCH_LINES = 200;
const CONTEXTS_KEPT = 1_000;
// A line carries the payload and a few short fields around it.
const LINE_SLACK_BYTES = 16 * 1024;

interface Outcome {
  readonly label: string;
  readonly request: EnqueueRequest | string;
  said?: string;
  kind?: keyof EnqueueSummary;
}

/**
 * Enqueues every line of `bytes`. A line that is refused harms no other. Safe to run again after a failure: lines whose
 * key is taken are reported as already there.
 *
 * @throws {UnavailableError} The database is out of reach; lines reported so far are safe.
 */
export async function enqueueLines(
  bytes: AsyncIterable<Uint8Array>,
  options: EnqueueDeps & { readonly defaults: LineDefaults; readonly payloadLimitBytes: number },
): Promise<EnqueueSummary> {
  const enqueuer = new Enqueuer(options);
  let batch: Outcome[] = [];
  for await (const line of readLines(bytes, options.payloadLimitBytes + LINE_SLACK_BYTES)) {
    batch.push({ label: `line ${line.number}: `, request: requestOf(line, options.defaults) });
    if (batch.length < BATCH_LINES) continue;
    await enqueuer.run(batch);
    batch = [];
  }
  await enqueuer.run(batch);
  return enqueuer.summary;
}

function requestOf(line: InputLine, defaults: LineDefaults): EnqueueRequest | string {
  return line.text === null ? line.refused ?? "unreadable" : parseLine(line.text, defaults);
}

/** Enqueues one request, saying what became of it. */
export async function enqueueOne(request: EnqueueRequest | string, deps: EnqueueDeps): Promise<EnqueueSummary> {
  const enqueuer = new Enqueuer(deps);
  await enqueuer.run([{ label: "", request }]);
  return enqueuer.summary;
}

class Enqueuer {
  readonly summary: EnqueueSummary = { inserted: 0, existing: 0, refused: 0 };
  readonly #deps: EnqueueDeps;
  readonly #rctx: RequestContext;
  readonly #contexts = new Map<string, OpContext | NotFoundError>();

  constructor(deps: EnqueueDeps) {
    this.#deps = deps;
    this.#rctx = deps.managers.tenancy.requestContext(deps.app);
  }

  async run(batch: readonly Outcome[]): Promise<void> {
    try {
      for (const group of groupAlike(batch)) await this.#enqueueGroup(group);
    } finally {
      // In the order of the input, also when the database went away halfway.
      for (const outcome of batch) this.#report(outcome);
    }
  }

  async #enqueueGroup(group: readonly Outcome[]): Promise<void> {
    const requests = group.map((outcome) => outcome.request as EnqueueRequest);
    const first = requests[0];
    if (first === undefined) return;
    const ctx = await this.#context(first.orgId, first.userId);
    if (ctx instanceof NotFoundError) return group.forEach((outcome) => refuse(outcome, ctx.message));
    const results = await this.#deps.managers.work.enqueueMany(ctx, requests.map((r) => r.item), first.options);
    group.forEach((outcome, i) => settle(outcome, results[i] ?? new Error("no answer came back")));
    const lost = results.find((result) => result instanceof UnavailableError);
    if (lost !== undefined) throw lost;
  }

  async #context(orgId: string, userId: string): Promise<OpContext | NotFoundError> {
    const key = `${orgId}/${userId}`;
    const known = this.#contexts.get(key);
    if (known !== undefined) return known;
    const { tenancy } = this.#deps.managers;
    let ctx: OpContext | NotFoundError;
    try {
      ctx = userId === EMPTY_UUID
        ? await tenancy.serviceContext(this.#rctx, orgId)
        : await tenancy.memberContext(this.#rctx, orgId, userId);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      ctx = error;
    }
    if (this.#contexts.size >= CONTEXTS_KEPT) this.#contexts.clear();
    this.#contexts.set(key, ctx);
    return ctx;
  }

  #report(outcome: Outcome): void {
    if (typeof outcome.request === "string") refuse(outcome, outcome.request);
    if (outcome.kind === undefined || outcome.said === undefined) return;
    this.summary[outcome.kind]++;
    this.#deps.print(outcome.label + outcome.said);
  }
}

// One call takes items of one org, one user and one start.
function groupAlike(batch: readonly Outcome[]): Outcome[][] {
  const groups = new Map<string, Outcome[]>();
  for (const outcome of batch) {
    const { request } = outcome;
    if (typeof request === "string") continue;
    const key = JSON.stringify([request.orgId, request.userId, request.options]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [outcome]);
    else group.push(outcome);
  }
  return [...groups.values()];
}

function settle(outcome: Outcome, result: EnqueueResult | Error): void {
  // Not an answer about this line: nothing is reported, the error ends the command.
  if (result instanceof UnavailableError) return;
  if (result instanceof Error) return refuse(outcome, describeError(result).replace(/^\w*Error: /, ""));
  const inserted = result.outcome === "INSERTED";
  outcome.kind = inserted ? "inserted" : "existing";
  outcome.said = `${inserted ? "inserted" : "already there"} ${result.id}`;
}

function refuse(outcome: Outcome, why: string): void {
  outcome.kind = "refused";
  // It quotes the line, which may hold anything.
  outcome.said = `refused: ${oneLine(why)}`;
}
