/**
 * A database with orgs, items and hosts, a PostgREST over it, and a host's own storage.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../src/core/clock.ts";
import { newId } from "../../src/core/ids.ts";
import type { Param } from "../../src/db/database.ts";
import type { LogFields, Logger } from "../../src/core/log.ts";
import { DatabaseTime } from "../../src/host/database_time.ts";
import { RestClient, type RestClientOptions } from "../../src/host/rest_client.ts";
import { createRestHostApi } from "../../src/host/rest_host_api.ts";
import { type ClaimGate, RestWorkStorage } from "../../src/host/rest_storage.ts";
import type { HostApi, HostRow } from "../../src/host/types.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages, type Storages } from "../../src/storages.ts";
import type { ClaimRef, OwnedItem } from "../../src/work/storage.ts";
import type { WorkItem } from "../../src/work/types.ts";
import { insertOf } from "./breach_world.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";
import { type Postgrest, startPostgrest } from "./postgrest.ts";

/** The kind of its items. */
export const KIND = "DEV_ISSUE";
/** The lease of its claims. */
export const LEASE_MS = 60_000;

/** One host as a runner is built of it. */
export interface TestHost {
  readonly name: string;
  readonly api: HostApi;
  readonly storage: RestWorkStorage;
  readonly client: RestClient;
  readonly time: DatabaseTime;
  /** What was told to people, by cause. */
  readonly notices: string[];
  /** Everything that was logged, as text. */
  readonly logged: string[];
  claim(options?: { limit?: number; kinds?: string[]; token?: string; leaseMs?: number }): Promise<OwnedItem[]>;
}

/** How a host differs from one that may take what this world makes. */
export interface TestHostOptions {
  readonly row?: Partial<HostRow>;
  readonly client?: Partial<RestClientOptions>;
  readonly gate?: ClaimGate;
}

/** The world. */
export interface HostWorld {
  readonly db: TestDatabase;
  readonly rest: Postgrest;
  readonly sql: Storages;
  readonly a: string;
  readonly b: string;
  /** An item of A that any host of this world may take. */
  put(fields?: Partial<WorkItem>, options?: { orgId?: string; delayMs?: number }): Promise<WorkItem>;
  /** Inserts a host's row, enabled and serving A, and builds its runner's parts. */
  host(name: string, options?: TestHostOptions): Promise<TestHost>;
  /** A call past our own client, with a host's key. */
  raw(host: string, method: string, pathAndQuery: string, body?: unknown): Promise<{ status: number; json: unknown }>;
  read(item: { readonly id: string }): Promise<Record<string, unknown>>;
}

/** Runs a test in a world of its own. */
export async function withHosts(check: (world: HostWorld) => Promise<void>): Promise<void> {
  const db = await createTestDatabase(CHAINS);
  try {
    const rest = await startPostgrest(db);
    try {
      await check(await makeWorld(db, rest));
    } finally {
      await rest.stop();
    }
  } finally {
    await db.drop();
  }
}

async function makeWorld(db: TestDatabase, rest: Postgrest): Promise<HostWorld> {
  const sql = createStorages({ engine: "postgres", databases: db.databases });
  const [a, b] = [newId(), newId()];
  for (const id of [a, b]) await sql.tenancy.createOrg({ id, name: "org", createdAt: new Date(), endedAt: null });
  return {
    db,
    rest,
    sql,
    a,
    b,
    async put(fields = {}, { orgId = a, delayMs } = {}) {
      const insert = insertOf({ kind: KIND, ...fields });
      const start = delayMs === undefined ? null : { delayMs };
      assert.deepEqual(await sql.work.createItems(orgId, [{ ...insert, start }]), ["INSERTED"]);
      return insert.item;
    },
    async host(name, options = {}) {
      const row = rowOf(name, a, options.row);
      await db.adminSql(...hostRowSql(row));
      return buildHost(row, { url: rest.url, readKey: async () => await rest.key(name), ...options });
    },
    async raw(host, method, pathAndQuery, body) {
      const headers = new Headers({
        authorization: `Bearer ${await rest.key(host)}`,
        "content-type": "application/json",
        prefer: "return=representation",
      });
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const answer = await fetch(`${rest.url}${pathAndQuery}`, init);
      const text = await answer.text();
      return { status: answer.status, json: text === "" ? null : JSON.parse(text) };
    },
    async read({ id }) {
      const [row] = await db.adminSql("select * from queue.work_items where id = $1::uuid", [id]);
      assert.ok(row, "the item is there");
      return row;
    },
  };
}

/** The parts of one host's runner. */
export function buildHost(
  row: HostRow,
  options: TestHostOptions & Pick<RestClientOptions, "url" | "readKey">,
): TestHost {
  const { name } = row;
  const notices: string[] = [];
  const logged: string[] = [];
  const logger = collector(logged);
  const notifier = {
    notify: (cause: string, text: string) => void notices.push(`${cause}: ${text}`),
    close: () => Promise.resolve(),
  };
  const clock = options.client?.clock ?? systemClock;
  const { url, readKey } = options;
  const client = new RestClient({ url, readKey, clock, logger, notifier, ...options.client });
  const time = new DatabaseTime(clock);
  const api = createRestHostApi({ client, host: name, clock, time, parseWindows: () => [] });
  const { orgIds, kinds, weights, priorityFloor } = row;
  const gate = options.gate ?? { allow: (limit) => ({ limit, orgIds, kinds, weights, priorityFloor, host: name }) };
  const storage = new RestWorkStorage({ client, gate, time });
  return {
    name,
    api,
    storage,
    client,
    time,
    notices,
    logged,
    async claim({ limit = 10, kinds: asked = [...kinds], token = newId(), leaseMs = LEASE_MS } = {}) {
      if (time.now() === null) await api.beat(null);
      return await storage.claim({ lane: row.lane, kinds: asked, worker: `${name}/1`, leaseMs, limit, token });
    },
  };
}

/** A host's row. */
export function rowOf(name: string, orgId: string, fields: Partial<HostRow> = {}): HostRow {
  return {
    name,
    enabled: true,
    orgIds: [orgId],
    kinds: [KIND],
    weights: ["super-light", "light"],
    priorityFloor: 5,
    lane: "default",
    windows: [],
    lastHeartbeatAt: null,
    currentWorkers: 0,
    ...fields,
  };
}

/** Inserts a host's row: a statement and its parameters. */
export function hostRowSql(row: HostRow): [sql: string, params: Param[]] {
  return [
    `insert into queue.hosts (name, enabled, org_ids, kinds, weights, priority_floor, lane, windows)
     values ($1, $2, $3::text::uuid[], $4::text::text[], $5::text::text[], $6, $7, $8::text::jsonb)`,
    [
      ...[row.name, row.enabled, list(row.orgIds), list(row.kinds), list(row.weights), row.priorityFloor, row.lane],
      JSON.stringify(row.windows),
    ],
  ];
}

/** Names the claim an item is held under. */
export function refOf({ orgId, item }: OwnedItem): ClaimRef {
  assert.ok(item.claimToken);
  return { orgId, id: item.id, token: item.claimToken };
}

function list(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`).join(",")}}`;
}

function collector(lines: string[]): Logger {
  const line = (level: string) => (event: string, fields: LogFields = {}) =>
    void lines.push(`${level} ${event} ${JSON.stringify(fields)}`);
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
