/**
 * The world of the mixed drain: a database whose every change of an item is kept, a PostgREST over it, two hosts with a
 * machine's folder each, and the processes that drain it. All of it is gone when the test ends.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { newId } from "../../src/core/ids.ts";
import { CHAINS } from "../../src/migrations.ts";
import { createStorages } from "../../src/storages.ts";
import { WorkerProcess } from "../trials/worker_process.ts";
import { type Group, type HostName, KINDS, mixedItems, type Org, ORGS, POLICIES, type Taker } from "./drain_groups.ts";
import { ESCAPED, Marks, SCRIPT } from "./drain_marks.ts";
import { hostRowSql, rowOf } from "./host_world.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";
import { type Postgrest, startPostgrest } from "./postgrest.ts";
import { waitFor } from "./wait_for.ts";

/** How often a host beats and looks at its row. */
const POLL = "500ms";
const HOST_FLAGS = ["--poll", POLL, "--lease", "3s", "--capacity", "6", "--drain-grace", "5s"];
const SQL_FLAGS = [
  ...["--poll", "200ms", "--idle-poll", "500ms", "--lease", "5s", "--sweep", "300ms", "--capacity", "5"],
  ...["--drain-grace", "5s"],
];
const RUNNER = fileURLToPath(new URL("../../workers/host-runner/main.ts", import.meta.url));
const SQL_WORKER = fileURLToPath(new URL("./drain_worker.ts", import.meta.url));
const INSERT_BATCH = 500;

/** Every claim and every end, as a trigger saw it: what a program says of itself is held against it. */
const HISTORY = [
  "create schema drain",
  `create table drain.history (n bigint generated always as identity, id uuid, was text, became text, token uuid, host text,
    claimed_by text, due_at timestamptz, at timestamptz default clock_timestamp())`,
  `create function drain.note() returns trigger language plpgsql security definer as $$ begin
    if tg_op = 'DELETE' then
      insert into drain.history (id, was, became, token, host, claimed_by, due_at)
        values (old.id, old.status, 'gone', old.claim_token, old.host, old.claimed_by, old.available_at);
    elsif (old.status, old.claim_token) is distinct from (new.status, new.claim_token) then
      insert into drain.history (id, was, became, token, host, claimed_by, due_at)
        values (new.id, old.status, new.status, coalesce(new.claim_token, old.claim_token), new.host,
          coalesce(new.claimed_by, old.claimed_by), old.available_at);
    end if;
    return null;
  end $$`,
  "create trigger drain_history after update or delete on queue.work_items for each row execute function drain.note()",
];

/** One change of an item. */
export interface Change {
  readonly id: string;
  readonly was: string;
  /** `gone`: completed by SQL, or archived. */
  readonly became: string;
  /** Of the claim it ended, or began. */
  readonly token: string;
  readonly host: string | null;
  readonly by: Taker;
  /** Whether the item was due. */
  readonly due: boolean;
}

/** Where a drain takes place. */
export class DrainWorld {
  readonly db: TestDatabase;
  readonly folder: string;
  readonly marks: Marks;
  /** Every item's group. */
  readonly groups = new Map<string, Group>();
  readonly #rest: Postgrest;
  readonly #orgs = new Map<Org, string>(ORGS.map((org) => [org, newId()]));
  readonly #processes = new Map<WorkerProcess, Taker>();

  private constructor(parts: { db: TestDatabase; rest: Postgrest; folder: string }) {
    this.db = parts.db;
    this.#rest = parts.rest;
    this.folder = parts.folder;
    this.marks = new Marks(`${parts.folder}/marks`);
  }

  /** Runs a test in a world of its own, with both hosts' rows and every item in it. */
  static async with(test: (world: DrainWorld) => Promise<void>): Promise<void> {
    await using parts = new AsyncDisposableStack();
    const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "laneway-drain-" }));
    parts.defer(() => Deno.remove(folder, { recursive: true }));
    const db = await createTestDatabase(CHAINS);
    parts.defer(() => db.drop());
    const rest = await startPostgrest(db);
    parts.defer(() => rest.stop());
    const world = new DrainWorld({ db, rest, folder });
    parts.defer(() => world.#close());
    await world.#fill();
    for (const name of ["host-a", "host-b"] as const) await world.#makeHost(name);
    await test(world);
  }

  /** Starts a host's runner. */
  async startHost(name: HostName): Promise<WorkerProcess> {
    return await this.#start(name, [HOST_FLAGS, RUNNER], {
      LANEWAY_REST_URL: this.#rest.url,
      LANEWAY_REST_KEY_FILE: `${this.folder}/${name}/key`,
      LANEWAY_HOST_CONFIG: `${this.folder}/${name}/commands.json`,
    });
  }

  /** Starts the worker with a database. */
  async startSql(): Promise<WorkerProcess> {
    return await this.#start("sql", [SQL_FLAGS, SQL_WORKER], {
      LANEWAY_DATABASE_URL: this.db.url("runtime"),
      LANEWAY_SYSTEM_DATABASE_URL: this.db.url("system"),
      MARKS: this.marks.path,
    });
  }

  /**
   * Kills a host's runner and waits until what it ran is ended with it: by each run's guard, at once. What had left its
   * group is for the next runner to end.
   */
  async kill(name: HostName, runner: WorkerProcess): Promise<void> {
    await runner.kill();
    await waitFor(`the end of what ${name} ran`, async () => {
      return (await this.processesOf(name)).every(({ command }) => command === ESCAPED);
    });
    this.marks.note("killed", name);
  }

  /** Living processes that a host's runs began, or that those began. */
  async processesOf(name: HostName): Promise<{ readonly pid: number; readonly command: string }[]> {
    const mark = `\u0000DRAIN_MARK=${this.folder}/${name}\u0000`;
    const found: { pid: number; command: string }[] = [];
    for (const { name: pid } of Deno.readDirSync("/proc")) {
      if (!/^\d+$/.test(pid)) continue;
      const read = (file: string) => Deno.readTextFile(`/proc/${pid}/${file}`).catch(() => "");
      if (`\u0000${await read("environ")}`.includes(mark)) {
        found.push({ pid: Number(pid), command: await read("cmdline") });
      }
    }
    return found;
  }

  /** What is below a host's base of work directories. */
  async workFolders(name: HostName): Promise<string[]> {
    return (await Array.fromAsync(Deno.readDir(`${this.folder}/${name}/work`))).map(({ name }) => name);
  }

  /** Turns a host's kill switch. */
  async switchTo(name: HostName, enabled: boolean): Promise<void> {
    await this.db.adminSql("update queue.hosts set enabled = $2 where name = $1", [name, enabled]);
  }

  /** Resolves once a host has beaten `times` more. */
  async beats(name: HostName, times: number): Promise<void> {
    const read = async () => {
      const sql = "select last_heartbeat_at::text as at from queue.hosts where name = $1";
      return (await this.db.adminSql(sql, [name]))[0]?.at;
    };
    for (let n = 0; n < times; n++) {
      const before = await read();
      await waitFor(`a heartbeat of ${name}`, async () => await read() !== before, { everyMs: 50 });
    }
  }

  /** How many items meet a condition. */
  async count(condition: string, ids: readonly string[] | null = null): Promise<number> {
    const among = ids === null ? "" : " and id in (select value::uuid from jsonb_array_elements_text($1::text::jsonb))";
    const sql = `select count(*)::int as n from queue.work_items where ${condition}${among}`;
    return Number((await this.db.adminSql(sql, ids === null ? [] : [JSON.stringify(ids)]))[0]?.n);
  }

  /** Every change of every item so far, in order. */
  async history(): Promise<Change[]> {
    const takers = new Map([...this.#processes].map(([{ pid }, taker]) => [String(pid), taker]));
    const rows = await this.db.adminSql(
      "select id, was, became, token, host, claimed_by, due_at <= at as due from drain.history order by n",
    );
    return rows.map((row) => {
      const by = takers.get(String(row.claimed_by).split("/")[1] ?? "");
      assert.ok(by !== undefined || row.was === "done", `nobody known claimed ${row.id}: ${row.claimed_by}`);
      return {
        id: String(row.id),
        was: String(row.was),
        became: String(row.became),
        token: String(row.token),
        host: row.host as string | null,
        by: by ?? "sql",
        due: row.due === true,
      };
    });
  }

  async #start(
    taker: Taker,
    [flags, program]: readonly [readonly string[], string],
    env: Readonly<Record<string, string>>,
  ): Promise<WorkerProcess> {
    const process = await WorkerProcess.start(flags, env, program);
    this.#processes.set(process, taker);
    return process;
  }

  async #fill(): Promise<void> {
    for (const sql of HISTORY) await this.db.adminSql(sql);
    const { tenancy, work } = createStorages({ engine: "postgres", databases: this.db.databases });
    const createdAt = new Date();
    for (const [name, id] of this.#orgs) await tenancy.createOrg({ id, name, createdAt, endedAt: null });
    const items = mixedItems();
    for (const { group, insert } of items) this.groups.set(insert.item.id, group);
    for (let at = 0; at < items.length; at += INSERT_BATCH) {
      const batch = items.slice(at, at + INSERT_BATCH);
      for (const [org, id] of this.#orgs) {
        await work.createItems(id, batch.filter(({ group }) => group.org === org).map(({ insert }) => insert));
      }
    }
  }

  /** A host's row, and what its machine has: one config on each, for every kind; what of it may run, the row says. */
  async #makeHost(name: HostName): Promise<void> {
    const { orgs, ...policy } = POLICIES[name];
    const orgIds = orgs.map((org) => this.#orgs.get(org) ?? "");
    await this.db.adminSql(...hostRowSql(rowOf(name, "", { ...policy, orgIds })));
    const folder = `${this.folder}/${name}`;
    await Deno.mkdir(folder);
    await Deno.writeTextFile(`${folder}/key`, await this.#rest.key(name), { mode: 0o600 });
    await Deno.writeTextFile(`${folder}/run`, SCRIPT, { mode: 0o700 });
    const command = { argv: [`${folder}/run`, "{payload.mode}"], retry: { base: "200ms", cap: "1s" } };
    const config = {
      ...{ work: { base: `${folder}/work` }, logs: { folder: `${folder}/logs` } },
      env: { WHO: name, MARKS: this.marks.path, DRAIN_MARK: folder },
      kinds: Object.fromEntries(KINDS.map((kind) => [kind, command])),
    };
    await Deno.writeTextFile(`${folder}/commands.json`, JSON.stringify(config), { mode: 0o600 });
  }

  /** Whatever happened, nothing is left. */
  async #close(): Promise<void> {
    await Promise.all([...this.#processes.keys()].map((process) => process.kill()));
    for (const name of ["host-a", "host-b"] as const) {
      for (const { pid } of await this.processesOf(name)) {
        try {
          Deno.kill(pid, "SIGKILL");
        } catch {
          // It has ended.
        }
      }
    }
    this.marks.close();
  }
}
