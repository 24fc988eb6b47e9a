/**
 * The storages that are held to the model: each over a store of its own, whose time stands still until a command moves it.
 *
 * @module
 */
import { FakeClock } from "../../src/core/fake_clock.ts";
import { PostgresClient } from "../../src/db/client.ts";
import { SqliteDatabase } from "../../src/db/sqlite.ts";
import { CHAINS, FAIR_CHAIN } from "../../src/migrations.ts";
import { PostgresWorkStorage } from "../../src/work/storage/postgres.ts";
import { SqliteWorkStorage } from "../../src/work/storage/sqlite.ts";
import type { ClaimRequest, OwnedItem, WorkStorage } from "../../src/work/storage.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { TURNS_BEGIN } from "./fair_model.ts";

/** The stores there are. */
export const STORES = ["memory", "file", "postgres"] as const;
/** One of them. */
export type StoreName = (typeof STORES)[number];

/** One storage under test. */
export interface Store {
  readonly name: StoreName;
  /** Anew for each sequence, as what it remembers is a process's. */
  readonly storage: WorkStorage;
  /** Claims as `storage` does, or as another worker's process: one that remembers no earlier claim. */
  claim(request: ClaimRequest, elsewhere: boolean): Promise<OwnedItem[]>;
  /** Removes everything and sets the time. */
  reset(nowMs: number): Promise<void>;
  setTime(nowMs: number): Promise<void>;
  /** Sets when an item may be claimed, where the rules let a storage draw it at random: all then go on alike. */
  setAvailable(orgId: string, id: string, at: Date): Promise<void>;
  close(): Promise<void>;
}

const TABLES = ["work_items", "work_keys", "sweep_steps"];
/** Between sequences rows are deleted; what that leaves behind is cut off now and then. */
const RUNS_A_TRUNCATE = 50;

/** Opens a store. */
export function openStore(name: StoreName): Promise<Store> {
  return name === "postgres" ? openPostgres() : openSqlite(name);
}

/** Each process begins its turns at a random place: here all begin at one, so that what they claim can be compared. */
function turnsBeginAlike<T>(make: () => T): T {
  const { randomUUID } = crypto;
  crypto.randomUUID = () => TURNS_BEGIN;
  try {
    return make();
  } finally {
    crypto.randomUUID = randomUUID;
  }
}

async function openSqlite(name: "memory" | "file"): Promise<Store> {
  const clock = new FakeClock();
  const folder = name === "file" ? await Deno.makeTempDir({ prefix: "laneway-model-" }) : null;
  const db = new SqliteDatabase(folder === null ? ":memory:" : `${folder}/store.db`, { clock, synchronous: "NORMAL" });
  for (const chain of [...CHAINS, FAIR_CHAIN]) {
    for (const migration of chain.sqlite) await db.write((session) => session.script(migration.up));
  }
  const make = () => turnsBeginAlike(() => new SqliteWorkStorage(db));
  let storage = make();
  const setTime = (nowMs: number) => Promise.resolve(clock.jumpWall(nowMs - clock.now()));
  return {
    name,
    get storage() {
      return storage;
    },
    claim: (request) => storage.claim(request),
    async reset(nowMs) {
      storage = make();
      await setTime(nowMs);
      await db.write((session) => TABLES.forEach((table) => session.run(`delete from queue_${table}`)));
    },
    setTime,
    async setAvailable(orgId, id, at) {
      const text = "update queue_work_items set available_at = ? where org_id = ? and id = ?";
      await db.write((session) => session.run(text, at.getTime(), orgId, id));
    },
    async close() {
      db.close();
      if (folder !== null) await Deno.remove(folder, { recursive: true });
    },
  };
}

async function openPostgres(): Promise<Store> {
  const database = await createTestDatabase([...CHAINS, FAIR_CHAIN]);
  const admin = await PostgresClient.open(database.url("admin"), { applicationName: "laneway-model" });
  await admin.script(`create table public.model_clock (at timestamptz not null);
    insert into public.model_clock values ('2026-01-01Z'); grant select on public.model_clock to public`);
  const nowSql = "(select at from public.model_clock)";
  const make = () => turnsBeginAlike(() => new PostgresWorkStorage(database.databases.queue, { nowSql }));
  const setTime = async (nowMs: number) => {
    await admin.query("update public.model_clock set at = $1::text::timestamptz", [new Date(nowMs).toISOString()]);
  };
  const tables = [...TABLES, "work_history"].map((table) => `queue.${table}`);
  const clear = tables.map((table) => `delete from ${table}`).join(";");
  const cut = `truncate ${tables.join(",")}; vacuum public.model_clock`;
  let storage = make();
  let runs = 0;
  return {
    name: "postgres",
    get storage() {
      return storage;
    },
    claim: (request, elsewhere) => (elsewhere && request.order !== "fair" ? make() : storage).claim(request),
    async reset(nowMs) {
      storage = make();
      await setTime(nowMs);
      if (++runs % RUNS_A_TRUNCATE !== 0) await admin.script(clear);
      else for (const script of cut.split(";")) await admin.script(script);
    },
    setTime,
    async setAvailable(orgId, id, at) {
      const text = "update queue.work_items set available_at = $3::text::timestamptz where org_id = $1 and id = $2";
      await admin.query(text, [orgId, id, at.toISOString()]);
    },
    async close() {
      await admin.close();
      await database.drop();
    },
  };
}
