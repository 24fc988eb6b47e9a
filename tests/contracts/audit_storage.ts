/**
 * The contract of `AuditStorage`.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { AuditEntry, AuditStorage, NewEvent } from "../../src/audit/types.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import { type Cases, contractSuite, type Harness } from "./contract.ts";

/** What the audit suite runs over. */
export interface AuditHarness extends Harness {
  /** The storage under test. */
  readonly storage: AuditStorage;
}

/** Runs the contract over the storage that `make` provides. */
export function testAuditStorage(name: string, make: () => Promise<AuditHarness>): void {
  contractSuite(`AuditStorage on ${name}`, make, CASES);
}

function entry(orgId: string, fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: newId(),
    orgId,
    actorId: EMPTY_UUID,
    action: "WORK_DEAD_LETTERED",
    subjectType: "work_item",
    subjectId: newId(),
    requestId: newId(),
    app: "shipment-notifier@0.1.0",
    detail: { kind: "NOTIFY_SHIPMENT", attempts: 3, error: 'ünïcode "quoted" \\ 🚚', nested: [null, { a: 1.5 }] },
    createdAt: new Date("2026-01-02T03:04:05.678Z"),
    ...fields,
  };
}

function event(orgId: string, fields: Partial<NewEvent> = {}): NewEvent {
  return {
    id: newId(),
    orgId,
    kind: "shipments.shipment.created",
    actorId: newId(),
    requestId: newId(),
    payload: { id: newId(), name: "Příliš žluťoučký" },
    ...fields,
  };
}

async function seqs(storage: AuditStorage, orgId: string): Promise<number[]> {
  return (await storage.readEvents(orgId, 0, 1_000)).map((e) => e.seq);
}

const CASES: Cases<AuditHarness> = {
  "createEntries() stores entries of many orgs, each as it was given": async ({ storage }) => {
    const [a, b] = [newId(), newId()];
    const ofA = entry(a);
    const ofB = entry(b, { requestId: null, detail: null });
    await storage.createEntries([ofA, ofB]);
    assert.deepEqual(await storage.readEntries(a, 10), [ofA]);
    assert.deepEqual(await storage.readEntries(b, 10), [ofB]);
  },

  "createEntries() leaves an entry whose id exists as it stands and writes the others": async ({ storage }) => {
    const org = newId();
    const first = entry(org);
    const second = entry(org);
    await storage.createEntries([first]);
    await storage.createEntries([{ ...first, action: "SOMETHING_ELSE" }, second]);
    const byId = new Map((await storage.readEntries(org, 10)).map((e) => [e.id, e]));
    assert.deepEqual(byId.get(first.id), first);
    assert.deepEqual(byId.get(second.id), second);
    assert.equal(byId.size, 2);
  },

  "createEntries() writes an entry named twice in one batch once": async ({ storage }) => {
    const org = newId();
    const twice = entry(org);
    await storage.createEntries([twice, twice]);
    assert.equal((await storage.readEntries(org, 10)).length, 1);
  },

  "createEntries() raced by callers with the same entries in opposite orders writes each once": async ({ storage }) => {
    const org = newId();
    const batch = Array.from({ length: 50 }, () => entry(org));
    await Promise.all(
      Array.from({ length: 6 }, (_, i) => storage.createEntries(i % 2 === 0 ? batch : [...batch].reverse())),
    );
    assert.equal((await storage.readEntries(org, 100)).length, 50);
  },

  "createEntries() of nothing writes nothing": async ({ storage }) => {
    await storage.createEntries([]);
  },

  "readEntries() gives the newest first, as many as asked for": async ({ storage }) => {
    const org = newId();
    const entries = [3, 1, 2].map((day) => entry(org, { createdAt: new Date(Date.UTC(2026, 0, day)) }));
    await storage.createEntries(entries);
    const days = (await storage.readEntries(org, 2)).map((e) => e.createdAt.getUTCDate());
    assert.deepEqual(days, [3, 2]);
  },

  "readEntries() under another org finds nothing": async ({ storage }) => {
    await storage.createEntries([entry(newId())]);
    assert.deepEqual(await storage.readEntries(newId(), 10), []);
  },

  "appendEvent() gives seqs from 1, each org its own": async ({ storage }) => {
    const [a, b] = [newId(), newId()];
    const first = event(a);
    assert.deepEqual(await storage.appendEvent(first), { seq: 1, inserted: true });
    assert.deepEqual(await storage.appendEvent(event(a)), { seq: 2, inserted: true });
    assert.deepEqual(await storage.appendEvent(event(b)), { seq: 1, inserted: true });
    const [stored] = await storage.readEvents(a, 0, 1);
    assert.ok(stored !== undefined);
    const { createdAt, ...rest } = stored;
    assert.deepEqual(rest, { ...first, seq: 1 });
    assert.ok(createdAt instanceof Date);
  },

  "appendEvent() of an event it has returns the seq it gave": async ({ storage }) => {
    const org = newId();
    const once = event(org);
    await storage.appendEvent(once);
    await storage.appendEvent(event(org));
    assert.deepEqual(await storage.appendEvent(once), { seq: 1, inserted: false });
    assert.deepEqual(await storage.appendEvent(event(org)), { seq: 3, inserted: true });
  },

  "appendEvent() of the same id in another org is another event": async ({ storage }) => {
    const [a, b] = [newId(), newId()];
    const id = newId();
    assert.equal((await storage.appendEvent(event(a, { id }))).inserted, true);
    assert.equal((await storage.appendEvent(event(b, { id }))).inserted, true);
  },

  "appendEvent() raced by twenty events gives twenty seqs without a gap": async ({ storage }) => {
    const org = newId();
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => storage.appendEvent(event(org))));
    const expected = Array.from({ length: 20 }, (_, i) => i + 1);
    assert.deepEqual(outcomes.map((o) => o.seq).sort((x, y) => x - y), expected);
    assert.deepEqual(await seqs(storage, org), expected);
  },

  "appendEvent() raced by ten callers with one event gives one seq and leaves no gap": async ({ storage }) => {
    const org = newId();
    await storage.appendEvent(event(org));
    for (let round = 0; round < 5; round++) {
      const same = event(org);
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => storage.appendEvent(same)));
      assert.deepEqual(new Set(outcomes.map((o) => o.seq)), new Set([round + 2]));
      assert.equal(outcomes.filter((o) => o.inserted).length, 1);
    }
    assert.deepEqual(await storage.appendEvent(event(org)), { seq: 7, inserted: true });
    assert.deepEqual(await seqs(storage, org), [1, 2, 3, 4, 5, 6, 7]);
  },

  "appendEvent() takes the first event of an org from ten callers at once": async ({ storage }) => {
    const org = newId();
    const same = event(org);
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => storage.appendEvent(same)));
    assert.deepEqual(new Set(outcomes.map((o) => o.seq)), new Set([1]));
    assert.deepEqual(await seqs(storage, org), [1]);
  },

  "appendEvent() stamps database time": async ({ storage, advance }) => {
    const org = newId();
    await storage.appendEvent(event(org));
    await advance(3_600_000);
    await storage.appendEvent(event(org));
    const [first, second] = await storage.readEvents(org, 0, 2);
    const apartMs = (second?.createdAt.getTime() ?? 0) - (first?.createdAt.getTime() ?? 0);
    assert.ok(apartMs >= 3_600_000, `${apartMs} ms lie between them`);
  },

  "readEvents() gives what follows a seq, in order, as many as asked for": async ({ storage }) => {
    const org = newId();
    for (let i = 0; i < 5; i++) await storage.appendEvent(event(org));
    assert.deepEqual((await storage.readEvents(org, 2, 2)).map((e) => e.seq), [3, 4]);
    assert.deepEqual(await storage.readEvents(org, 5, 10), []);
  },

  "readEvents() under another org finds nothing": async ({ storage }) => {
    await storage.appendEvent(event(newId()));
    assert.deepEqual(await storage.readEvents(newId(), 0, 10), []);
  },
};
