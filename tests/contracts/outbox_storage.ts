/**
 * The contract of `OutboxStorage`, and of the helpers that write its rows.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import type { OutboxRow, OutboxStorage } from "../../src/outbox/types.ts";
import { type Cases, contractSuite, type Harness } from "./contract.ts";

/** What the outbox suite runs over. */
export interface OutboxHarness extends Harness {
  /** The storage under test. */
  readonly storage: OutboxStorage;
  /** Writes rows of one org as a core write would, in one operation, on database time. */
  seed(rows: readonly OutboxRow[]): Promise<void>;
}

/** Runs the contract over the storage that `make` provides. */
export function testOutboxStorage(name: string, make: () => Promise<OutboxHarness>): void {
  contractSuite(`OutboxStorage on ${name}`, make, CASES);
}

function row(orgId = newId(), fields: Partial<OutboxRow> = {}): OutboxRow {
  return {
    id: newId(),
    orgId,
    kind: "work.notify_shipment",
    payload: { lane: "default", note: 'ünï "x" \\ 🚚', n: 1.5, list: [null, true] },
    actorId: newId(),
    requestId: newId(),
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    createdAt: new Date(),
    ...fields,
  };
}

/** The other cases' rows are handed on first: reads here are of all orgs. */
async function drained(harness: OutboxHarness): Promise<OutboxStorage> {
  for (;;) {
    const pending = await harness.storage.readPending(500);
    if (pending.length === 0) return harness.storage;
    await harness.storage.markDone(pending);
  }
}

/** As `drained`, and the rows handed on are purged as well. */
async function emptied(harness: OutboxHarness): Promise<OutboxStorage> {
  const storage = await drained(harness);
  await harness.advance(1_000);
  await storage.purgeDone(0, 100_000);
  return storage;
}

async function pendingIds(storage: OutboxStorage, limit = 500, excluding?: readonly string[]): Promise<string[]> {
  return (await storage.readPending(limit, excluding)).map((r) => r.id);
}

const CASES: Cases<OutboxHarness> = {
  "readPending() gives rows as they were written, with their org": async (harness) => {
    const storage = await drained(harness);
    const full = row();
    const bare = row(newId(), {
      kind: "shipments.shipment.created",
      payload: {},
      actorId: EMPTY_UUID,
      requestId: null,
      traceparent: null,
    });
    await harness.seed([full]);
    await harness.seed([bare]);
    const read = (await storage.readPending(10)).map(({ ageSeconds: _age, createdAt: _at, ...rest }) => rest);
    const strip = ({ createdAt: _at, ...rest }: OutboxRow) => rest;
    assert.deepEqual(read, [strip(full), strip(bare)]);
  },

  "readPending() gives the oldest first, as many as asked for": async (harness) => {
    const storage = await drained(harness);
    const rows = [row(), row(), row()];
    for (const r of rows) {
      await harness.seed([r]);
      await harness.advance(1_000);
    }
    assert.deepEqual(await pendingIds(storage, 2), [rows[0]?.id, rows[1]?.id]);
  },

  "readPending() keeps the order of rows written together": async (harness) => {
    const storage = await drained(harness);
    const org = newId();
    const rows = Array.from({ length: 20 }, () => row(org));
    await harness.seed(rows);
    assert.deepEqual(await pendingIds(storage), rows.map((r) => r.id));
  },

  "readPending() skips the ids it is told to": async (harness) => {
    const storage = await drained(harness);
    const org = newId();
    const rows = Array.from({ length: 4 }, () => row(org));
    await harness.seed(rows);
    const excluding = [rows[0]?.id ?? "", rows[2]?.id ?? ""];
    assert.deepEqual(await pendingIds(storage, 1, excluding), [rows[1]?.id]);
    assert.deepEqual(await pendingIds(storage, 9, excluding), [rows[1]?.id, rows[3]?.id]);
  },

  "readPending() counts a row's age on database time": async (harness) => {
    const storage = await drained(harness);
    await harness.seed([row()]);
    await harness.advance(90_000);
    const [pending] = await storage.readPending(1);
    const age = pending?.ageSeconds ?? -1;
    assert.ok(age >= 90 && age < 150, `its age is ${age} s`);
  },

  "markDone() takes the named rows out of the pending ones and no other": async (harness) => {
    const storage = await drained(harness);
    const [a, b] = [row(), row()];
    await harness.seed([a]);
    await harness.seed([b]);
    await storage.markDone([{ orgId: a.orgId, id: a.id }]);
    assert.deepEqual(await pendingIds(storage), [b.id]);
  },

  "markDone() matches the org beside the id": async (harness) => {
    const storage = await drained(harness);
    const pending = row();
    await harness.seed([pending]);
    await storage.markDone([{ orgId: newId(), id: pending.id }]);
    assert.deepEqual(await pendingIds(storage), [pending.id]);
  },

  "markDone() repeated keeps the first time, so the purge is not put off": async (harness) => {
    const storage = await emptied(harness);
    const once = row();
    await harness.seed([once]);
    await storage.markDone([once]);
    await harness.advance(60_000);
    await storage.markDone([once]);
    assert.equal(await storage.purgeDone(30_000, 10), 1);
  },

  "markDone() raced by relayers with the same rows in opposite orders settles": async (harness) => {
    const storage = await drained(harness);
    const org = newId();
    const rows = Array.from({ length: 50 }, () => row(org));
    await harness.seed(rows);
    await Promise.all(
      Array.from({ length: 8 }, (_, i) => storage.markDone(i % 2 === 0 ? rows : [...rows].reverse())),
    );
    assert.deepEqual(await pendingIds(storage), []);
  },

  "markDone() of nothing and of absent rows changes nothing": async (harness) => {
    const storage = await drained(harness);
    await storage.markDone([]);
    await storage.markDone([{ orgId: newId(), id: newId() }]);
  },

  "purgeDone() removes rows done for longer than asked, pending ones never": async (harness) => {
    const storage = await emptied(harness);
    const [old, recent, pending] = [row(), row(), row()];
    await harness.seed([pending]);
    await harness.seed([old]);
    await storage.markDone([old]);
    await harness.advance(60_000);
    await harness.seed([recent]);
    await storage.markDone([recent]);
    await harness.advance(1_000);
    assert.equal(await storage.purgeDone(30_000, 100), 1);
    assert.deepEqual(await pendingIds(storage), [pending.id]);
    assert.equal(await storage.purgeDone(0, 100), 1);
  },

  "purgeDone() removes at most the limit": async (harness) => {
    const storage = await emptied(harness);
    const org = newId();
    const rows = Array.from({ length: 5 }, () => row(org));
    await harness.seed(rows);
    await storage.markDone(rows);
    await harness.advance(1_000);
    assert.equal(await storage.purgeDone(0, 3), 3);
    assert.equal(await storage.purgeDone(0, 3), 2);
    assert.equal(await storage.purgeDone(0, 3), 0);
  },

  "purgeDone() raced by four purges removes each row once": async (harness) => {
    const storage = await emptied(harness);
    const org = newId();
    const rows = Array.from({ length: 40 }, () => row(org));
    await harness.seed(rows);
    await storage.markDone(rows);
    await harness.advance(1_000);
    const removed = await Promise.all(Array.from({ length: 4 }, () => storage.purgeDone(0, 20)));
    const rest = await storage.purgeDone(0, 100);
    assert.equal(removed.reduce((sum, n) => sum + n, 0) + rest, 40);
  },

  "readLag() counts pending rows and the age of the oldest, and is zero without any": async (harness) => {
    const storage = await drained(harness);
    assert.deepEqual(await storage.readLag(), { pending: 0, oldestAgeSeconds: 0 });
    await harness.seed([row()]);
    await harness.advance(60_000);
    await harness.seed([row()]);
    const { pending, oldestAgeSeconds } = await storage.readLag();
    assert.equal(pending, 2);
    assert.ok(oldestAgeSeconds >= 60 && oldestAgeSeconds < 120, `the oldest is ${oldestAgeSeconds} s old`);
  },
};
