/**
 * The rig of the trials: a migrated database of real Postgres with the history of every row (HIST), a file of every run
 * (SEEN), an org to enqueue for, and the workers of one test, all of it gone when the test ends.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext } from "../../src/core/context.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { PostgresTopics } from "../../src/infra/postgres_topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import type { NewWorkItem, Payload, WorkKind } from "../../src/work/types.ts";
import { createTestDatabase, startPrivateServer, type TestDatabase } from "../support/postgres.ts";
import type { PostgresServer } from "../support/postgres_server.ts";
import { waitFor } from "../support/wait_for.ts";
import { TRIAL_KINDS } from "./kinds.ts";
import { WorkerProcess } from "./worker_process.ts";

/** The connections of a worker's pools, as `pg_stat_activity` shows them. */
export const WORKER_BACKENDS = "application_name like 'trial-worker@%' or application_name = 'laneway-listen'";
/** The listening connections. */
export const LISTENERS = "application_name = 'laneway-listen'";

/** One line of SEEN. */
export interface Seen {
  readonly item: string;
  readonly attempt: number;
  readonly pid: number;
  readonly what: "start" | "end" | "aborted";
  readonly atMs: number;
}

/** One change of a row, as the trigger saw it. */
export interface Change {
  readonly id: string;
  readonly was: string;
  readonly became: string;
  /** The token the row had before, and has after. */
  readonly tokenWas: string | null;
  readonly token: string | null;
  readonly attempts: number;
  readonly atMs: number;
}

/** An item's row, as the database shows it. */
export interface ItemRow {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly attempts: number;
  readonly claims: number;
  readonly claimedBy: string | null;
  readonly lastError: string | null;
  readonly note: string | null;
}

const HIST = [
  "create schema trial",
  `create table trial.hist (n bigint generated always as identity, id uuid, was text, became text, token_was uuid,
    token uuid, attempts int, at timestamptz)`,
  `create function trial.note() returns trigger language plpgsql security definer as $$ begin
    insert into trial.hist (id, was, became, token_was, token, attempts, at)
      values (old.id, old.status, new.status, old.claim_token, new.claim_token, new.attempts, clock_timestamp());
    return null;
  end $$`,
  "create trigger trial_hist after update on queue.work_items for each row execute function trial.note()",
  `create function trial.note_done() returns trigger language plpgsql security definer as $$ begin
    insert into trial.hist (id, was, became, token_was, token, attempts, at)
      values (new.id, 'claimed', 'done', new.claim_token, new.claim_token, new.attempts, clock_timestamp());
    return null;
  end $$`,
  "create trigger trial_done after insert on queue.work_history for each row execute function trial.note_done()",
  // Both tables, as one.
  `create view trial.items as
    select id, kind, status, attempts, claims, claimed_by, last_error, note from queue.work_items
    union all select id, kind, 'done', attempts, claims, null, last_error, note from queue.work_history`,
];

/** One trial's world. */
export class Trial {
  readonly db: TestDatabase;
  readonly managers: Managers;
  readonly folder: string;
  #ctx: OpContext | null = null;
  readonly #topics: PostgresTopics;
  readonly #workers: WorkerProcess[] = [];

  private constructor(db: TestDatabase, folder: string) {
    this.db = db;
    this.folder = folder;
    this.#topics = new PostgresTopics({ run: (sql, params) => db.databases.queue.system(sql, params) });
    this.managers = createManagers({
      storages: createStorages({ engine: "postgres", databases: db.databases }),
      topics: this.#topics,
      clock: systemClock,
      logger: silentLogger,
      metrics: noMetrics,
      kinds: TRIAL_KINDS,
      itemRetentionMs: 3_600_000,
      keyRetentionMs: 7_200_000,
      outboxRetentionMs: 3_600_000,
      markerRetentionMs: 86_400_000,
    });
  }

  /** Runs `test` in a world of its own; whatever happens, its workers and its database are gone afterwards. */
  static async with(test: (trial: Trial) => Promise<void>, server?: PostgresServer): Promise<void> {
    const folder = await Deno.makeTempDir({ prefix: "laneway-trial-" });
    const db = await createTestDatabase(CHAINS, { adminUrl: server?.url() });
    const trial = new Trial(db, folder);
    try {
      for (const statement of HIST) await db.adminSql(statement);
      await test(trial);
    } finally {
      await trial.#close(server !== undefined);
    }
  }

  /** As `with`, on a server of its own that the test may stop and crash. */
  static async withServer(test: (trial: Trial, server: PostgresServer) => Promise<void>): Promise<void> {
    const server = await startPrivateServer();
    try {
      await Trial.with((trial) => test(trial, server), server);
    } finally {
      await server.remove();
    }
  }

  /** The environment of a worker on this database. */
  env(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      LANEWAY_DATABASE_URL: this.db.url("runtime"),
      LANEWAY_SYSTEM_DATABASE_URL: this.db.url("system"),
      TRIAL_SEEN: `${this.folder}/seen`,
      ...more,
    };
  }

  /** The org it enqueues for. */
  async orgId(): Promise<string> {
    return (await this.#context()).orgId;
  }

  /** Starts a worker. */
  async worker(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start(args, this.env(env));
    this.#workers.push(worker);
    return worker;
  }

  /** Spawns a worker without waiting for anything. */
  async spawn(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const worker = await WorkerProcess.spawn(args, this.env(env));
    this.#workers.push(worker);
    return worker;
  }

  /** Enqueues one item and returns its id. */
  async enqueue<P extends Payload>(
    kind: WorkKind<P>,
    payload: P = {} as P,
    item: Partial<NewWorkItem> = {},
  ): Promise<string> {
    const ctx = await this.#context();
    const full = { kind: kind.name, payload, idempotencyKey: crypto.randomUUID(), ...item };
    const result = await this.managers.work.enqueue(ctx, full);
    assert.equal(result.outcome, "INSERTED");
    return result.id;
  }

  /** Enqueues `count` items of one kind and returns their ids. */
  async enqueueMany<P extends Payload>(kind: WorkKind<P>, count: number, payload: P = {} as P): Promise<string[]> {
    const ctx = await this.#context();
    const items = Array.from({ length: count }, () => ({
      kind: kind.name,
      payload,
      idempotencyKey: crypto.randomUUID(),
    }));
    const ids: string[] = [];
    for (const result of await this.managers.work.enqueueMany(ctx, items)) {
      if (result instanceof Error) throw result;
      ids.push(result.id);
    }
    return ids;
  }

  /** Every line handlers wrote so far. */
  async seen(): Promise<Seen[]> {
    const text = await Deno.readTextFile(`${this.folder}/seen`).catch(() => "");
    return text.split("\n").filter((line) => line !== "").map((line) => {
      const [item = "", attempt, pid, what, at] = line.split(" ");
      return { item, attempt: Number(attempt), pid: Number(pid), what: what as Seen["what"], atMs: Number(at) };
    });
  }

  /** The starts of one item. */
  async starts(item: string): Promise<Seen[]> {
    return (await this.seen()).filter((line) => line.item === item && line.what === "start");
  }

  /** Waits until an item has begun, `times` in all; returns that start. */
  async started(item: string, options: { times?: number; timeoutMs?: number } = {}): Promise<Seen> {
    const times = options.times ?? 1;
    return await waitFor(`start ${times} of an item`, async () => (await this.starts(item))[times - 1], options);
  }

  /** The rows, all of them or those of `ids`, in the order they were enqueued. */
  async rows(ids?: readonly string[]): Promise<ItemRow[]> {
    const rows = await this.db.adminSql(
      `select id, kind, status, attempts, claims, claimed_by, last_error, note from trial.items
        ${ids === undefined ? "" : "where id in (select value::uuid from jsonb_array_elements_text($1::text::jsonb))"}
        order by id`,
      ids === undefined ? [] : [JSON.stringify(ids)],
    );
    return rows.map((row) => ({
      id: String(row.id),
      kind: String(row.kind),
      status: String(row.status),
      attempts: Number(row.attempts),
      claims: Number(row.claims),
      claimedBy: row.claimed_by as string | null,
      lastError: row.last_error as string | null,
      note: row.note as string | null,
    }));
  }

  /** The row of one item. */
  async row(id: string): Promise<ItemRow> {
    const [row] = await this.rows([id]);
    assert.ok(row, `there is no item ${id}`);
    return row;
  }

  /** How many items have each status. */
  async counts(): Promise<Record<string, number>> {
    const rows = await this.db.adminSql("select status, count(*) as n from trial.items group by status");
    return Object.fromEntries(rows.map((row) => [String(row.status), Number(row.n)]));
  }

  /** Waits until every item is done or dead. */
  async allFinished(timeoutMs: number): Promise<void> {
    await waitFor("every item finished", async () => {
      const { queued = 0, claimed = 0 } = await this.counts().catch(() => ({ queued: 1, claimed: 0 }));
      return queued + claimed === 0;
    }, { timeoutMs, everyMs: 100 });
  }

  /** What HIST holds, in order. */
  async history(): Promise<Change[]> {
    const rows = await this.db.adminSql(
      "select id, was, became, token_was, token, attempts, (extract(epoch from at) * 1000)::text as at_ms from trial.hist order by n",
    );
    return rows.map((row) => ({
      id: String(row.id),
      was: String(row.was),
      became: String(row.became),
      tokenWas: row.token_was as string | null,
      token: row.token as string | null,
      attempts: Number(row.attempts),
      atMs: Number(row.at_ms),
    }));
  }

  /** That no item ended twice, and every end was written under the token that held the row then. */
  async assertOneEnd(): Promise<void> {
    const ends = (await this.history()).filter((change) => change.became === "done" || change.became === "failed");
    // Clearing the audit id is a change of a finished row, not an end.
    const real = ends.filter((change) => change.was !== change.became);
    assert.equal(new Set(real.map((change) => change.id)).size, real.length, "an item ended twice");
    for (const change of real.filter((end) => end.became === "done")) {
      assert.deepEqual([change.was, change.token], ["claimed", change.tokenWas]);
    }
  }

  async #context(): Promise<OpContext> {
    if (this.#ctx !== null) return this.#ctx;
    const { tenancy } = this.managers;
    const rctx = tenancy.requestContext({ type: "SERVICE", version: "trial@1" });
    const org = await tenancy.createOrg(rctx, { name: "trial" });
    this.#ctx = await tenancy.serviceContext(rctx, org.id);
    return this.#ctx;
  }

  /** @param disposable The server goes as well, and may be down at this moment. */
  async #close(disposable: boolean): Promise<void> {
    try {
      await Promise.all(this.#workers.map((worker) => worker.kill()));
      await this.#topics.close();
      await this.db.drop().catch((error) => {
        if (!disposable) throw error;
      });
    } finally {
      await Deno.remove(this.folder, { recursive: true });
    }
  }
}

/** Lets time pass in a trial whose fault needs it: an outage of a given length, a pace of enqueues. Proves nothing. */
export function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
