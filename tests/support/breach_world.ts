/**
 * Two orgs for attempts across tenants: A has rows in every table, each with a mark that nobody else may ever read; B has
 * none but itself.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { AuditEntry } from "../../src/audit/types.ts";
import { EMPTY_UUID, newId } from "../../src/core/ids.ts";
import type { OutboxRow } from "../../src/outbox/types.ts";
import { createStorages, type Storages, type Store } from "../../src/storages.ts";
import type { ItemInsert } from "../../src/work/storage.ts";
import type { WorkItem } from "../../src/work/types.ts";
import { PostgresEndpointStorage } from "../../workers/shipment-notifier/endpoints/storage/postgres.ts";
import { SqliteEndpointStorage } from "../../workers/shipment-notifier/endpoints/storage/sqlite.ts";
import type { EndpointPolicy, EndpointStorage } from "../../workers/shipment-notifier/endpoints/types.ts";
import { PostgresShipmentStorage } from "../../workers/shipment-notifier/shipments/storage/postgres.ts";
import { SqliteShipmentStorage } from "../../workers/shipment-notifier/shipments/storage/sqlite.ts";
import type { ShipmentInsert, ShipmentStorage } from "../../workers/shipment-notifier/shipments/types.ts";
import type { TestStore } from "./stores.ts";

/** Stands in every text that only A may read. */
export const MARK = "only-A-may-read-this-7f3c";

/** The kind of every item of this world. */
export const KIND = "BREACH";

/** All storages over one store. */
export interface AllStorages extends Storages {
  readonly shipments: ShipmentStorage;
  readonly endpoints: EndpointStorage;
}

/** Builds the storages of the house and of its workers. */
export function allStorages(store: Store): AllStorages {
  const storages = createStorages(store);
  if (store.engine === "sqlite") {
    return {
      ...storages,
      shipments: new SqliteShipmentStorage(store.db),
      endpoints: new SqliteEndpointStorage(store.db),
    };
  }
  const { core } = store.databases;
  const time = { nowSql: store.nowSql };
  return {
    ...storages,
    shipments: new PostgresShipmentStorage(core, time),
    endpoints: new PostgresEndpointStorage(core, time),
  };
}

/** What an attacker inside B has learned of A: every id, key and token, but no content. */
export interface World {
  readonly a: string;
  readonly b: string;
  /** A live member of A alone. */
  readonly ana: string;
  /** A user who is nowhere a member. */
  readonly bob: string;
  readonly queued: WorkItem;
  /** Claimed under `token` by a lease of an hour. */
  readonly held: { readonly id: string; readonly token: string };
  /** Claimed, its lease has passed. */
  readonly stale: { readonly id: string; readonly token: string };
  /** Dead, its audit entry not yet written. */
  readonly dead: { readonly id: string; readonly token: string; readonly auditId: string };
  /** Completed. */
  readonly done: { readonly id: string; readonly token: string };
  readonly eventId: string;
  readonly entryId: string;
  /** A pending marker and its attempt's token. */
  readonly marker: { readonly key: string; readonly token: string; readonly digest: string };
  /** A finished marker. */
  readonly finishedKey: string;
  /** A live session and its digest, and the digest of a ticket that may be redeemed. */
  readonly session: { readonly id: string; readonly digest: string };
  readonly ticketDigest: string;
  /** At version 1. */
  readonly shipmentId: string;
  /** Parked for `host`, due, at version 2. */
  readonly parkedId: string;
  /** Deleted, at version 2. */
  readonly deletedId: string;
  /** An endpoint that is down and may be probed. */
  readonly host: string;
  readonly outboxId: string;
}

/** One failure and an endpoint is down; a second later it may be probed. */
export const POLICY: EndpointPolicy = { downAfter: 1, probeMs: 1_000, probeCapMs: 1_000, probeHoldMs: 1_000 };

/** Makes both orgs and A's rows. */
export async function makeWorld(test: TestStore, storages: AllStorages): Promise<World> {
  const ids = { a: newId(), b: newId(), ana: newId(), bob: newId(), eventId: newId(), entryId: newId() };
  const { a, b, ana, bob } = ids;
  const { tenancy, audit } = storages;
  const at = new Date(Date.UTC(2026, 0, 1));
  await tenancy.createOrg({ id: a, name: MARK, createdAt: at, endedAt: null });
  await tenancy.createOrg({ id: b, name: "B", createdAt: at, endedAt: null });
  for (const id of [ana, bob]) await tenancy.createUser({ id, name: MARK, createdAt: at });
  await tenancy.writeMembership({ orgId: a, userId: ana, role: "OWNER", createdAt: at, endedAt: null });
  await audit.appendEvent({
    id: ids.eventId,
    orgId: a,
    kind: "a.b.c",
    actorId: ana,
    requestId: null,
    payload: { mark: MARK },
  });
  await audit.createEntries([entryOf(a, { id: ids.entryId, detail: { mark: MARK } })]);
  return {
    ...ids,
    ...await makeSessions(storages, a, ana),
    ...await makeMarkers(storages, a),
    ...await makeShipments(storages, a),
    // Last, as it moves time on.
    ...await makeItemsAndAttempt(test, storages, a),
  };
}

async function makeItemsAndAttempt(test: TestStore, storages: Storages, a: string) {
  const items = await makeItems(test, storages, a);
  if (test.store.engine === "postgres") {
    await test.sql(
      `insert into queue.attempts (org_id, item_id, claim_token, attempt, host, worker, started_at, finished_at,
        duration_ms, outcome, stdout_tail, stderr_tail)
      values ('${a}', '${items.done.id}', '${items.done.token}', 1, 'h', 'w', now(), now(), 1, 'done', '${MARK}', '')`,
    );
  }
  return items;
}

async function makeSessions({ tenancy }: Storages, a: string, userId: string) {
  const digest = () => crypto.getRandomValues(new Uint8Array(32)).toHex();
  const session = { id: newId(), userId, digest: digest(), lifetimeMs: 3_600_000 };
  assert.ok(await tenancy.createSession(a, session));
  const ticket = { userId, digest: digest(), ttlMs: 3_600_000 };
  assert.ok(await tenancy.createSocketTicket(a, ticket));
  return { session, ticketDigest: ticket.digest };
}

async function makeShipments({ shipments, endpoints }: AllStorages, a: string) {
  const host = `${newId()}.example`;
  const [shipment, parked, deleted] = [1, 2, 3].map(() => shipmentOf({ recipientName: MARK }));
  assert.ok(shipment && parked && deleted);
  const row = outboxRowOf(a, { payload: { id: shipment.id, mark: MARK } });
  assert.ok(await shipments.createShipment(a, shipment, [row]));
  for (const one of [parked, deleted]) assert.ok(await shipments.createShipment(a, one, []));
  const by = { expectedVersion: 1, updatedBy: newId() };
  assert.ok(await shipments.park(a, { ...by, id: parked.id, reason: MARK, resumeAt: new Date(0), host }, []));
  assert.ok(await shipments.deleteShipment(a, { ...by, id: deleted.id }, []));
  await endpoints.failed(a, host, { ...POLICY, probe: false });
  return { shipmentId: shipment.id, parkedId: parked.id, deletedId: deleted.id, host, outboxId: row.id };
}

async function makeItems(test: TestStore, { work }: Storages, a: string) {
  const claim = async (lane: string, leaseMs: number) => {
    const insert = insertOf({ lane, payload: { mark: MARK } });
    await work.createItems(a, [insert]);
    const token = newId();
    const claimed = await work.claim({ lane, kinds: [KIND], worker: MARK, leaseMs, limit: 1, token });
    assert.equal(claimed.length, 1);
    return { id: insert.item.id, token };
  };
  const queued = insertOf({ lane: newId(), payload: { mark: MARK } });
  await work.createItems(a, [queued]);
  const stale = await claim(newId(), 1_000);
  const dead = { ...await claim(newId(), 3_600_000), auditId: newId() };
  await work.settle([{ orgId: a, ...dead, to: "failed", error: MARK }]);
  const done = await claim(newId(), 3_600_000);
  await work.settle([{ orgId: a, ...done, to: "done" }]);
  const held = await claim(newId(), 3_600_000);
  await test.advance(2_000);
  return { queued: queued.item, stale, dead, done, held };
}

async function makeMarkers({ idempotency }: Storages, a: string) {
  const marker = { key: newId(), token: newId(), digest: "digest" };
  await idempotency.begin(a, { ...marker, recordId: newId(), leaseMs: 3_600_000 });
  const finished = { key: newId(), token: newId(), digest: MARK };
  await idempotency.begin(a, { ...finished, recordId: newId(), leaseMs: 60_000 });
  assert.ok(await idempotency.finish(a, finished.key, finished.token, { mark: MARK }));
  return { marker, finishedKey: finished.key };
}

/** An item's insert. */
export function insertOf(fields: Partial<WorkItem> = {}): ItemInsert {
  const at = new Date(Date.UTC(2026, 0, 1));
  const item: WorkItem = {
    id: newId(),
    createdAt: at,
    updatedAt: at,
    createdBy: newId(),
    updatedBy: newId(),
    kind: KIND,
    targetId: null,
    idempotencyKey: newId(),
    payload: {},
    lane: "default",
    status: "queued",
    priority: 10,
    weight: "light",
    hostPreference: null,
    availableAt: at,
    claimedBy: null,
    claimToken: null,
    leaseExpiresAt: null,
    attempts: 0,
    maxAttempts: 3,
    claims: 0,
    expiries: 0,
    lastError: null,
    note: null,
    auditId: null,
    requestId: null,
    traceparent: null,
    ...fields,
  };
  return { item, start: null };
}

/** A shipment's insert. */
export function shipmentOf(fields: Partial<ShipmentInsert> = {}): ShipmentInsert {
  return {
    id: newId(),
    carrier: "DHL",
    trackingNumber: "00340434161094042557",
    recipientName: "Zoë",
    destination: "Łódź, PL",
    webhookUrl: "https://hooks.example/a",
    notificationId: newId(),
    createdBy: newId(),
    ...fields,
  };
}

/** An outbox row. */
export function outboxRowOf(orgId: string, fields: Partial<OutboxRow> = {}): OutboxRow {
  return {
    id: newId(),
    orgId,
    kind: "a.b.c",
    payload: { id: newId() },
    actorId: newId(),
    requestId: null,
    traceparent: null,
    createdAt: new Date(),
    ...fields,
  };
}

/** An audit entry. */
export function entryOf(orgId: string, fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: newId(),
    orgId,
    actorId: EMPTY_UUID,
    action: "SOMETHING_DONE",
    subjectType: "thing",
    subjectId: newId(),
    requestId: null,
    app: "test@1",
    detail: null,
    createdAt: new Date(Date.UTC(2026, 0, 1)),
    ...fields,
  };
}
