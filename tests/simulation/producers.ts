/**
 * Producers of a world: they enqueue, alone and in batches, twice under one key, with delays, and write outbox rows that
 * the relay hands on. What they are told is what they hold the world to afterwards.
 *
 * @module
 */
import type { OpContext } from "../../src/core/context.ts";
import { NotFoundError, UnavailableError } from "../../src/core/errors.ts";
import { newOutboxRow } from "../../src/outbox/rows.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import type { EnqueueOptions, EnqueueResult, NewWorkItem } from "../../src/work/types.ts";
import { keyOf } from "./history.ts";
import type { SimProcess } from "./process.ts";
import { must } from "./transitions.ts";
import type { World } from "./world.ts";

const TRIES = 60;

/** An enqueue as it was asked for. */
interface Enqueued {
  readonly ctx: OpContext;
  readonly item: NewWorkItem;
  readonly options: EnqueueOptions;
  readonly askedMs: number;
}

/** Makes work until its batches are made. */
export class Producer {
  /** Whether it has nothing left to do. */
  finished = false;
  readonly #world: World;
  readonly #process: SimProcess;
  #made = 0;

  constructor(world: World, process: SimProcess) {
    this.#world = world;
    this.#process = process;
  }

  /** Runs to its end. Never throws. */
  async run(): Promise<void> {
    const { plan, random } = this.#world;
    const { clock } = this.#process;
    for (let batch = 0; batch < plan.batches; batch++) {
      await clock.sleep(random.skewed(900, 5_000));
      const { org, user } = this.#world.pickMember();
      const ctx = await this.#insist(() => this.#process.contextOf(org, user));
      if (ctx !== null) await this.#produce(ctx);
    }
    this.finished = true;
  }

  async #produce(ctx: OpContext): Promise<void> {
    const { random, plan } = this.#world;
    // Rows older than the keys are kept are not relayed: worlds with short retentions have none.
    const outbox = plan.keyRetentionMs > 3_600_000;
    switch (random.weighted([[4, "one"], [3, "many"], [outbox ? 3 : 0, "outbox"]] as const)) {
      case "one":
        return await this.#one(ctx);
      case "many":
        return await this.#many(ctx);
      case "outbox":
        return await this.#outbox(ctx);
    }
  }

  async #one(ctx: OpContext): Promise<void> {
    const item = this.#item(ctx);
    const options = this.#start();
    const askedMs = this.#world.databaseMs();
    const result = await this.#insist(() => this.#process.managers.work.enqueue(ctx, item, options));
    if (result !== null) this.#told({ ctx, item, options, askedMs }, result);
  }

  async #many(ctx: OpContext): Promise<void> {
    const items = Array.from({ length: this.#world.random.whole(2, 8) }, () => this.#item(ctx));
    const options = this.#start();
    const askedMs = this.#world.databaseMs();
    const results = await this.#insist(() => this.#process.managers.work.enqueueMany(ctx, items, options));
    results?.forEach((result, i) => {
      const item = items[i];
      if (item !== undefined && !(result instanceof Error)) this.#told({ ctx, item, options, askedMs }, result);
    });
  }

  /** A core write with its outbox rows; then the relay at once, a hint, or nothing: the sweep takes what is left. */
  async #outbox(ctx: OpContext): Promise<void> {
    const { random } = this.#world;
    const rows: OutboxRow[] = Array.from({ length: random.whole(1, 3) }, () => {
      if (random.chance(0.6)) {
        return newOutboxRow(ctx, `work.${random.pick(["task", "errand"])}`, this.#outboxPayload());
      }
      return newOutboxRow(ctx, "shop.order.placed", { id: crypto.randomUUID() });
    });
    const written = await this.#insist(() => this.#process.core.writeRows(rows).then(() => true));
    if (written !== true) return;
    const next = random.weighted([[3, "relay"], [3, "hint"], [2, "nothing"]] as const);
    if (next === "relay") await this.#process.managers.outbox.relay(rows);
    if (next === "hint") this.#world.publish("OUTBOX_PENDING", {});
  }

  #outboxPayload(): { fate: string; lane?: string } {
    const { random } = this.#world;
    return { fate: "normal", ...(random.chance(0.5) ? { lane: random.pick(this.#world.lanes) } : {}) };
  }

  #item(ctx: OpContext): NewWorkItem {
    const { random, plan } = this.#world;
    const fate = random.weighted(
      [[plan.poison, "poison"], [plan.doomed, "doomed"], [1 - plan.poison - plan.doomed, "normal"]] as const,
    );
    // Keys are shared by the producers, and now and then one is used twice.
    const n = random.chance(0.15) ? random.whole(0, this.#made) : this.#made++;
    return {
      // Ids are unique within an org: some orgs have items of one id, by one key.
      ...(n % 3 === 0 ? { id: this.#world.twinId(n) } : {}),
      kind: random.weighted([[5, "TASK"], [2, "ERRAND"], [2, "CHORE"]] as const),
      idempotencyKey: `key ${n}`,
      payload: { fate, n, org: ctx.orgId },
      lane: random.pick(this.#world.lanes),
      priority: random.pick([1, 10, 10, 50]),
      maxAttempts: random.pick([1, 2, 3, 3, 5]),
    };
  }

  #start(): EnqueueOptions {
    const { random } = this.#world;
    if (random.chance(0.6)) return {};
    if (random.chance(0.5)) return { delayMs: Math.round(random.skewed(2_000, 15_000)) };
    return { notBefore: new Date(Math.round(this.#world.databaseMs() + random.between(-5_000, 8_000))) };
  }

  #told({ ctx, item, options, askedMs }: Enqueued, { id, outcome, item: found }: EnqueueResult): void {
    this.#world.guard(() => {
      this.#world.told(`${ctx.orgId}/${item.idempotencyKey}`, id);
      const { org } = (found?.payload ?? {}) as { org?: string };
      must(org === undefined || org === ctx.orgId, "isolation", () => `an enqueue was told of another org's item`);
      const known = this.#world.truth.history.everItems.has(keyOf(ctx.orgId, id));
      must(known, "nothing lost", () => `an enqueue was told ${outcome} of an item that its org never had`);
      if (outcome !== "INSERTED") return;
      const row = this.#world.truth.created.get(keyOf(ctx.orgId, id));
      const name = this.#world.trace.name("item", id);
      must(row !== undefined, "nothing lost", () => `${name} was said to be inserted and never was`);
      const same = row.created_by === ctx.userId && row.request_id === ctx.requestId && row.kind === item.kind &&
        row.payload === JSON.stringify(item.payload) && row.lane === item.lane && row.priority === item.priority &&
        row.max_attempts === item.maxAttempts && row.idempotency_key === item.idempotencyKey;
      must(same, "create", () => `${name} is not what was enqueued`);
      const dueMs = options.notBefore?.getTime() ?? askedMs + (options.delayMs ?? 0);
      must(row.available_at >= Math.floor(dueMs), "delay", () => `${name} is due before the time it was asked for`);
    });
  }

  /** Asks until it is answered; null when the org is gone or nobody answers. */
  async #insist<T>(ask: () => Promise<T>): Promise<T | null> {
    for (let tries = 0; tries < TRIES; tries++) {
      try {
        return await ask();
      } catch (error) {
        if (error instanceof NotFoundError) return null;
        if (!(error instanceof UnavailableError)) {
          this.#world.guard(() => {
            throw error;
          });
          return null;
        }
      }
      await this.#process.clock.sleep(this.#world.random.between(50, 1_000));
    }
    return null;
  }
}
