/**
 * The producing half of the work manager: create items, report collisions, wake workers.
 *
 * @module
 */
import { showValue } from "../core/describe_error.ts";
import type { Clock } from "../core/clock.ts";
import type { OpContext } from "../core/context.ts";
import { LanewayError, NotFoundError, UnavailableError, ValidationError } from "../core/errors.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Topics } from "../infra/topics.ts";
import type { OutboxRow } from "../outbox/types.ts";
import { type Attribution, buildInsert } from "./new_item.ts";
import type { CallerTransaction, ItemInsert, WorkStorage } from "./storage.ts";
import type { EnqueueOptions, EnqueueResult, InsertOutcome, NewWorkItem, Payload, WorkKind } from "./types.ts";

/** Items of one statement: beyond a thousand rows a statement gains nothing, and fewer are not worth a second one. */
const CHUNK = 1_000;
const SMALLEST_CHUNK = 250;
/** Encoded payloads of one statement, in UTF-16 units: Postgres refuses a JSON array of 256 MB, and memory is dear. */
const CHUNK_UNITS = 8_000_000;
const READ_BACKS = 50;
/** Statements of one call at once: while some are on their way the next one's items are checked and encoded. */
const CHUNKS_IN_FLIGHT = 3;

/** What an `Enqueuer` is made of. */
export interface EnqueuerOptions {
  readonly storage: WorkStorage;
  readonly kinds: ReadonlyMap<string, WorkKind>;
  readonly topics: Topics;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly payloadLimitBytes: number;
}

/** Creates items; see `WorkManager` for the contracts of the methods of the same names. */
export class Enqueuer {
  readonly #o: EnqueuerOptions;

  constructor(options: EnqueuerOptions) {
    this.#o = options;
  }

  async enqueue<P extends Payload>(
    ctx: OpContext,
    item: NewWorkItem<P>,
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult> {
    const insert = this.#build(item, attributionOf(ctx), options);
    const outcome = await this.#createOne(ctx.orgId, insert, item.id === undefined);
    return this.#report(ctx.orgId, insert, outcome);
  }

  async enqueueMany(
    ctx: OpContext,
    items: readonly NewWorkItem[],
    options: EnqueueOptions = {},
  ): Promise<(EnqueueResult | Error)[]> {
    const results: (EnqueueResult | Error)[] = [];
    const attribution = attributionOf(ctx);
    const nowMs = this.#o.clock.now();
    const chunks = this.#chunks(items, (item) => this.#build(item, attribution, { ...options, nowMs }));
    // Each takes the next chunk. Of two items of one id or key the first one wins: then one goes after the other.
    const worker = async () => {
      for (const { start, entries, minted } of chunks) {
        const told = await this.#createChunk(ctx.orgId, entries, minted);
        told.forEach((result, i) => results[start + i] = result);
      }
    };
    const workers = Array.from({ length: repeats(items) ? 1 : CHUNKS_IN_FLIGHT }, worker);
    // All are waited for, so that a call that fails has nothing under way any more.
    const failed = (await Promise.allSettled(workers)).find((ended) => ended.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return results;
  }

  /** Items in pieces of one statement each, built as they are asked for: so many that all that may be on their way are. */
  *#chunks(items: readonly NewWorkItem[], build: (item: NewWorkItem) => ItemInsert): Generator<Chunk> {
    const size = Math.min(Math.max(Math.ceil(items.length / CHUNKS_IN_FLIGHT), SMALLEST_CHUNK), CHUNK);
    let built: (ItemInsert | ValidationError)[] = [];
    for (let start = 0; start < items.length;) {
      const more = items.slice(start + built.length, start + size);
      built = built.concat(more.map((item) => {
        try {
          return build(item);
        } catch (error) {
          if (error instanceof ValidationError) return error;
          throw error;
        }
      }));
      const entries = built.slice(0, this.#chunkLength(built, 0));
      built = built.slice(entries.length);
      const minted = items.slice(start, start + entries.length).every((item) => item.id === undefined);
      yield { start, entries, minted };
      start += entries.length;
    }
  }

  async enqueueIn<P extends Payload>(
    tx: CallerTransaction,
    ctx: OpContext,
    item: NewWorkItem<P>,
    options: EnqueueOptions = {},
  ): Promise<EnqueueResult> {
    const insert = this.#build(item, attributionOf(ctx), options);
    const outcome = await this.#o.storage.createItemIn(tx, ctx.orgId, insert);
    this.#count(insert.item.kind, outcome);
    // The caller's transaction is not committed yet, so nothing can be read back outside it.
    return { outcome, id: insert.item.id, item: outcome === "INSERTED" ? insert.item : null };
  }

  async enqueueRelayed(orgId: string, row: OutboxRow): Promise<"ENQUEUED" | "EXISTS" | "UNKNOWN_KIND"> {
    const name = row.kind.replace(/^work\./, "").toUpperCase();
    const kind = this.#o.kinds.get(name);
    if (kind === undefined) return "UNKNOWN_KIND";
    const { lane, ...payload } = row.payload;
    const item: NewWorkItem = {
      id: row.id,
      kind: name,
      idempotencyKey: row.id,
      payload,
      createdAt: row.createdAt,
      ...(typeof lane === "string" ? { lane } : {}),
    };
    const attribution = { actorId: row.actorId, requestId: row.requestId, traceparent: row.traceparent };
    const insert = this.#build(item, attribution, {});
    const outcome = await this.#createOne(orgId, insert, false);
    this.#count(name, outcome);
    if (outcome === "INSERTED") return "ENQUEUED";
    // A relay that died between its insert and its hint: the hint is sent now, while the row still waits.
    const existing = await this.#o.storage.readItem(orgId, row.id);
    if (existing?.status === "queued") this.#wake(existing.lane);
    return "EXISTS";
  }

  #build(item: NewWorkItem, attribution: Attribution, start: EnqueueOptions & { nowMs?: number }): ItemInsert {
    const kind = this.#o.kinds.get(item.kind);
    if (kind === undefined) {
      const known = [...this.#o.kinds.keys()].sort().join(", ");
      throw new ValidationError(
        "kind",
        `Cannot use kind "${showValue(item.kind)}": this build knows ${known || "no kinds"}`,
      );
    }
    const { payloadLimitBytes, clock } = this.#o;
    return buildInsert(item, { kind, attribution, nowMs: start.nowMs ?? clock.now(), payloadLimitBytes, start });
  }

  /** How many entries from `start` on make one statement: at least one. */
  #chunkLength(built: readonly (ItemInsert | ValidationError)[], start: number): number {
    const most = Math.min(CHUNK, built.length - start);
    if (most * this.#o.payloadLimitBytes <= CHUNK_UNITS) return most;
    let units = 0;
    for (let n = 0; n < most; n++) {
      const entry = built[start + n];
      if (entry === undefined || entry instanceof Error) continue;
      units += JSON.stringify(entry.item.payload).length;
      if (units > CHUNK_UNITS && n > 0) return n;
    }
    return most;
  }

  async #createChunk(
    orgId: string,
    chunk: readonly (ItemInsert | ValidationError)[],
    minted: boolean,
  ): Promise<(EnqueueResult | Error)[]> {
    const inserts = chunk.filter((entry): entry is ItemInsert => !(entry instanceof Error));
    const outcomes = new Map<ItemInsert, InsertOutcome | Error>();
    try {
      const told = await this.#create(orgId, inserts, { minted });
      inserts.forEach((insert, i) => outcomes.set(insert, told[i] ?? "ID_EXISTS"));
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      // One row's data harmed the statement: each goes by itself, so that it harms no other.
      for (const insert of inserts) outcomes.set(insert, await this.#createAlone(orgId, insert, minted));
    }
    for (const lane of new Set(inserts.filter((i) => outcomes.get(i) === "INSERTED").map(({ item }) => item.lane))) {
      this.#wake(lane);
    }
    const results: (EnqueueResult | Error)[] = [];
    // Collisions are read back a few at a time: a repeated import must not take a round trip after the other.
    for (let start = 0; start < chunk.length; start += READ_BACKS) {
      const part = chunk.slice(start, start + READ_BACKS);
      results.push(
        ...await Promise.all(part.map((entry) => {
          if (entry instanceof Error) return entry;
          const outcome = outcomes.get(entry) ?? "ID_EXISTS";
          return outcome instanceof Error ? outcome : this.#report(orgId, entry, outcome).catch(notFound);
        })),
      );
    }
    return results;
  }

  async #createAlone(orgId: string, insert: ItemInsert, minted: boolean): Promise<InsertOutcome | Error> {
    try {
      const [outcome] = await this.#create(orgId, [insert], { minted });
      return outcome ?? "ID_EXISTS";
    } catch (error) {
      if (error instanceof LanewayError) return error;
      throw error;
    }
  }

  /** Inserts one item and tells of it: with the insert's own commit where that may be, else behind it. */
  async #createOne(orgId: string, insert: ItemInsert, minted: boolean): Promise<InsertOutcome> {
    const { storage, topics } = this.#o;
    const { lane } = insert.item;
    const carried = storage.carriesHints === true ? topics.carry?.("WORK_AVAILABLE", { lane }) ?? null : null;
    try {
      const [outcome = "ID_EXISTS"] = await this.#create(orgId, [insert], { minted, hint: carried?.text ?? null });
      if (outcome === "INSERTED" && carried === null) this.#wake(lane);
      return outcome;
    } finally {
      carried?.ended();
    }
  }

  /**
   * Inserts; an answer that was lost is asked for again, since a create that is repeated changes nothing. Each try carries
   * the hint: whichever inserts, tells of it.
   */
  async #create(
    orgId: string,
    inserts: readonly ItemInsert[],
    { minted, hint = null }: { readonly minted: boolean; readonly hint?: string | null },
  ): Promise<InsertOutcome[]> {
    const { storage } = this.#o;
    try {
      return await storage.createItems(orgId, inserts, hint);
    } catch (error) {
      if (!(error instanceof UnavailableError) || error.outcome !== "unknown") throw error;
      const outcomes = await storage.createItems(orgId, inserts, hint);
      // An id minted in this call that "exists" is the row of the first try.
      return minted ? outcomes.map((outcome) => outcome === "ID_EXISTS" ? "INSERTED" : outcome) : outcomes;
    }
  }

  async #report(orgId: string, insert: ItemInsert, outcome: InsertOutcome): Promise<EnqueueResult> {
    const { item } = insert;
    this.#count(item.kind, outcome);
    switch (outcome) {
      case "INSERTED":
        return { outcome, id: item.id, item };
      case "ID_EXISTS":
        return { outcome, id: item.id, item: await this.#o.storage.readItem(orgId, item.id) };
      case "KEY_EXISTS": {
        const holder = await this.#o.storage.readItemByKey(orgId, item.idempotencyKey);
        // Two creates of one id and key at once: the storage's statement may see the key alone.
        if (holder?.id === item.id) return { outcome: "ID_EXISTS", id: item.id, item: holder.item };
        if (holder !== null) return { outcome, id: holder.id, item: holder.item };
        // The key's retention ended between the two statements.
        throw new NotFoundError(`The holder of key "${item.idempotencyKey}" was purged meanwhile: enqueue again`);
      }
    }
  }

  #wake(lane: string): void {
    void this.#o.topics.publish("WORK_AVAILABLE", { lane });
  }

  #count(kind: string, outcome: InsertOutcome): void {
    this.#o.metrics.count("laneway_items_enqueued_total", { kind, outcome: outcome.toLowerCase() });
  }
}

/** One piece of a long enqueue. */
interface Chunk {
  readonly start: number;
  readonly entries: readonly (ItemInsert | ValidationError)[];
  /** Whether every id was minted here. */
  readonly minted: boolean;
}

/** Whether two items have an id or a key in common. */
function repeats(items: readonly NewWorkItem[]): boolean {
  const ids = items.flatMap(({ id }) => id === undefined ? [] : [String(id).toLowerCase()]);
  return new Set(items.map(({ idempotencyKey }) => idempotencyKey)).size < items.length ||
    new Set(ids).size < ids.length;
}

/** One key whose holder was purged meanwhile is its caller's to repeat, and harms no other. */
function notFound(error: unknown): NotFoundError {
  if (error instanceof NotFoundError) return error;
  throw error;
}

function attributionOf(ctx: OpContext): Attribution {
  return { actorId: ctx.userId, requestId: ctx.requestId, traceparent: ctx.traceparent ?? null };
}
