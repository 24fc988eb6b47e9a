/**
 * Every change of every row, as the database itself notes it: triggers of the simulated store, beneath all of the
 * product's code. Checkers read this and never the product's own accounting.
 *
 * @module
 */
import type { SqliteDatabase } from "../../src/db/sqlite.ts";

/** A row of `queue_work_items`, as far as checkers look. */
export interface ItemRow {
  readonly org_id: string;
  readonly id: string;
  readonly updated_at: number;
  readonly created_by: string;
  readonly kind: string;
  readonly idempotency_key: string;
  readonly payload: string;
  readonly lane: string;
  readonly status: "queued" | "claimed" | "done" | "failed";
  readonly ready: number;
  readonly priority: number;
  readonly available_at: number;
  readonly claimed_by: string | null;
  readonly claim_token: string | null;
  readonly lease_expires_at: number | null;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly claims: number;
  readonly expiries: number;
  readonly audit_id: string | null;
  readonly request_id: string | null;
}

/** A row of another table. */
export type OtherRow = Readonly<Record<string, string | number | null>>;

/** One change of one row: `before` is null for an insert, `after` for a delete. */
export type Change =
  | { readonly table: "item"; readonly before: ItemRow | null; readonly after: ItemRow | null }
  | {
    readonly table: "key" | "outbox" | "event" | "entry";
    readonly before: OtherRow | null;
    readonly after: OtherRow | null;
  };

const ITEM_COLUMNS =
  `org_id id updated_at created_by kind idempotency_key payload lane status ready priority available_at claimed_by
  claim_token lease_expires_at attempts max_attempts claims expiries audit_id request_id`;

const WATCHED = [
  ["item", "queue_work_items", ITEM_COLUMNS],
  ["key", "queue_work_keys", "org_id key item_id created_at"],
  ["outbox", "core_outbox", "org_id id kind payload actor_id request_id created_at done_at"],
  ["event", "activity_events", "org_id id seq kind actor_id"],
  ["entry", "activity_audit_entries", "org_id id subject_id action"],
] as const;

function watch(name: string, table: string, columns: readonly string[]): string {
  const json = (row: string) => `json_object(${columns.map((column) => `'${column}', ${row}.${column}`).join(", ")})`;
  const note = (event: string, before: string, after: string) => `
    create temp trigger sim_${name}_${event} after ${event} on main.${table} begin
      insert into sim_history (name, b, a) values ('${name}', ${before}, ${after});
    end;`;
  return note("insert", "null", json("new")) + note("update", json("old"), json("new")) +
    note("delete", json("old"), "null");
}

/** Reads what has changed since it was asked last. */
export class History {
  readonly #db: SqliteDatabase;
  #read = 0;
  /** Every item that is there now, by org and id. */
  readonly items = new Map<string, ItemRow>();
  /** Of each org, the ids of events and entries and outbox rows, with the row. */
  readonly others = {
    key: new Map<string, OtherRow>(),
    outbox: new Map(),
    event: new Map(),
    entry: new Map(),
  } as Record<
    "key" | "outbox" | "event" | "entry",
    Map<string, OtherRow>
  >;
  /** Every item there ever was, as it was last seen. */
  readonly everItems = new Map<string, ItemRow>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
  }

  /** Begins to note. */
  async begin(): Promise<void> {
    const script = "create temp table sim_history (n integer primary key, name text, b text, a text);" +
      WATCHED.map(([name, table, columns]) => watch(name, table, columns.split(/\s+/))).join("");
    await this.#db.write((session) => session.script(script));
  }

  /** What has changed. Synchronous: nothing comes between a statement and this look. */
  take(): Change[] {
    let rows: unknown[][] = [];
    void this.#db.read((session) => {
      rows = session.rows("select n, name, b, a from sim_history where n > ? order by n", this.#read);
    });
    const last = rows.at(-1);
    if (last !== undefined) this.#read = Number(last[0]);
    const changes = rows.map(([, table, before, after]) => ({
      table,
      before: before === null ? null : JSON.parse(String(before)),
      after: after === null ? null : JSON.parse(String(after)),
    } as Change));
    for (const change of changes) this.#apply(change);
    return changes;
  }

  #apply({ table, before, after }: Change): void {
    const row = after ?? before;
    if (row === null) return;
    const key = table === "key" ? keyOf(String(row.org_id), String((row as OtherRow).key)) : keyOfRow(row);
    const rows = table === "item" ? this.items as Map<string, OtherRow | ItemRow> : this.others[table];
    if (after === null) rows.delete(key);
    else rows.set(key, after as OtherRow);
    if (table === "item") this.everItems.set(key, row as ItemRow);
  }
}

/** Names a row across orgs. */
export function keyOf(orgId: string, id: string): string {
  return `${orgId}/${id}`;
}

/** Names a row by its own columns. */
export function keyOfRow(row: ItemRow | OtherRow): string {
  return keyOf(String(row.org_id), String(row.id));
}
