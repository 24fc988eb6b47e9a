/**
 * The chaos: a fleet of the compiled binary on a real Postgres, and everything that can be done to both.
 *
 * @module
 */
import { join } from "node:path";
import { CHAINS } from "../../src/migrations.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { OpContext } from "../../src/core/context.ts";
import { silentLogger } from "../../src/core/log.ts";
import { noMetrics } from "../../src/core/metrics.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { MemoryTopics } from "../../src/infra/memory_topics.ts";
import { createManagers, type Managers } from "../../src/managers.ts";
import { createStorages } from "../../src/storages.ts";
import { createTestDatabase, startPrivateServer, type TestDatabase } from "../support/postgres.ts";
import type { PostgresServer } from "../support/postgres_server.ts";
import { TcpProxy } from "../support/tcp_proxy.ts";
import { type Findings, type Finished, judge } from "./check.ts";
import { Fleet, type Place } from "./fleet.ts";
import { LogTail } from "./log_tail.ts";
import { CHAOS } from "./worker.ts";

/** How much of it. */
export interface ChaosOptions {
  readonly binary: string;
  readonly items: number;
  readonly workers: number;
  /** One item in so many ends its process. */
  readonly poisonEvery: number;
  readonly leaseMs: number;
  readonly sweepMs: number;
  /** Every so often one worker is killed, and one frozen past its lease. */
  readonly killEveryMs: number;
  readonly freezeEveryMs: number;
  /** The library that fakes clocks; null leaves clocks right. */
  readonly fakeTime: string | null;
  /** Told of each step, for people. */
  readonly say: (line: string) => void;
}

/** What was done and what came of it. */
export interface ChaosReport {
  readonly findings: Findings;
  readonly seconds: number;
  readonly deaths: number;
  readonly kills: number;
  readonly freezes: number;
  readonly wrongClocks: number;
  /** From a fault's end to the first run after it, milliseconds, by what it was. */
  readonly resumedMs: Readonly<Record<string, readonly number[]>>;
  /** From a worker's death to the next run of an item that it held, milliseconds. */
  readonly takenOverMs: readonly number[];
  readonly strayLines: readonly string[];
  readonly unclean: number;
  readonly dead: number;
}

const CAPACITY = 10;
const WAIT_MS = 600_000;

/** Runs it. Whatever happens, its processes, its server and its files are gone afterwards. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = await Deno.makeTempDir({ prefix: "laneway-chaos-" });
  // Durable: a crash that took back what was acknowledged would be the server's fault, not the workers'.
  const server = await startPrivateServer({ fsync: true, settings: { max_connections: "400" } });
  const proxy = new TcpProxy(server.port);
  const db = await createTestDatabase(CHAINS, { adminUrl: server.url() });
  const log = join(folder, "log");
  const fleet = new Fleet(options.binary, flagsOf(options), placesOf(options, { db, proxy, log }));
  try {
    const managers = managersOf(db);
    const world = { options, server, proxy, db, fleet, tail: new LogTail(log) };
    const { enqueued, poisoned } = await enqueueAll(managers, options);
    return await new Chaos(world).run(enqueued, poisoned);
  } finally {
    await fleet.end();
    await proxy.close();
    await db.drop().catch(() => {});
    await server.remove();
    await Deno.remove(folder, { recursive: true });
  }
}

function flagsOf({ leaseMs, sweepMs }: ChaosOptions): string[] {
  return [
    ...["--lease", `${leaseMs}ms`, "--sweep", `${sweepMs}ms`, "--poll", "500ms", "--idle-poll", "1s"],
    ...[
      "--capacity",
      String(CAPACITY),
      "--pool-size",
      "4",
      "--system-pool-size",
      "2",
      "--heartbeat",
      "1s",
      "--drain-grace",
      "5s",
    ],
  ];
}

/** Every fourth worker reaches its database by a proxy; every fifth has a clock that is ten minutes off, one way or the other. */
function placesOf(
  { workers, fakeTime }: ChaosOptions,
  { db, proxy, log }: { readonly db: TestDatabase; readonly proxy: TcpProxy; readonly log: string },
): Place[] {
  return Array.from({ length: workers }, (_, place) => {
    const url = (login: "runtime" | "system") => place % 4 === 1 ? proxy.through(db.url(login)) : db.url(login);
    const off = fakeTime !== null && place % 5 === 2;
    return {
      env: {
        LANEWAY_DATABASE_URL: url("runtime"),
        LANEWAY_SYSTEM_DATABASE_URL: url("system"),
        CHAOS_LOG: log,
        ...(off
          ? { LD_PRELOAD: fakeTime, FAKETIME: place % 2 === 0 ? "+10m" : "-10m", FAKETIME_DONT_FAKE_MONOTONIC: "1" }
          : {}),
      },
    };
  });
}

function managersOf(db: TestDatabase): Managers {
  return createManagers({
    storages: createStorages({ engine: "postgres", databases: db.databases }),
    topics: new MemoryTopics(),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
    kinds: [CHAOS],
    itemRetentionMs: 86_400_000,
    keyRetentionMs: 86_400_000,
    outboxRetentionMs: 3_600_000,
    markerRetentionMs: 86_400_000,
  });
}

async function enqueueAll(managers: Managers, { items, poisonEvery }: ChaosOptions) {
  const rctx = managers.tenancy.requestContext({ type: "SERVICE", version: "chaos@1" });
  const contexts: OpContext[] = [];
  for (let n = 0; n < 3; n++) {
    const org = await managers.tenancy.createOrg(rctx, { name: `org ${n}` });
    contexts.push(await managers.tenancy.serviceContext(rctx, org.id));
  }
  const enqueued: string[] = [];
  const poisoned = new Set<string>();
  for (let from = 0; from < items; from += 2_000) {
    const count = Math.min(2_000, items - from);
    const batch = Array.from({ length: count }, (_, i) => ({
      kind: CHAOS.name,
      idempotencyKey: crypto.randomUUID(),
      payload: { ms: (from + i) % 50 === 0 ? 40 : 0, poison: (from + i) % poisonEvery === poisonEvery - 1 },
      // Killed at any moment, an item may lose an attempt to each death.
      maxAttempts: (from + i) % poisonEvery === poisonEvery - 1 ? 2 : 50,
    }));
    const results = await managers.work.enqueueMany(contexts[from % contexts.length] as OpContext, batch);
    results.forEach((result, i) => {
      if (result instanceof Error) throw result;
      enqueued.push(result.id);
      if (batch[i]?.payload.poison) poisoned.add(result.id);
    });
  }
  return { enqueued, poisoned };
}

interface World {
  readonly options: ChaosOptions;
  readonly server: PostgresServer;
  readonly proxy: TcpProxy;
  readonly db: TestDatabase;
  readonly fleet: Fleet;
  readonly tail: LogTail;
}

/** Items that a process held when it died. */
interface Orphans {
  readonly diedMs: number;
  readonly claims: ReadonlyMap<string, number>;
}

class Chaos {
  readonly #w: World;
  readonly #resumed: Record<string, number[]> = {};
  readonly #orphans: Orphans[] = [];
  #over = false;
  #kills = 0;
  #freezes = 0;

  constructor(world: World) {
    this.#w = world;
  }

  async run(enqueued: readonly string[], poisoned: ReadonlySet<string>): Promise<ChaosReport> {
    const { fleet, options, tail } = this.#w;
    const beganMs = Date.now();
    options.say(`${enqueued.length} items, ${poisoned.size} of them poisoned; ${options.workers} workers`);
    fleet.start();
    const watching = this.#watch();
    const hurting = Promise.all([this.#killEver(), this.#freezeEver()]);
    await this.#hurtTheDatabase();
    await this.#finished(enqueued.length);
    this.#over = true;
    await hurting;
    const unclean = await fleet.drain();
    await watching;
    await tail.read();
    const finished = await this.#readFinished();
    const findings = judge({
      enqueued,
      poisoned,
      lines: tail.lines,
      finished,
      faults: fleet.faults,
      echoMs: options.leaseMs * 3,
    });
    return {
      findings,
      seconds: (Date.now() - beganMs) / 1_000,
      deaths: fleet.restarts,
      kills: this.#kills,
      freezes: this.#freezes,
      wrongClocks: options.fakeTime === null ? 0 : Math.ceil((options.workers - 2) / 5),
      resumedMs: this.#resumed,
      takenOverMs: this.#takenOver(),
      strayLines: fleet.everybody.flatMap(({ stray }) => stray),
      unclean,
      dead: finished.filter(({ status }) => status === "failed").length,
    };
  }

  async #watch(): Promise<void> {
    while (!this.#over) {
      await this.#w.tail.read();
      await pause(50);
    }
  }

  async #killEver(): Promise<void> {
    while (!this.#over) {
      await pause(this.#w.options.killEveryMs);
      const victim = this.#someone();
      if (this.#over || victim === undefined) continue;
      const held = await this.#heldBy(victim.pid);
      this.#w.fleet.kill(victim);
      this.#kills++;
      this.#orphans.push({ diedMs: Date.now(), claims: held });
    }
  }

  async #freezeEver(): Promise<void> {
    const { freezeEveryMs, leaseMs } = this.#w.options;
    while (!this.#over) {
      await pause(freezeEveryMs);
      const victim = this.#someone();
      if (this.#over || victim === undefined) continue;
      this.#freezes++;
      await this.#w.fleet.freeze(victim, leaseMs * 1.5);
    }
  }

  #someone() {
    const { alive } = this.#w.fleet;
    // One that has begun to work: a process that is only starting proves little.
    const able = alive.filter(({ frozen, startedMs }) => !frozen && Date.now() - startedMs > 1_000);
    return able[Math.floor(Math.random() * able.length)];
  }

  async #heldBy(pid: number): Promise<Map<string, number>> {
    try {
      const rows = await this.#w.db.adminSql(
        // An item whose last holder died too waits before it is tried again: that is no matter of taking over.
        "select id, claims::text as claims from queue.work_items where status = 'claimed' and expiries = 0 and claimed_by like '%/' || $1",
        [String(pid)],
      );
      return new Map(rows.map((row) => [String(row.id), Number(row.claims)]));
    } catch {
      // The database is away at this moment; whoever dies now is not measured.
      return new Map();
    }
  }

  /** One thing after the other is done to the database, with work going on between them. */
  async #hurtTheDatabase(): Promise<void> {
    const { server, proxy, db, options } = this.#w;
    const { leaseMs } = options;
    const steps: readonly (readonly [what: string, hurt: () => Promise<void>])[] = [
      ["backends terminated", async () => {
        for (let n = 0; n < 10; n++) {
          await db.killBackends("application_name like 'chaos-worker@%' and random() < 0.5").catch(() => 0);
          await pause(200);
        }
      }],
      ["restarted fast", () => server.restart("fast")],
      ["crashed and restarted", () => server.restart("immediate")],
      ["connections a black hole", async () => {
        proxy.blackHole();
        await pause(leaseMs * 1.5);
        proxy.resume();
      }],
      ["failed over to read-only", async () => {
        await this.#readOnly("on");
        await pause(3_000);
        await this.#readOnly("off");
      }],
    ];
    for (const [what, hurt] of steps) {
      await pause(2_000);
      const fromMs = Date.now();
      await hurt();
      const toMs = Date.now();
      this.#w.fleet.faults.push({ what, pid: null, fromMs, toMs });
      const resumedMs = await this.#nextStart(toMs);
      if (resumedMs !== null) (this.#resumed[what] ??= []).push(resumedMs);
      options.say(
        `${what}: ${((toMs - fromMs) / 1_000).toFixed(1)} s; ${
          resumedMs === null ? "nothing was left to claim" : `the next run began ${resumedMs} ms later`
        }`,
      );
    }
  }

  async #readOnly(state: "on" | "off"): Promise<void> {
    const { db, server } = this.#w;
    // From another database, as this one's own sessions are read-only once it is.
    const admin = await PostgresClient.open(server.url());
    await admin.script(`alter database ${db.name} set default_transaction_read_only = ${state}`);
    await admin.close();
    await db.killBackends("application_name like 'chaos-worker@%'");
  }

  /** How long after a moment the next run began; null when all items were finished before one did. */
  async #nextStart(sinceMs: number): Promise<number | null> {
    const { tail, fleet } = this.#w;
    for (;;) {
      const next = tail.lines.findLast(() => true);
      if (next !== undefined && next.seenMs > sinceMs) {
        const first = tail.lines.find(({ seenMs, what }) => seenMs > sinceMs && what === "start");
        if (first !== undefined) return first.seenMs - sinceMs;
      }
      if (Date.now() - sinceMs > 60_000 || fleet.alive.length === 0) return null;
      await pause(20);
      const left = await this.#left().catch(() => 1);
      if (left === 0) return null;
    }
  }

  async #left(): Promise<number> {
    const [row] = await this.#w.db.adminSql(
      "select count(*) as n from queue.work_items where status in ('queued', 'claimed')",
    );
    return Number(row?.n ?? 0);
  }

  async #finished(items: number): Promise<void> {
    for (const untilMs = Date.now() + WAIT_MS; Date.now() < untilMs; await pause(500)) {
      const left = await this.#left().catch(() => items);
      if (left === 0) return;
    }
    this.#w.options.say("some items did not end in time");
  }

  async #readFinished(): Promise<Finished[]> {
    const rows = await this.#w.db.adminSql(`
      select id, 'done' as status, claims::text as claims, last_error from queue.work_history
      union all
      select id, 'failed', claims::text, last_error from queue.work_items where status = 'failed'`);
    return rows.map((row) => ({
      id: String(row.id),
      status: row.status as Finished["status"],
      claims: Number(row.claims),
      lastError: row.last_error as string | null,
    }));
  }

  /** When items that a dead worker held began to run under another claim. */
  #takenOver(): number[] {
    const starts = new Map<string, { fence: number; seenMs: number }[]>();
    for (const { item, fence, seenMs, what } of this.#w.tail.lines) {
      if (what === "start") starts.set(item, [...starts.get(item) ?? [], { fence, seenMs }]);
    }
    return this.#orphans.flatMap(({ diedMs, claims }) =>
      [...claims].flatMap(([item, fence]) => {
        const next = (starts.get(item) ?? []).find((start) => start.fence > fence && start.seenMs > diedMs);
        return next === undefined ? [] : [next.seenMs - diedMs];
      })
    );
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
