/**
 * The relay: hands outbox rows on, to work as items and to the activity area as events.
 *
 * Handing a row on and marking it done are two steps in two areas, and a crash may fall between them. So both branches
 * are keyed by the row's id, and a row handed on twice, by two relays at once, in any order, becomes one item or event.
 *
 * @module
 */
import type { AuditManager } from "../audit/types.ts";
import type { RequestContext } from "../core/context.ts";
import { describeError } from "../core/describe_error.ts";
import { invariant, UnavailableError } from "../core/errors.ts";
import { type Logger, silentLogger } from "../core/log.ts";
import { type Metrics, noMetrics } from "../core/metrics.ts";
import type { Topics } from "../infra/topics.ts";
import { changedEntity, isTooOld, isWork } from "./rules.ts";
import type { OutboxLag, OutboxRelay, OutboxRow, OutboxStorage, RelayCounts, RelaySink } from "./types.ts";

/** What a relay is made of. */
export interface OutboxRelayOptions {
  readonly storage: OutboxStorage;
  readonly audit: AuditManager;
  /** Where `work.*` rows go. Asked for at each call, as work is built after the relay it is given. */
  readonly sink: () => RelaySink;
  readonly topics: Topics;
  /** How long idempotency keys stay taken, milliseconds. A row pending for longer is never relayed. */
  readonly keyRetentionMs: number;
  /** How long rows handed on are kept, milliseconds. */
  readonly retentionMs: number;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

// Rows read, handed on and marked done together.
const PAGE = 500;
// Rows handed on at once: enough to fill the batches of the manager behind the sink, few enough to leave it its pool.
const CONCURRENCY = 16;
// Rows one pass may leave behind and still look past. Each is told to every further read, so there is a bound.
const MAX_LEFT = 10_000;
// Rows of one branch that may find their area out of reach before the rest of the page is left to a later pass.
const MAX_UNAVAILABLE = 3;
// Rows of one purge.
const PURGE_LIMIT = 1_000;

type Fate = "relayed" | "unknown_kind" | "failed" | "too_old";

/** Builds the relay. */
export function createOutboxRelay(options: OutboxRelayOptions): OutboxRelay {
  invariant(options.keyRetentionMs > 0, `keyRetentionMs must be above 0, is ${options.keyRetentionMs}`);
  invariant(options.retentionMs >= 0, `retentionMs must be 0 or above, is ${options.retentionMs}`);
  return new OutboxRelayImpl(options);
}

class OutboxRelayImpl implements OutboxRelay {
  readonly #options: OutboxRelayOptions;
  readonly #logger: Logger;
  readonly #metrics: Metrics;

  constructor(options: OutboxRelayOptions) {
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#metrics = options.metrics ?? noMetrics;
  }

  async relay(rows: readonly OutboxRow[]): Promise<RelayCounts> {
    const fates = new Map<string, Fate>();
    for (let i = 0; i < rows.length; i += PAGE) await this.#handOn(rows.slice(i, i + PAGE), fates);
    return this.#tell(fates);
  }

  async relayPending(_rctx: RequestContext, limit: number): Promise<RelayCounts> {
    const fates = new Map<string, Fate>();
    let relayed = 0;
    let left: string[] = [];
    while (relayed < limit && left.length < MAX_LEFT) {
      const wanted = Math.min(limit - relayed, PAGE);
      const page = await this.#options.storage.readPending(wanted, left);
      const old = page.filter((row) => isTooOld(row.ageSeconds, this.#options.keyRetentionMs));
      for (const row of old) fates.set(row.id, "too_old");
      await this.#handOn(page.filter((row) => !fates.has(row.id)), fates);
      const leftNow = page.filter((row) => fates.get(row.id) !== "relayed").map((row) => row.id);
      relayed += page.length - leftNow.length;
      left = left.concat(leftNow);
      if (page.length < wanted) break;
    }
    const counts = this.#tell(fates);
    this.#metrics.set("laneway_outbox_unknown_kind", counts.unknownKind);
    this.#metrics.set("laneway_outbox_too_old", counts.tooOld);
    return counts;
  }

  async purgeDone(_rctx: RequestContext): Promise<number> {
    return await this.#options.storage.purgeDone(this.#options.retentionMs, PURGE_LIMIT);
  }

  async readLag(_rctx: RequestContext): Promise<OutboxLag> {
    return await this.#options.storage.readLag();
  }

  /** Hands one page on and marks what arrived. Never throws; every row gets its fate. */
  async #handOn(page: readonly OutboxRow[], fates: Map<string, Fate>): Promise<void> {
    const errors: string[] = [];
    const unavailable = { work: 0, event: 0 };
    await runChains(chainsOf(page), async (row) => {
      const branch = isWork(row) ? "work" : "event";
      // Out of reach for some is out of reach for all: each would wait for its own deadline.
      if (unavailable[branch] >= MAX_UNAVAILABLE) return fates.set(row.id, "failed");
      try {
        fates.set(row.id, branch === "work" ? await this.#enqueue(row) : await this.#append(row));
      } catch (error) {
        if (error instanceof UnavailableError) unavailable[branch]++;
        errors.push(`${row.kind} ${row.id}: ${describeError(error)}`);
        fates.set(row.id, "failed");
      }
    });
    const arrived = page.filter((row) => fates.get(row.id) === "relayed");
    try {
      await this.#options.storage.markDone(arrived.map(({ orgId, id }) => ({ orgId, id })));
    } catch (error) {
      // They did arrive, and will again on a later pass, to no effect.
      errors.push(`marking ${arrived.length} rows done: ${describeError(error)}`);
      for (const row of arrived) fates.set(row.id, "failed");
    }
    if (errors.length > 0) {
      this.#logger.warn("outbox rows left pending", { failures: errors.length, first: errors[0] });
    }
  }

  async #enqueue(row: OutboxRow): Promise<Fate> {
    const outcome = await this.#options.sink().enqueueRelayed(row.orgId, row);
    return outcome === "UNKNOWN_KIND" ? "unknown_kind" : "relayed";
  }

  async #append(row: OutboxRow): Promise<Fate> {
    const { id, orgId, kind, actorId, requestId, payload } = row;
    const { seq } = await this.#options.audit.appendEvent({ id, orgId, kind, actorId, requestId, payload });
    // Published again when the event was there already: whoever put it there may have died before it could tell.
    const changed = changedEntity(row);
    if (changed !== null) await this.#options.topics.publish("ENTITY_CHANGED", { orgId, ...changed, seq });
    return "relayed";
  }

  #tell(fates: ReadonlyMap<string, Fate>): RelayCounts {
    const sum = { relayed: 0, unknown_kind: 0, failed: 0, too_old: 0 };
    let firstTooOld: string | undefined;
    for (const [id, fate] of fates) {
      sum[fate]++;
      if (fate === "too_old") firstTooOld ??= id;
    }
    for (const [outcome, n] of Object.entries(sum)) {
      if (n > 0) this.#metrics.count("laneway_outbox_relayed_total", { outcome }, n);
    }
    if (sum.too_old > 0) {
      this.#logger.error("outbox rows are older than the key retention and are not relayed", {
        rows: sum.too_old,
        oldest: firstTooOld,
        advice: "see whether their work was done, then mark them done or write them anew",
      });
    }
    if (sum.unknown_kind > 0) {
      this.#logger.warn("outbox rows wait for a build that knows their kind", { rows: sum.unknown_kind });
    }
    return { relayed: sum.relayed, unknownKind: sum.unknown_kind, failed: sum.failed, tooOld: sum.too_old };
  }
}

/** Events of one org go one after the other, so that their seqs follow the order of their writes; items need no order. */
function chainsOf(page: readonly OutboxRow[]): OutboxRow[][] {
  const chains: OutboxRow[][] = [];
  const eventsOf = new Map<string, OutboxRow[]>();
  for (const row of page) {
    const events = isWork(row) ? undefined : eventsOf.get(row.orgId);
    if (events !== undefined) {
      events.push(row);
      continue;
    }
    const chain = [row];
    chains.push(chain);
    if (!isWork(row)) eventsOf.set(row.orgId, chain);
  }
  return chains;
}

async function runChains(chains: readonly OutboxRow[][], run: (row: OutboxRow) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let chain = chains[next++]; chain !== undefined; chain = chains[next++]) {
      for (const row of chain) await run(row);
    }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, chains.length) }, lane));
}
