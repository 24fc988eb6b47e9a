/**
 * Work at a steady rate for long: with a reader that pins a snapshot, under which no dead row can be removed; or under
 * churn, with autovacuum at its defaults.
 *
 * @module
 */
import { PostgresClient } from "../../src/db/client.ts";
import type { FlatDatabase } from "./flat_database.ts";
import { BENCH_KIND, type Rig } from "./rig.ts";

/** What one window of a run saw. */
export interface Window {
  readonly atS: number;
  readonly producedPerS: number;
  readonly consumedPerS: number;
  readonly backlog: number;
  /** Means over the window's statements. */
  readonly claimMs: number;
  readonly claims: number;
  readonly settleMs: number;
}

/** How a run goes. */
export interface HoldOptions {
  readonly perSecond: number;
  readonly seconds: number;
  readonly windowS: number;
  /** Whether a repeatable-read reader is open meanwhile. */
  readonly pinned: boolean;
  readonly capacity: number;
}

const STEP_MS = 50;

/** Produces and consumes for the given time, and says what each window saw. Items left are worked off, then counted. */
export async function holdRate(
  db: FlatDatabase,
  options: HoldOptions,
  onWindow: (window: Window) => void = () => {},
): Promise<Window[]> {
  const rig = await db.rig();
  let consumed = 0;
  const worker = rig.worker({ capacity: options.capacity, handle: () => void consumed++ });
  const reader = options.pinned ? await pinSnapshot(db) : null;
  const windows: Window[] = [];
  let produced = 0;
  try {
    worker.start();
    const startMs = performance.now();
    let last = { produced: 0, consumed: 0, atMs: startMs };
    db.statements.reset();
    while (performance.now() - startMs < options.seconds * 1_000) {
      const due = Math.floor((performance.now() - startMs) / 1_000 * options.perSecond) - produced;
      // A producer that is behind does not catch up in one go: it is no faster than the database takes its rows.
      produced += await enqueue(rig, Math.min(due, options.perSecond));
      const nowMs = performance.now();
      if (nowMs - last.atMs >= options.windowS * 1_000) {
        const seconds = (nowMs - last.atMs) / 1_000;
        const [claim, settle] = [db.statements.of("claim"), db.statements.of("settle")];
        const window: Window = {
          atS: Math.round((nowMs - startMs) / 1_000),
          producedPerS: (produced - last.produced) / seconds,
          consumedPerS: (consumed - last.consumed) / seconds,
          backlog: produced - consumed,
          claimMs: claim.ms / claim.calls,
          claims: claim.calls,
          settleMs: settle.ms / settle.calls,
        };
        windows.push(window);
        onWindow(window);
        db.statements.reset();
        last = { produced, consumed, atMs: nowMs };
      }
      await new Promise((next) => setTimeout(next, STEP_MS));
    }
  } finally {
    await reader?.close();
    await worker.drain();
  }
  return windows;
}

let turn = 0;

/** Enqueues `count` items as one statement of one org, the orgs in turn. */
async function enqueue({ managers, contexts }: Rig, count: number): Promise<number> {
  const ctx = contexts[turn++ % contexts.length];
  if (ctx === undefined || count <= 0) return 0;
  const items = Array.from({ length: count }, (_, n) => ({
    kind: BENCH_KIND.name,
    idempotencyKey: crypto.randomUUID(),
    payload: { n },
  }));
  const results = await managers.work.enqueueMany(ctx, items);
  return results.filter((result) => !(result instanceof Error) && result.outcome === "INSERTED").length;
}

/** A reader that looked once and stays in its transaction, as a dump or a long report does. */
async function pinSnapshot(db: FlatDatabase): Promise<PostgresClient> {
  const client = await PostgresClient.open(db.adminUrl, { applicationName: "bench-pin" });
  await client.script("begin isolation level repeatable read");
  await client.query("select count(*) from core.orgs", []);
  return client;
}
