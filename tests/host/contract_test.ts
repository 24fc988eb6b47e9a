/**
 * The contract of `WorkStorage` with its claims, renewals and settlements over REST and the rest by SQL, as on a database that
 * serves both.
 */
import { systemClock } from "../../src/core/clock.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import type { ItemInsert, WorkStorage } from "../../src/work/storage.ts";
import { testWorkStorage, type WorkHarness } from "../contracts/work_storage.ts";
import { buildHost, rowOf } from "../support/host_world.ts";
import { overlay } from "../support/overlay.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { startPostgrest } from "../support/postgrest.ts";

const HOST = "contract-host";
const TIMES = ["available_at", "lease_expires_at", "updated_at"];

/** PostgREST's database time cannot be moved on, so everything is moved back. */
async function moveBack(database: TestDatabase, ms: number): Promise<void> {
  const back = (column: string) => `${column} = ${column} - ${ms} * interval '1 millisecond'`;
  await database.adminSql(`update queue.work_items set ${TIMES.map(back).join(", ")}`);
  await database.adminSql(`update queue.work_history set ${["available_at", "finished_at"].map(back).join(", ")}`);
  await database.adminSql(`update queue.work_keys set ${back("created_at")}`);
  await database.adminSql(`update queue.sweep_steps set ${back("last_run_at")}`);
}

async function make(): Promise<WorkHarness> {
  const database = await createTestDatabase(CHAINS);
  const rest = await startPostgrest(database);
  const sql = createStorages({ engine: "postgres", databases: database.databases }).work;
  await database.adminSql(`insert into queue.hosts (name, enabled, priority_floor) values ('${HOST}', true, 0)`);
  const row = rowOf(HOST, "");
  // What each case makes is put on the host's lists: its own orgs, kinds and lane.
  const lists = { orgs: new Set<string>(), kinds: new Set<string>(), weights: new Set<string>(), lane: "default" };
  const allow = async (): Promise<void> => {
    const list = (values: ReadonlySet<string>) => `{${[...values].map((value) => JSON.stringify(value)).join(",")}}`;
    await database.adminSql(
      `update queue.hosts set org_ids = $1::text::uuid[], kinds = $2::text::text[], weights = $3::text::text[], lane = $4`,
      [list(lists.orgs), list(lists.kinds), list(lists.weights), lists.lane],
    );
  };
  const host = buildHost(row, {
    url: rest.url,
    readKey: () => rest.key(HOST),
    gate: {
      allow: (limit) => ({
        ...{ limit, host: HOST, orgIds: [...lists.orgs], kinds: [...lists.kinds], weights: [...lists.weights] },
        priorityFloor: 0,
      }),
    },
    client: { clock: systemClock },
  });
  await host.api.beat(null);
  const note = (orgId: string, inserts: readonly ItemInsert[]) => {
    lists.orgs.add(orgId);
    for (const { item: { kind, weight } } of inserts) lists.kinds.add(kind), lists.weights.add(weight);
  };
  const over: Partial<WorkStorage> = {
    createItems: (orgId, inserts, hint) => {
      note(orgId, inserts);
      return sql.createItems(orgId, inserts, hint);
    },
    claim: async (request) => {
      lists.lane = request.lane;
      await allow();
      return await host.storage.claim(request);
    },
    readClaimed: (token) => host.storage.readClaimed(token),
    settle: (settlements) => host.storage.settle(settlements),
    extendLeases: (refs, leaseMs) => host.storage.extendLeases(refs, leaseMs),
    readClaims: (refs) => host.storage.readClaims(refs),
    purgeItems: async (olderThanMs, limit) => {
      // The sweep's step before.
      await sql.archiveDone(0, { limit: 1_000, keep: true });
      return await sql.purgeItems(olderThanMs, limit);
    },
  };
  return {
    storage: overlay(sql, over),
    advance: (ms) => moveBack(database, ms),
    close: async () => {
      await rest.stop();
      await database.drop();
    },
    hostSql: (text) => database.adminSql(text),
    tamper: async (orgId, id, assignments) => {
      const set = Object.entries(assignments).map(([column, value]) => `${column} = ${value}`).join(", ");
      await database.adminSql(`update queue.work_items set ${set} where org_id = $1::uuid and id = $2::uuid`, [
        orgId,
        id,
      ]);
    },
  };
}

const LATER = "what is completed over REST lies in the table until it is archived";
testWorkStorage("PostgREST, beside SQL", make, {
  except: {
    "createItemIn() lands with its caller's transaction or not at all, or is refused where none can be joined":
      "nothing of it goes over REST",
    "settle(done) finishes the item, keeps its token, and a repeat is recognised":
      "here an item finished in any way under the claim's token is told as finished: its command may have done so itself",
    "settle(done) of an item that is not kept leaves its key alone, and no row": LATER,
    "a settle after the lease passed is refused, on database time":
      "it compares times that this harness moves; rest_storage_test has its own",
    "an item handed back at once, as it never ran, keeps its place; one that asks for later gives it up":
      "a host's hand-back is known by its new time when its answer is lost: it goes behind what is due",
    "texts and numbers at the ends of their ranges are stored as they are":
      "an item that prefers another host is left to it",
    "archiveDone() moves what hosts completed, after its age and within its limit, and repeats are still recognized":
      "a host does not see the history: it reads back before the age is reached",
    "hostOrgs() and dropHostOrgs() name and shorten hosts' lists, and readHosts() tells how each host stands":
      "nothing of it goes over REST, and this harness has a host of its own",
    "no claim of another worker keeps the host of the claim before": "claims over REST are a host's",
  },
});
